// Controls, one repaint for whatever has changed, and the start.

// ---------------------------------------------------------------- painting

function paintSentence() {
  const parts = sentence().map(([text, isStrong]) => (isStrong ? el("strong", { textContent: text }) : text));
  byId("sentence").replaceChildren(...parts);
}

/* What is proven is about the chosen; elsewhere it says so. */
function paintProof() {
  const { sentence: text, k } = facts.certificate;
  const isHere = state.k === k && isProven();
  byId("proof").textContent = isHere ? text : `For the chosen ${k === 1 ? "one" : whole(k)}: ${text.replace(/^Th/, "th")}`;
}

/* What the first k express; at another threshold than the fit's nobody has measured it. */
function shareText() {
  const { k } = state;
  const who = k === 1 ? "the first expresses" : `the first ${whole(k)} express`;
  const share = `${who} ${percent(facts.coverage[k - 1])} of the points that belong`;
  const left = now.shown.length;
  const similarity = `mean similarity to the nearest ${facts.similarity[k - 1].toFixed(3)}`;
  if (knowsShare()) return `T${share.slice(1)}; ${similarity}`;
  const struck = left < k ? `; at this one ${left ? whole(left) : "none"} of them ${left === 1 ? "is" : "are"} left` : "";
  return `At the threshold of the fit, ${share}; ${similarity}${struck}`;
}

function paintControls() {
  const share = knowsShare() ? percent(facts.coverage[state.k - 1]) : `${whole(now.shown.length)} of them shown`;
  byId("k-range").value = state.k;
  byId("k-range").setAttribute("aria-valuetext", `${counted(state.k, "representative")}, ${share}`);
  if (document.activeElement !== byId("k-number")) byId("k-number").value = state.k;
  allow("k-less", state.k > 1);
  allow("k-more", state.k < maxK);
  byId("k-first").setAttribute("aria-pressed", String(state.k === first.k));
  byId("k-knee")?.setAttribute("aria-pressed", String(state.k === facts.knee));
  const beyond = state.k > first.k ? `; numbers beyond ${whole(first.k)} would come next` : "";
  byId("k-text").textContent = `${shareText()}${beyond}.`;
  byId("t-range").value = state.t;
  byId("t-range").setAttribute("aria-valuetext", thresholdText());
  byId("t-count").textContent = whole(now.outliers);
  allow("t-less", state.t > 0);
  allow("t-more", state.t < nBins);
  byId("t-first")?.setAttribute("aria-pressed", String(state.t === first.t));
  byId("t-none").setAttribute("aria-pressed", String(state.t === 0));
  const part = now.outliers ? ` (${percent(now.outliers / facts.n)})` : "";
  const text = thresholdText();
  byId("t-text").textContent = `${text[0].toUpperCase()}${text.slice(1)}${part}.${safeText()}`;
}

/* Rows below the threshold that are no outliers, and why; the reasons are two, and each has its number. */
function safeText() {
  if (!below(state.t, bins.safe)) return "";
  const reasons = [];
  const belong = bins.grouped === 1 ? "belongs to a group" : "belong to groups";
  if (bins.grouped) reasons.push(`${counted(bins.grouped, "row")} that ${belong}`);
  if (bins.must) reasons.push(`${counted(bins.must, "row")} that had to be included`);
  return ` Never outliers, whatever their count: ${reasons.join(", ")}.`;
}

const painters = {
  sentence: paintSentence, proof: paintProof, controls: paintControls, points: paintPoints, marks: paintMarks, tip: paintTip,
  zoom: paintZoom, curve: paintCurve, histogram: paintHistogram, picks: paintPickList, outliers: paintOutliers, groups: paintGroups,
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

let speech = 0;

function say(text) {
  byId("live").textContent = text;
}

/* Whoever drags a slider hears the sentence once, when it rests. */
function changed(...more) {
  follow();
  wish("sentence", "proof", "controls", "points", "marks", "tip", "curve", "picks", "outliers", "groups", "detail", ...more);
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

/* A number is taken when it is complete: Enter, an arrow or leaving the field says so. */
function takeNumber(field) {
  if (field.value !== "" && field.validity.valid) setK(field.valueAsNumber);
  else say(`A whole number from 1 to ${whole(maxK)} is needed.`);
  field.value = state.k;
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

function savePicks() {
  const number = now.shown.length;
  if (number) save(`representatives-${number}.csv`, "text/csv;charset=utf-8", picksCsv());
}

function saveOutliers() {
  const outliers = shownOutliers();
  if (outliers.length) save(`outliers-${outliers.length}.csv`, "text/csv;charset=utf-8", outliersCsv(outliers));
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
  on("k-number", "change", (event) => takeNumber(event.target));
  on("k-number", "blur", (event) => (event.target.value = state.k)); // what is no number at all is no change
  on("k-less", "click", () => setK(state.k - 1));
  on("k-more", "click", () => setK(state.k + 1));
  on("k-first", "click", () => setK(first.k));
  on("k-knee", "click", () => setK(facts.knee));
  on("t-range", "input", (event) => setT(event.target.valueAsNumber));
  on("t-less", "click", () => setT(state.t - 1));
  on("t-more", "click", () => setT(state.t + 1));
  on("t-first", "click", () => setT(first.t));
  on("t-none", "click", () => setT(0));
  on("save-picks", "click", savePicks);
  on("save-outliers", "click", saveOutliers);
  on("save-all", "click", () => save("selection.json", "application/json", selectionJson()));
  on("copy", "click", copyCommand);
  on("theme", "click", nextTheme);
  for (const button of document.querySelectorAll("[data-colour]")) {
    button.addEventListener("click", () => ((state.colour = button.dataset.colour), wish("points", "marks", "legend")));
  }
  grabbable(curve.svg, (x) => 1 + ((x - LEFT) / curve.page.plot) * (maxK - 1), setK);
  grabbable(histogram.svg, (x) => ((x - LEFT) / histogram.page.plot) * nBins, setT);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? readyToPrint() : printed()));
  addEventListener("beforeprint", readyToPrint);
  addEventListener("afterprint", printed);
}

function resized() {
  if (isPrinting()) return;
  fitMap();
  fitCharts();
  wish("points", "marks", "tip", "curve", "histogram");
}

document.documentElement.classList.add("js");
map.palette = readPalette();
follow();
buildPicks();
fitCharts();
fitMap();
layHands();
byId("map-text").textContent = mapText();
wire();
wish(...Object.keys(painters));
new ResizeObserver(resized).observe(byId("map"));
