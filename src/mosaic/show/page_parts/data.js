// The facts, and what follows from them at any number k and any threshold t. Nothing here changes the page.

function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

const packedFacts = document.getElementById("facts");
const inflated = new Blob([bytesOf(packedFacts.textContent)]).stream().pipeThrough(new DecompressionStream("deflate"));
const facts = await new Response(inflated).json();
const { ranking, bins, moves, groups, texts } = facts;
const maxK = ranking.length;
const nBins = bins.rows.length;
const first = { k: facts.k, t: bins.threshold };
const rejects = facts.outliers === "reject"; // otherwise outliers keep their representatives
const detects = facts.outliers !== "keep";
const state = { k: first.k, t: first.t, pin: -1, hover: -1, view: 0, colour: null };

// ---------------------------------------------------------------- text

const NO_BREAK = "\u00a0"; // space between a number and its unit

function whole(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function percent(share) {
  // A share below 1 must not read as 100 %.
  const value = share < 1 ? Math.min(100 * share, 99.9).toFixed(1) : "100";
  return `${Number(value) ? value : "0"}${NO_BREAK}%`;
}

function significant(value, digits = 3) {
  if (value >= 1000) return whole(value);
  return String(Number(value.toPrecision(digits)));
}

function counted(number, noun) {
  return `${whole(number)}${NO_BREAK}${noun}${Math.round(number) === 1 ? "" : "s"}`;
}

function capitalised(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/* What an effective count says. */
function alike(item) {
  if (item.count < 2) return item.count < 1.1 ? "no other row looks like it" : "hardly any row looks like it";
  return `about ${significant(item.count, 2)} of ${whole(facts.compared_with)} rows look like it`;
}

function called(item) {
  return item.name === null || item.name === undefined ? `row ${item.row}` : item.name;
}

// ---------------------------------------------------------------- the points on the map

function decode(text, Kind) {
  return new Kind(bytesOf(text).buffer);
}

/* Coordinates of the points in one of the layouts. */
function laidOut(view) {
  const [x0, x1, y0, y1] = view.range;
  const stretch = (codes, low, high) => Float32Array.from(codes, (code) => low + ((high - low) * code) / 65535);
  return { x: stretch(decode(view.x, Uint16Array), x0, x1), y: stretch(decode(view.y, Uint16Array), y0, y1) };
}

function unpack(map) {
  const row = decode(map.row, Uint32Array);
  return {
    n: map.n,
    ...laidOut(map),
    row,
    bin: decode(map.bin, Uint8Array),
    safe: map.safe ? decode(map.safe, Uint8Array) : new Uint8Array(map.n),
    copies: map.copies ? decode(map.copies, Uint32Array) : new Uint32Array(map.n).fill(1),
    group: map.group ? decode(map.group, Int16Array) : null,
    history: decode(map.history, Uint16Array),
    end: decode(map.history_end, Uint32Array),
    at: new Map(Array.from(row, (r, i) => [r, i])),
  };
}

const views = [facts.map, facts.map.other].filter(Boolean);
const points = unpack(facts.map);
const rankOf = new Map(ranking.map((pick, j) => [pick.row, j]));
const lowOf = new Map(facts.lowest.map((item) => [item.row, item]));

/* The column's distinct texts and which of them each point has; null for columns that are not on the page. */
const mapColumns = facts.map_columns.map(
  (column) =>
    column && {
      texts: column.texts,
      missing: new Set(column.missing), // codes of what the fit takes as missing: "", "n/a", "-"
      code: decode(column.codes, column.bytes === 1 ? Uint8Array : Uint16Array),
    },
);

/* Cells of a row that is on the page: those of the list, else those of its point; null where the page has none. */
function cellsOf(row) {
  const item = itemOf(row);
  if (item?.cells?.length) return item.cells;
  const i = points.at.get(row);
  return i === undefined ? [] : mapColumns.map((column) => column && column.texts[column.code[i]]);
}

function nameOf(i) {
  return facts.map.names?.[i] ?? called(itemOf(points.row[i]) ?? { row: points.row[i] });
}

// ---------------------------------------------------------------- what follows at k and t

const now = {
  struck: new Uint8Array(maxK), // representatives that are outliers at this threshold
  shown: [], // ranks of the selection
  rows: new Float64Array(maxK), // rows that each rank stands for
  most: 1, // the largest of them
  about: facts.scaled, // whether these are estimates
  outliers: 0,
  rep: new Int16Array(points.n), // rank that stands for each point, -1 without one
  out: new Uint8Array(points.n),
};

function below(t, counts) {
  let sum = 0;
  for (let b = 0; b < t; b++) sum += counts[b];
  return sum;
}

function isOutlier(item) {
  return !item.safe && item.bin < state.t;
}

/* Rows of each rank: the sum of its moves, without outliers that are set aside. */
function followMoves() {
  now.rows.fill(0);
  for (let j = 0; j < state.k; j++) {
    for (const [from, number] of moves[j]) {
      now.rows[j] += number;
      if (from >= 0) now.rows[from] -= number;
    }
  }
  for (let i = 0; rejects && i < points.n; i++) {
    if (now.out[i] && now.rep[i] >= 0) now.rows[now.rep[i]] -= points.copies[i] * rowsPerPoint[points.bin[i]];
  }
}

/* Rows of each rank, estimated from the points on the map: moves do not say where rows of a struck representative go. */
function followShown() {
  now.rows.fill(0);
  let sum = 0;
  for (let i = 0; i < points.n; i++) {
    if (now.out[i] || now.rep[i] < 0) continue;
    const rows = points.copies[i] * rowsPerPoint[points.bin[i]];
    now.rows[now.rep[i]] += rows;
    sum += rows;
  }
  if (sum > 0) for (let j = 0; j < state.k; j++) now.rows[j] *= (facts.n - now.outliers) / sum;
}

/* A point belongs to the last rank in its history that is shown. */
function followPoints() {
  const { history, end, bin, safe, n } = points;
  const { k, t } = state;
  for (let i = 0, start = 0; i < n; i++) {
    let q = end[i] - 1;
    while (q >= start && (history[q] >= k || now.struck[history[q]])) q--;
    now.rep[i] = q >= start ? history[q] : -1;
    now.out[i] = bin[i] < t && !safe[i] ? 1 : 0;
    start = end[i];
  }
}

// Rows of each bin per row that is on the map: more than one only where the map is thinned.
const rowsPerPoint = new Float64Array(nBins);
points.bin.forEach((b, i) => (rowsPerPoint[b] += points.copies[i]));
bins.rows.forEach((rows, b) => (rowsPerPoint[b] = rowsPerPoint[b] > 0 ? rows / rowsPerPoint[b] : 0));

function follow() {
  const { k, t } = state;
  now.shown = [];
  ranking.forEach((pick, j) => {
    now.struck[j] = rejects && isOutlier(pick) ? 1 : 0;
    if (j < k && !now.struck[j]) now.shown.push(j);
  });
  now.outliers = t === first.t ? facts.n_outliers : below(t, bins.rows) - below(t, bins.safe);
  const anyStruck = now.shown.length < k;
  followPoints();
  if (anyStruck) followShown();
  else followMoves();
  const isFirst = k === first.k && t === first.t;
  if (isFirst) ranking.slice(0, k).forEach((pick, j) => (now.rows[j] = pick.stands_for));
  if (rejects) now.out.forEach((isOut, i) => isOut && (now.rep[i] = -1));
  now.most = now.shown.reduce((most, j) => Math.max(most, now.rows[j]), 1);
  // The history has no second nearest, so rows of a struck representative are estimates.
  now.about = facts.scaled || anyStruck || (rejects && !isFirst && t > facts.map.low_complete);
}

function about(number, noun) {
  const text = noun ? counted(number, noun) : whole(number);
  return now.about ? `about ${text}` : text;
}

/* Coverage is known for the rows that belong at the threshold of the fit; without detection these are all rows. */
function knowsShare() {
  return state.t === first.t || !detects;
}

/* Whether the certificate holds for what is shown: reported outliers do not change the choice. */
function isProven() {
  return state.t === first.t || !rejects;
}

/* The coverage of the first k, beside what no k rows exceed. */
function shareOfMost(k) {
  const most = texts.bounds.length ? ` of at most ${texts.bounds[k - 1].replace(" ", NO_BREAK)}` : "";
  return `${percent(facts.coverage[k - 1])}${most}`;
}

/* The number of outliers is an estimate where not all of them are on the page. */
function isEstimate() {
  return state.t === first.t ? facts.is_estimate : state.t > bins.exact;
}

function outliersInWords() {
  if (!now.outliers) return "no outliers";
  return `${isEstimate() ? "about " : ""}${counted(now.outliers, "outlier")}`;
}

/* A template with its parts filled in. */
function filled(template, parts) {
  return template.replace(/\{(\w+)\}/g, (_, name) => parts[name]);
}

/* The headline at k and t; emphasis stands between **. */
function sentence() {
  const share = maxK ? shareOfMost(state.k) : "";
  const n = maxK ? outliersInWords() : capitalised(outliersInWords());
  const template = `${knowsShare() ? texts.covering : texts.chosen}${texts.outliers}.`;
  return filled(template, { k: counted(now.shown.length, "representative"), share, n });
}

// ---------------------------------------------------------------- the selection as files

function csv(header, lines) {
  const quote = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  const names = header.map((name, i) => (header.indexOf(name) < i ? `${name}_` : name)); // as a column of the data called "status"
  return [names, ...lines].map((line) => line.map(quote).join(",") + "\r\n").join("");
}

function shownPicks() {
  return now.shown.map((j) => ({
    rank: j + 1,
    row: ranking[j].row,
    id: ranking[j].full ?? ranking[j].name,
    stands_for: Math.round(now.rows[j]),
    reason: ranking[j].reason || mostLike(ranking[j].members),
    cells: ranking[j].cells,
  }));
}

/* Listed outliers first, with all their data; then outliers that are only on the map. */
function shownOutliers() {
  const listed = facts.lowest.filter(isOutlier).map((item) => ({
    row: item.row,
    id: item.full ?? item.name,
    copies: item.copies,
    effective_count: item.count,
    reason: item.reason || `${alike(item)}.`,
    cells: item.cells,
  }));
  const more = [];
  for (let i = 0; i < points.n; i++) {
    if (now.out[i] && !lowOf.has(points.row[i])) more.push(i);
  }
  more.sort((a, b) => points.bin[a] - points.bin[b] || points.row[a] - points.row[b]);
  // A shortened name does not identify a row; its number does.
  const id = (i) => (facts.map.names && !facts.map.names[i].includes("…") ? facts.map.names[i] : null);
  const known = (i) => ({ effective_count: null, reason: `${binText(i)}.`, cells: cellsOf(points.row[i]) });
  return listed.concat(more.map((i) => ({ row: points.row[i], id: id(i), copies: points.copies[i], ...known(i) })));
}

/* Columns in the order of the file, as a list of their places on the page. */
const fileOrder = facts.places.map((place, c) => [place, c]).sort((a, b) => a[0] - b[0]).map(([, c]) => c);

function inFileOrder(cells) {
  return cells.length ? fileOrder.map((c) => cells[c]) : [];
}

/* A point of a sample stands for many rows, and the number of its equal rows is unknown. */
function hasCopies(outliers) {
  return !facts.scaled && outliers.some((item) => item.copies > 1);
}

function picksCsv() {
  const lines = shownPicks().map((pick) => [pick.rank, pick.row, pick.id, pick.stands_for, pick.reason, ...inFileOrder(pick.cells)]);
  return csv(["rank", "row", "id", "stands_for", "reason", ...inFileOrder(facts.columns)], lines);
}

function outliersCsv(outliers) {
  const copies = hasCopies(outliers) ? ["copies"] : [];
  const names = ["row", "id", ...copies, "effective_count", "reason"];
  const lines = outliers.map((item) => [...names.map((name) => item[name]), ...inFileOrder(item.cells)]);
  return csv([...names, ...inFileOrder(facts.columns)], lines);
}

function selectionJson() {
  const named = (cells) => Object.fromEntries(cells.length ? fileOrder.map((c) => [facts.columns[c], cells[c]]) : []);
  const outliers = shownOutliers();
  const isCopied = hasCopies(outliers);
  const selection = {
    file: facts.file ? facts.file.name : null,
    n: facts.n,
    ...(maxK ? { k: now.shown.length, coverage: knowsShare() ? facts.coverage[state.k - 1] : null } : {}),
    threshold: state.t === 0 ? null : bins.edges[state.t],
    n_outliers: now.outliers,
    ...(maxK ? { representatives: shownPicks().map((pick) => ({ ...pick, cells: named(pick.cells) })) } : {}),
    outliers: outliers.map(({ copies, ...item }) => ({
      ...item, ...(isCopied ? { copies } : {}), cells: named(item.cells),
    })),
  };
  return JSON.stringify(selection, null, 1);
}
