// The two charts. Each has its slider below it, on the same scale.

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 44; // pixels beside the plot; the style sheet places the sliders by the same numbers
const RIGHT = 14;
const TOP = 22;
const BOTTOM = 26;

function shape(name, attributes, parent, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

/* Sizes are read only when they change, because reading them makes the browser lay out the page. */
function fitCharts() {
  for (const chart of [curve, histogram]) {
    if (!chart.svg) continue;
    chart.width = Math.max(chart.svg.clientWidth, 200);
    chart.height = Math.max(chart.svg.clientHeight, 120);
  }
}

/* An empty chart with the size of its place on the page. */
function sheet({ svg, width, height }) {
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  return { svg, width, height, plot: width - LEFT - RIGHT, floor: height - BOTTOM, rise: height - BOTTOM - TOP };
}

function mark(page, x, y, text, kind) {
  const anchor = x > page.width - 90 ? "end" : x < LEFT + 60 ? "start" : "middle";
  const shift = { start: -6, middle: 0, end: 6 }[anchor];
  shape("text", { x: x + shift, y, "text-anchor": anchor, class: kind }, page.svg, text);
}

function tickBeside(page, y, text) {
  shape("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end", class: "tick" }, page.svg, text);
}

/* Ticks at multiples of 1, 2 or 5 times a power of ten, about as many as requested. */
function roundStep(end, about) {
  const power = 10 ** Math.floor(Math.log10(Math.max(end / about, 1e-9)));
  return power * ([1, 2, 5, 10].find((step) => step * power >= end / about) ?? 10);
}

// ---------------------------------------------------------------- what k representatives cover

const curve = { svg: document.getElementById("curve"), page: null, width: 0, height: 0 };

function xOfK(page, k) {
  return LEFT + (maxK > 1 ? ((k - 1) / (maxK - 1)) * page.plot : page.plot / 2);
}

function yOfShare(page, share) {
  return page.floor - Math.min(Math.max(share, 0), 1) * page.rise;
}

function path(page, to, shares = facts.coverage) {
  const steps = [];
  for (let k = 1; k <= to; k++) {
    steps.push(`${steps.length ? "L" : "M"}${xOfK(page, k).toFixed(1)} ${yOfShare(page, shares[k - 1]).toFixed(1)}`);
  }
  return steps.join("");
}

function paintCurve() {
  if (!curve.svg) return;
  const page = (curve.page = sheet(curve));
  const { svg, floor, width } = page;
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const y = yOfShare(page, share);
    shape("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, class: share ? "grid" : "axis" }, svg);
    tickBeside(page, y, share === 1 ? `100${NO_BREAK}%` : String(100 * share));
  }
  const step = Math.max(roundStep(maxK, page.plot / 70), 1);
  for (let k = step; k <= maxK; k += step) {
    shape("text", { x: xOfK(page, k), y: floor + 18, "text-anchor": "middle", class: "tick" }, svg, whole(k));
  }
  const x = xOfK(page, state.k);
  const covered = path(page, state.k);
  shape("path", { d: `${covered}L${x} ${floor}L${xOfK(page, 1)} ${floor}Z`, class: "area" }, svg);
  if (facts.bound) shape("path", { d: path(page, maxK, facts.bound), class: "bound" }, svg);
  shape("path", { d: path(page, maxK), class: "line beyond" }, svg);
  shape("path", { d: covered, class: "line" }, svg);
  if (facts.suggested) {
    const suggested = xOfK(page, facts.suggested);
    shape("line", { x1: suggested, x2: suggested, y1: TOP, y2: floor, class: "suggested" }, svg);
    if (Math.abs(suggested - x) > 84) mark(page, suggested, TOP - 8, `suggested ${whole(facts.suggested)}`, "tick");
  }
  shape("line", { x1: x, x2: x, y1: TOP, y2: floor, class: "needle" }, svg);
  const y = yOfShare(page, facts.coverage[state.k - 1]);
  shape("circle", { cx: x, cy: y, r: 5.5, class: "dot" }, svg);
  mark(page, x, TOP - 8, percent(facts.coverage[state.k - 1]), "value");
  const asFitted = knowsShare() ? "" : " at the threshold of the fit";
  svg.setAttribute("aria-label", `Coverage${asFitted}: the first ${state.k} of ${maxK} have ${shareOfMost(state.k)}.`);
}

// ---------------------------------------------------------------- how many rows have which effective count

const histogram = { svg: document.getElementById("histogram"), page: null, width: 0, height: 0 };

function xOfBin(page, b) {
  return LEFT + (b / nBins) * page.plot;
}

/* The axis is linear in bins, and logarithmic within a bin. */
function xOfCount(page, count) {
  let b = 0;
  while (b < nBins - 1 && bins.edges[b + 1] <= count) b++;
  const [low, high] = [bins.edges[b], bins.edges[b + 1]].map((edge) => Math.log(Math.max(edge, 1e-12)));
  return xOfBin(page, b + (high > low ? (Math.log(count) - low) / (high - low) : 0));
}

function paintHistogram() {
  const page = (histogram.page = sheet(histogram));
  const { svg, floor, width, rise } = page;
  const most = Math.max(...bins.rows, 1);
  // Heights are logarithmic, so that a single outlier is visible beside many other rows.
  const lift = (rows) => (rows <= 0 ? 0 : (rise * Math.log10(1 + 3 * rows)) / Math.log10(1 + 3 * most));
  for (let rows = 1; rows <= most; rows *= 10) {
    const y = floor - lift(rows);
    shape("line", { x1: LEFT, x2: width - RIGHT, y1: y, y2: y, class: "grid" }, svg);
    tickBeside(page, y, rows < 1e4 ? whole(rows) : `10${raised(Math.log10(rows))}`);
  }
  shape("line", { x1: LEFT, x2: width - RIGHT, y1: floor, y2: floor, class: "axis" }, svg);
  const gap = page.plot / nBins > 5 ? 1.5 : 0.5;
  const column = (b, rows, kind) => {
    const [x, width] = [xOfBin(page, b) + gap / 2, page.plot / nBins - gap];
    if (rows > 0) shape("rect", { x, width, y: floor - lift(rows), height: lift(rows), class: kind }, svg);
  };
  bins.rows.forEach((rows, b) => {
    if (b >= state.t || bins.safe[b]) column(b, rows, "column");
    if (b < state.t) column(b, rows - bins.safe[b], "column low");
  });
  countTicks(page);
  const x = xOfBin(page, state.t);
  shape("line", { x1: x, x2: x, y1: TOP, y2: floor, class: "needle warm" }, svg);
  mark(page, x, TOP - 8, state.t ? `below ${significant(bins.edges[state.t])}` : "none", "value warm");
  svg.setAttribute("aria-label", `Histogram of how many rows look like a row: ${thresholdText()}.`);
}

function raised(power) {
  return String(power).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
}

function countTicks(page) {
  const [low, high] = [bins.edges[0], bins.edges[nBins]];
  const ratio = high / Math.max(low, 1e-3);
  const steps = ratio > 300 ? [1] : ratio > 8 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
  let last = -Infinity;
  for (let power = Math.floor(Math.log10(Math.max(low, 1e-3))); 10 ** power <= high; power++) {
    for (const step of steps) {
      const count = step * 10 ** power;
      if (count < low || count > high) continue;
      const x = xOfCount(page, count);
      if (x - last < 34 || x > page.width - 8) continue;
      last = x;
      shape("line", { x1: x, x2: x, y1: page.floor, y2: page.floor + 4, class: "axis" }, page.svg);
      shape("text", { x, y: page.floor + 18, "text-anchor": "middle", class: "tick" }, page.svg, significant(count));
    }
  }
}

function thresholdText() {
  if (!state.t) return "no threshold, no outliers";
  return `${isEstimate() ? "about " : ""}${counted(now.outliers, "row")} with an effective count below ${significant(bins.edges[state.t])}`;
}

/* Dragging on a chart moves its slider. */
function grabbable(svg, valueAt, act) {
  if (!svg) return;
  let held = false;
  const follow = (event) => act(valueAt(event.clientX - svg.getBoundingClientRect().left));
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = true;
    if (event.isTrusted) svg.setPointerCapture(event.pointerId);
    follow(event);
  });
  svg.addEventListener("pointermove", (event) => held && follow(event));
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => (held = false));
}
