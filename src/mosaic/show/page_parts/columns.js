// Columns of the data: colours of the map by a column of few values, and a small histogram of each column.

const FEW_VALUES = 2 * COLOURS; // a column of more values is no choice of colours
const CELLS = Math.min(Math.max(Math.floor(Math.sqrt(points.n / 50)), 1), 8); // parts of each side of the map, to find the column that it says most of
const LEAST_TOLD = 0.05; // of a column that is a colour at first
const LEVEL_ROWS = 12; // values in a chart of a column of texts
const CHART_BINS = 30;
const CHART_WIDTH = 240, CHART_HEIGHT = 74; // of the bars, in units of the drawing

/* The columns as charts and colours have them: all that is missing is one value, the last, at place ``gap``. */
const chartColumns = mapColumns.map((column) => {
  if (!column) return null;
  const { texts, missing, code } = column;
  const there = texts.filter((_, v) => !missing.has(v));
  let place = 0;
  const places = texts.map((_, v) => (missing.has(v) ? there.length : place++));
  return { texts: missing.size ? [...there, "missing"] : there, gap: missing.size ? there.length : -1, code: code.map((v) => places[v]) };
});

// ---------------------------------------------------------------- colours

/* What points can be coloured by: names of the values and the value of each point; the most frequent values have a colour. */
const colourings = facts.columns.flatMap((name, c) => {
  const column = chartColumns[c];
  const isFew = column && column.texts.length > 1 && column.texts.length <= Math.min(FEW_VALUES, points.n / 2);
  if (!isFew || name === groups?.column) return [];
  return [{ name, labels: column.texts, code: column.code, rows: null }];
});
if (groups && points.group) {
  colourings.unshift({ name: groups.column, labels: groups.labels, code: points.group, rows: groups.rows });
}
for (const colouring of colourings) {
  const { labels, rows } = colouring;
  const order = [...labels.keys()].sort((a, b) => (rows ? rows[b] - rows[a] : 0) || a - b);
  colouring.hues = new Int8Array(labels.length).fill(-1);
  order.slice(0, COLOURS).forEach((label, hue) => (colouring.hues[label] = hue));
}

/* For each point the cell of the map that it lies in, of CELLS × CELLS that cut both coordinates into equal numbers of points. */
function cellsOfMap() {
  const ranks = [points.x, points.y].map((values) => {
    const rank = new Int32Array(points.n);
    Float32Array.from(values).map((_, i) => i).sort((a, b) => values[a] - values[b]).forEach((i, r) => (rank[i] = r));
    return rank;
  });
  const part = (rank) => Math.floor((CELLS * rank) / points.n);
  return ranks[0].map((rank, i) => CELLS * part(rank) + part(ranks[1][i]));
}

/* −Σ p log p of counts. */
function entropy(counts) {
  const sum = counts.reduce((a, b) => a + b, 0);
  return counts.reduce((h, count) => (count ? h - (count / sum) * Math.log(count / sum) : h), 0);
}

/* What the place on the map says of a column, (H(v) − H(v | cell)) / H(v), without what it would say by chance, after Miller. */
function telling({ code, labels }, cell) {
  const tables = Array.from({ length: CELLS * CELLS }, () => new Float64Array(labels.length));
  const all = new Float64Array(labels.length);
  for (let i = 0; i < points.n; i++) if (code[i] >= 0) (tables[cell[i]][code[i]]++, all[code[i]]++);
  const sum = all.reduce((a, b) => a + b, 0);
  const within = tables.reduce((h, table) => h + (table.reduce((a, b) => a + b, 0) / sum) * entropy(table), 0);
  const seen = (counts) => counts.filter((count) => count > 0).length;
  const chance = (tables.filter(seen).length - 1) * (seen(all) - 1) / (2 * sum);
  return (entropy(all) - within - chance) / entropy(all);
}

/* At first the colours are those of the groups that were asked for, else of the column that the map says most of. */
function firstColouring() {
  if (!colourings.length || (groups && points.group)) return colourings[0] ?? null;
  const cell = cellsOfMap();
  const shares = colourings.map((colouring) => telling(colouring, cell));
  const most = Math.max(...shares);
  return most > LEAST_TOLD ? colourings[shares.indexOf(most)] : null;
}

state.colour = firstColouring();

function buildColours() {
  const menu = byId("colour");
  menu.append(...[null, ...colourings].map((colouring, c) => el("option", { value: c - 1, textContent: colouring?.name ?? "one colour" })));
  menu.value = colourings.indexOf(state.colour);
  menu.addEventListener("change", () => ((state.colour = colourings[menu.value] ?? null), repaint("points", "marks", "legend")));
  byId("colour-choice").hidden = !colourings.length;
}

// ---------------------------------------------------------------- numbers of a column

const DATES = [/^(\d{4})-(\d\d)-(\d\d)(?!\d)/, /^(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)/];

/* Days since 1970 of a date that begins with the year, or has points; NaN for all else. */
function dayOf(text) {
  const iso = DATES[0].exec(text), pointed = DATES[1].exec(text);
  if (iso) return Date.parse(iso[0]) / 864e5;
  return pointed ? Date.UTC(pointed[3], pointed[2] - 1, pointed[1]) / 864e5 : NaN;
}

function numberOf(text) {
  return text === "" ? NaN : Number(text.replace(/^[$€£¥]\s?|,(?=\d{3})|\s?[$€£¥%]$/g, ""));
}

/* Values of the texts of a column, if nearly all but missing ones are numbers or dates; else null. */
function valuesOf({ texts, gap }) {
  const nThere = texts.length - (gap < 0 ? 0 : 1);
  for (const read of [numberOf, dayOf]) {
    const values = Float64Array.from(texts, (text, v) => (v === gap ? NaN : read(text)));
    const nRead = values.filter(Number.isFinite).length;
    if (nRead > 0 && nRead >= 0.9 * nThere) {
      return { values, told: read === dayOf ? (day) => new Date(864e5 * day).toISOString().slice(0, 10) : shortNumber };
    }
  }
  return null;
}

function shortNumber(value) {
  return Math.abs(value) >= 1000 ? `${value < 0 ? "−" : ""}${whole(Math.abs(value))}` : String(Number(value.toPrecision(3)));
}

// ---------------------------------------------------------------- histograms

const columnCharts = [];

function rowsOf(i) {
  return points.copies[i] * rowsPerPoint[points.bin[i]];
}

/* Rows of each value of a column, all and those that belong. */
function countValues({ texts, code }) {
  const all = new Float64Array(texts.length), belonging = new Float64Array(texts.length);
  for (let i = 0; i < points.n; i++) {
    all[code[i]] += rowsOf(i);
    if (points.bin[i] >= first.t || points.safe[i]) belonging[code[i]] += rowsOf(i);
  }
  return { all, belonging };
}

/* Bars between the least and the greatest value of the rows that belong; others are counted at the ends. */
function numberChart(column, { values, told }, svg) {
  const { all, belonging } = countValues(column);
  let low = Infinity, high = -Infinity, isWhole = true;
  values.forEach((value, v) => {
    if (!Number.isFinite(value)) return;
    isWhole &&= Number.isInteger(value);
    if (belonging[v] > 0) [low, high] = [Math.min(low, value), Math.max(high, value)];
  });
  if (low > high) [low, high] = [Math.min(...values.filter(Number.isFinite)), Math.max(...values.filter(Number.isFinite))];
  const step = isWhole ? Math.max(Math.ceil((high - low + 1) / CHART_BINS), 1) : (high - low) / CHART_BINS || 1;
  const nSteps = Math.max(Math.ceil((high - low + (isWhole ? 1 : 0)) / step - 1e-9), 1);
  const bars = new Float64Array(nSteps);
  const at = Int16Array.from(values, (value) => {
    if (!Number.isFinite(value)) return -1;
    const share = (value - low + (isWhole ? 0.5 : 0)) / (nSteps * step);
    return Math.round(Math.min(Math.max(share, 0), 1) * CHART_WIDTH);
  });
  values.forEach((value, v) => {
    if (Number.isFinite(value)) bars[Math.min(Math.max(Math.floor((value - low) / step), 0), nSteps - 1)] += all[v];
  });
  const most = Math.max(...bars, 1);
  const width = CHART_WIDTH / nSteps;
  const outline = Array.from(bars, (rows, b) => {
    if (rows <= 0) return "";
    const height = Math.max((rows / most) * CHART_HEIGHT, 1);
    return `M${(b * width).toFixed(1)} ${CHART_HEIGHT}v${-height.toFixed(1)}h${Math.max(width - 0.7, 0.5).toFixed(1)}V${CHART_HEIGHT}z`;
  });
  svg.setAttribute("viewBox", `-4 -2 ${CHART_WIDTH + 8} ${CHART_HEIGHT + 36}`);
  shape("path", { d: outline.join(""), class: "column" }, svg);
  shape("line", { x1: 0, x2: CHART_WIDTH, y1: CHART_HEIGHT, y2: CHART_HEIGHT, class: "axis" }, svg);
  const [odd, picks, pinned] = ["rug warm", "rug", "pinned"].map((kind) => shape("path", { class: kind }, svg));
  shape("text", { x: 0, y: CHART_HEIGHT + 31 }, svg, told(low));
  shape("text", { x: CHART_WIDTH, y: CHART_HEIGHT + 31, "text-anchor": "end" }, svg, told(high));
  const strokes = (isThere, from, to) => Array.from(isThere, (there, x) => (there ? `M${x} ${from}V${to}` : "")).join("");
  const tallest = bars.indexOf(Math.max(...bars));
  const summary = `${told(low)} to ${told(high)}, most often ${told(low + tallest * step)} to ${told(Math.min(low + (tallest + 1) * step, high))}`;
  const paint = (pickedAt, oddAt, pinnedAt) => {
    const marksOf = (codes) => {
      const isThere = new Uint8Array(CHART_WIDTH + 1);
      for (const c of codes) if (at[c] >= 0) isThere[at[c]] = 1;
      return isThere;
    };
    picks.setAttribute("d", strokes(marksOf(pickedAt), CHART_HEIGHT + 2, CHART_HEIGHT + 10));
    odd.setAttribute("d", strokes(marksOf(oddAt), CHART_HEIGHT + 12, CHART_HEIGHT + 18));
    pinned.setAttribute("d", strokes(marksOf(pinnedAt), 0, CHART_HEIGHT + 18));
  };
  return { paint, summary };
}

/* A bar for each of the most frequent values. */
function levelChart(column, svg) {
  const { all } = countValues(column);
  const order = [...all.keys()].sort((a, b) => all[b] - all[a] || a - b).slice(0, LEVEL_ROWS);
  const most = Math.max(...all, 1);
  svg.setAttribute("viewBox", `-4 -2 ${CHART_WIDTH + 8} ${18 * order.length + 4}`);
  const rows = new Map(order.map((v, r) => {
    const [text, y] = [column.texts[v], 18 * r];
    shape("text", { x: 84, y: y + 13, "text-anchor": "end" }, svg, text.length > 14 ? `${text.slice(0, 13)}…` : text);
    shape("rect", { x: 90, y: y + 3, width: Math.max((all[v] / most) * 84, 1), height: 12, class: "column" }, svg);
    const odd = shape("rect", { x: 90, y: y + 3, width: 0, height: 12, class: "column low" }, svg);
    return [v, { odd, told: shape("text", { x: CHART_WIDTH, y: y + 13, "text-anchor": "end", class: "value" }, svg), y }];
  }));
  const pinned = shape("path", { class: "pinned" }, svg);
  const summary = order.map((v) => `${column.texts[v]} ${percent(all[v] / facts.n)}`).join(", ");
  const paint = (pickedAt, oddAt, pinnedAt, oddRows) => {
    const picked = new Map(), odd = new Map();
    for (const c of pickedAt) picked.set(c, (picked.get(c) ?? 0) + 1);
    oddAt.forEach((c, o) => odd.set(c, (odd.get(c) ?? 0) + oddRows[o]));
    for (const [v, row] of rows) {
      row.told.textContent = maxK ? whole(picked.get(v) ?? 0) : "";
      row.odd.setAttribute("width", odd.has(v) ? Math.max((odd.get(v) / most) * 84, 1) : 0);
    }
    const there = rows.get(pinnedAt[0]);
    pinned.setAttribute("d", there ? `M88 ${there.y + 2}v14` : "");
  };
  return { paint, summary };
}

function buildColumns() {
  facts.columns.forEach((name, c) => {
    const column = chartColumns[c];
    const numbers = column && valuesOf(column);
    if (!column || column.texts.length < 2 || (!numbers && column.texts.length > FEW_VALUES)) return;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("role", "img");
    const gaps = column.gap < 0 ? 0 : countValues(column).all[column.gap];
    const missing = gaps ? `${facts.scaled ? "about " : ""}${percent(gaps / facts.n)} missing` : "";
    const caption = el("figcaption", {}, dataText(name), el("span", { className: "fine", textContent: missing }));
    byId("column-charts").append(el("figure", {}, caption, svg));
    const { paint, summary } = numbers ? numberChart(column, numbers, svg) : levelChart(column, svg);
    columnCharts.push({ label: `Histogram of ${name}: ${summary}${numbers && missing ? `, ${missing}` : ""}`, svg, column, paint });
  });
  byId("columns").hidden = !columnCharts.length;
  new IntersectionObserver(([{ isIntersecting }]) => {
    columnCharts.areNear = isIntersecting;
    if (isIntersecting) repaint("columns");
  }, { rootMargin: "200px" }).observe(byId("columns"));
}

/* Picks, outliers and the pinned row in each chart; what it shows in words is there before anybody comes near. */
function paintColumns() {
  const picked = now.shown.map((j) => points.at.get(ranking[j].row)).filter((i) => i !== undefined);
  for (const { label, svg, column } of columnCharts) {
    const values = [...new Set(picked.map((i) => column.code[i]))].slice(0, 5).map((v) => column.texts[v]);
    svg.setAttribute("aria-label", `${label}${values.length ? `. Representatives have ${values.join(", ")}` : ""}.`);
  }
  if (!columnCharts.areNear && !isPrinting()) return;
  const odd = [];
  now.out.forEach((isOut, i) => isOut && odd.push(i));
  const oddRows = odd.map(rowsOf);
  const pinned = points.at.has(state.pin) ? [points.at.get(state.pin)] : [];
  for (const { column, paint } of columnCharts) {
    const codes = (some) => some.map((i) => column.code[i]);
    paint(codes(picked), codes(odd), codes(pinned), oddRows);
  }
}
