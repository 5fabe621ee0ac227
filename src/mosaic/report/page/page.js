// Controls, one repaint for whatever has changed, and the start.

// ---------------------------------------------------------------- painting

function paintSentence() {
  const parts = sentence().map(([text, isStrong]) => (isStrong ? el("strong", { textContent: text }) : text));
  byId("sentence").replaceChildren(...parts);
}

function paintControls() {
  if (maxK) {
    const share = percent(facts.coverage[state.k - 1]);
    byId("k-range").value = state.k;
    byId("k-range").setAttribute("aria-valuetext", `${counted(state.k, "representative")}, ${share}`);
    if (document.activeElement !== byId("k-number")) byId("k-number").value = state.k;
    byId("k-less").disabled = state.k <= 1;
    byId("k-more").disabled = state.k >= maxK;
    byId("k-first").setAttribute("aria-pressed", String(state.k === first.k));
    byId("k-knee")?.setAttribute("aria-pressed", String(state.k === facts.knee));
    const similarity = facts.similarity[state.k - 1];
    const beyond = state.k > first.k ? `; numbers beyond ${whole(first.k)} would come next` : "";
    const who = state.k === 1 ? "The first expresses" : `The first ${whole(state.k)} express`;
    const coverage = `${who} ${share} of the points that belong`;
    byId("k-text").textContent = `${coverage}; mean similarity to the nearest ${similarity.toFixed(3)}${beyond}.`;
  }
  byId("t-range").value = state.t;
  byId("t-range").setAttribute("aria-valuetext", thresholdText());
  byId("t-count").textContent = whole(now.outliers);
  byId("t-less").disabled = state.t <= 0;
  byId("t-more").disabled = state.t >= nBins;
  byId("t-first").setAttribute("aria-pressed", String(state.t === first.t));
  byId("t-none").setAttribute("aria-pressed", String(state.t === 0));
  const share = now.outliers ? ` (${percent(now.outliers / facts.n)})` : "";
  const spared = counted(bins.protected, "row");
  const spares = bins.protected ? ` ${spared} with few like them hold together as a group and belong.` : "";
  const text = thresholdText();
  byId("t-text").textContent = `${text[0].toUpperCase()}${text.slice(1)}${share}.${spares}`;
}

const painters = {
  sentence: paintSentence, controls: paintControls, points: paintPoints, marks: paintMarks, tip: paintTip, zoom: paintZoomButtons,
  curve: paintCurve, histogram: paintHistogram, picks: paintPickList, outliers: paintOutliers, groups: paintGroups,
  detail: paintDetail, legend: paintLegend,
};
const wishes = new Set();
let isWaiting = false;

/* Ask for parts to be painted: all that is asked for is painted once, in the next frame. */
function wish(...names) {
  for (const name of names) wishes.add(name);
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(paintNow);
}

function paintNow() {
  isWaiting = false;
  const asked = [...wishes];
  wishes.clear();
  for (const name of asked) painters[name]();
}

function paintZoomButtons() {
  if (points) paintZoom();
}

let speech = 0;

function say(text) {
  byId("live").textContent = text;
}

/* Whoever drags a slider hears the sentence once, when it rests. */
function changed(...more) {
  follow();
  wish("sentence", "controls", "points", "marks", "tip", "curve", "picks", "outliers", "groups", "detail", ...more);
  clearTimeout(speech);
  speech = setTimeout(() => say(sentence().map(([text]) => text).join("")), 600);
}

function setK(k) {
  const next = Math.min(Math.max(Math.round(k), 1), maxK);
  if (!Number.isFinite(next) || next === state.k) return;
  state.k = next;
  changed();
}

function setT(t) {
  const next = Math.min(Math.max(Math.round(t), 0), nBins);
  if (!Number.isFinite(next) || next === state.t) return;
  state.t = next;
  changed("histogram");
}

// ---------------------------------------------------------------- saving, copying, theme, print

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function copyCommand() {
  const text = byId("command");
  try {
    await navigator.clipboard.writeText(text.textContent);
    byId("copy").textContent = "Copied";
  } catch {
    // Not every browser lets a file have the clipboard; then the text is at least selected.
    getSelection().selectAllChildren(text);
    byId("copy").textContent = "Selected: press Ctrl+C";
  }
}

const THEMES = ["auto", "light", "dark"];

function nextTheme() {
  const root = document.documentElement;
  const theme = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length];
  root.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  recolour();
}

function recolour() {
  map.palette = readPalette();
  wish("points", "marks", "legend");
}

const isPrinting = () => document.documentElement.classList.contains("printing");

/* Both the event and the medium tell of a print, in an order that differs from browser to browser. */
function readyToPrint() {
  if (isPrinting()) return;
  const settings = byId("settings");
  settings.dataset.was = settings.open ? "open" : "";
  settings.open = true;
  document.documentElement.classList.add("printing");
  recolour();
  paintNow();
}

function printed() {
  if (!isPrinting() || matchMedia("print").matches) return;
  document.documentElement.classList.remove("printing");
  byId("settings").open = byId("settings").dataset.was === "open";
  recolour();
}

// ---------------------------------------------------------------- the start

function on(id, event, act) {
  byId(id)?.addEventListener(event, act);
}

function wire() {
  on("k-range", "input", (event) => setK(event.target.valueAsNumber));
  on("k-number", "input", (event) => setK(event.target.valueAsNumber));
  on("k-number", "blur", (event) => (event.target.value = state.k));
  on("k-less", "click", () => setK(state.k - 1));
  on("k-more", "click", () => setK(state.k + 1));
  on("k-first", "click", () => setK(first.k));
  on("k-knee", "click", () => setK(facts.knee));
  on("t-range", "input", (event) => setT(event.target.valueAsNumber));
  on("t-less", "click", () => setT(state.t - 1));
  on("t-more", "click", () => setT(state.t + 1));
  on("t-first", "click", () => setT(first.t));
  on("t-none", "click", () => setT(0));
  on("save-picks", "click", () => save(`representatives-${now.shown.length}.csv`, "text/csv;charset=utf-8", picksCsv()));
  on("save-outliers", "click", () => save(`outliers-${now.outliers}.csv`, "text/csv;charset=utf-8", outliersCsv()));
  on("save-all", "click", () => save("selection.json", "application/json", selectionJson()));
  on("copy", "click", copyCommand);
  on("theme", "click", nextTheme);
  for (const button of document.querySelectorAll("[data-colour]")) {
    button.addEventListener("click", () => ((state.colour = button.dataset.colour), wish("points", "marks", "legend")));
  }
  if (maxK) grabbable(curve.svg, (x) => 1 + ((x - LEFT) / curve.page.plot) * (maxK - 1), setK);
  grabbable(histogram.svg, (x) => ((x - LEFT) / histogram.page.plot) * nBins, setT);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? readyToPrint() : printed()));
  addEventListener("beforeprint", readyToPrint);
  addEventListener("afterprint", printed);
}

function resized() {
  if (isPrinting()) return;
  if (points) fitMap();
  fitCharts();
  wish("points", "marks", "tip", "curve", "histogram");
}

document.documentElement.classList.add("js");
map.palette = readPalette();
follow();
if (maxK) buildPicks();
fitCharts();
if (points) {
  fitMap();
  layHands();
  byId("map-text").textContent = mapText();
}
wire();
wish(...Object.keys(painters));
new ResizeObserver(resized).observe(byId("map") ?? byId("threshold"));
