// Controls, one repaint for whatever has changed, and the start.

// ---------------------------------------------------------------- painting

function paintSentence() {
  const parts = sentence().split("**").map((text, i) => (i % 2 ? el("strong", { textContent: text }) : text));
  byId("sentence").replaceChildren(...parts);
}

/* The certificate is about the chosen representatives; elsewhere the text says so. */
function paintProof() {
  if (!maxK) return;
  const isHere = state.k === first.k && isProven();
  byId("proof").textContent = isHere ? facts.proof : texts.proof_elsewhere;
}

/* Coverage of the first k; it is known at the threshold of the fit only. */
function shareText() {
  const { k } = state;
  const who = k === 1 ? "the first representative has" : `the first ${whole(k)} representatives have`;
  const share = `${who} a coverage of ${shareOfMost(k)}`;
  const left = now.shown.length;
  if (knowsShare()) return capitalised(share);
  const struck = left < k ? `; at the current threshold ${left ? whole(left) : "none"} of them ${left === 1 ? "is" : "are"} left` : "";
  return `At the threshold of the fit, ${share}${struck}`;
}

function paintNumber() {
  const share = knowsShare() ? percent(facts.coverage[state.k - 1]) : `${whole(now.shown.length)} of them shown`;
  byId("k-range").value = state.k;
  byId("k-range").setAttribute("aria-valuetext", `${counted(state.k, "representative")}, ${share}`);
  if (document.activeElement !== byId("k-number")) byId("k-number").value = state.k;
  allow("k-less", state.k > 1);
  allow("k-more", state.k < maxK);
  byId("k-first").setAttribute("aria-pressed", String(state.k === first.k));
  byId("k-suggested")?.setAttribute("aria-pressed", String(state.k === facts.suggested));
  const beyond = state.k > first.k ? `; ranks beyond ${whole(first.k)} were not chosen` : "";
  const other = ` The ranking is that for ${whole(first.k)}; a fit for ${whole(state.k)} may choose others.`;
  byId("k-text").textContent = `${shareText()}${beyond}.${state.k === first.k ? "" : other}`;
}

function paintControls() {
  if (maxK) paintNumber();
  byId("t-range").value = state.t;
  byId("t-range").setAttribute("aria-valuetext", thresholdText());
  byId("t-count").textContent = whole(now.outliers);
  allow("t-less", state.t > 0);
  allow("t-more", state.t < nBins);
  byId("t-first")?.setAttribute("aria-pressed", String(state.t === first.t));
  byId("t-none").setAttribute("aria-pressed", String(state.t === 0));
  const part = now.outliers ? ` (${percent(now.outliers / facts.n)})` : "";
  byId("t-text").textContent = `${capitalised(thresholdText())}${part}.${safeText()}`;
}

/* Rows that are no outliers whatever their count, by their reason. */
function safeText() {
  if (!below(state.t, bins.safe)) return "";
  const reasons = [];
  const some = (number) => `${facts.scaled ? "about " : ""}${counted(number, "row")}`;
  if (bins.grouped) reasons.push(`${some(bins.grouped)} near other rows or in a group`);
  if (bins.must) reasons.push(`${counted(bins.must, "row")} marked as fine or to be included`);
  return ` Never outliers, however low their count: ${reasons.join(", ")}.`;
}

const painters = {
  sentence: paintSentence, proof: paintProof, controls: paintControls, points: paintPoints, marks: paintMarks, tip: paintTip,
  zoom: paintZoom, curve: paintCurve, histogram: paintHistogram, picks: paintPickList, outliers: paintOutliers, groups: paintGroups,
  detail: paintDetail, legend: paintLegend, lit: paintLit, columns: paintColumns, marked: paintMarked, pressed: paintPressed,
  fold: paintFold,
};
const requested = new Set();
let isWaiting = false;

/* Request parts to be painted. All requested parts are painted once, in the next frame. */
function repaint(...names) {
  for (const name of names) requested.add(name);
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(paintNow);
}

function paintNow() {
  isWaiting = false;
  const names = [...requested];
  requested.clear();
  for (const name of names) painters[name]();
}

let speech = 0;

function say(text) {
  byId("live").textContent = text;
}

/* Screen readers say the sentence once, when the slider has come to rest. */
function changed(...more) {
  follow();
  repaint("sentence", "proof", "controls", "points", "marks", "tip", "curve", "picks", "outliers", "groups", "detail", "columns", ...more, "fold");
  clearTimeout(speech);
  speech = setTimeout(() => say(sentence().replaceAll("**", "")), 600);
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

/* A typed number counts when it is complete: after Enter, an arrow key, or leaving the field. */
function takeNumber(field) {
  if (field.value !== "" && field.validity.valid) setK(field.valueAsNumber);
  else say(`Enter a whole number from 1 to ${whole(maxK)}.`);
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
    // Not every browser gives a local file the clipboard; then the text is selected instead.
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
  repaint("points", "marks", "legend", "columns");
}

function isPrinting() {
  return document.documentElement.classList.contains("printing");
}

/* Both the event and the medium announce a print, in an order that differs between browsers. */
function readyToPrint() {
  if (isPrinting()) return;
  const settings = byId("settings");
  settings.dataset.was = settings.open ? "open" : "";
  settings.open = true;
  document.documentElement.classList.add("printing");
  // A list that was scrolled would be printed without its beginning.
  for (const box of document.querySelectorAll(".scroll")) {
    box.dataset.was = `${box.scrollLeft} ${box.scrollTop}`;
    box.scrollTo(0, 0);
  }
  recolour();
  repaint("outliers");
  paintNow();
}

function printed() {
  if (!isPrinting() || matchMedia("print").matches) return;
  document.documentElement.classList.remove("printing");
  byId("settings").open = byId("settings").dataset.was === "open";
  for (const box of document.querySelectorAll(".scroll[data-was]")) box.scrollTo(...box.dataset.was.split(" ").map(Number));
  recolour();
  repaint("outliers");
}

// ---------------------------------------------------------------- the start

function on(id, event, act) {
  byId(id)?.addEventListener(event, act);
}

function wire() {
  on("k-range", "input", (event) => setK(event.target.valueAsNumber));
  on("k-number", "change", (event) => takeNumber(event.target));
  on("k-number", "blur", (event) => (event.target.value = state.k)); // no valid number, no change
  on("k-less", "click", () => setK(state.k - 1));
  on("k-more", "click", () => setK(state.k + 1));
  on("k-first", "click", () => setK(first.k));
  on("k-suggested", "click", () => setK(facts.suggested));
  on("t-range", "input", (event) => setT(event.target.valueAsNumber));
  on("t-less", "click", () => setT(state.t - 1));
  on("t-more", "click", () => setT(state.t + 1));
  on("t-first", "click", () => setT(first.t));
  on("t-none", "click", () => setT(0));
  on("save-picks", "click", savePicks);
  on("save-outliers", "click", saveOutliers);
  on("save-all", "click", () => save("selection.json", "application/json", selectionJson()));
  on("save-marks", "click", () => save("marks.csv", "text/csv;charset=utf-8", marksCsv()));
  on("draw", "click", toggleDrawn);
  on("remove-marks", "click", removeMarks);
  on("copy", "click", copyCommand);
  on("theme", "click", nextTheme);
  for (const button of document.querySelectorAll("[data-view]")) {
    button.addEventListener("click", () => setView(Number(button.dataset.view)));
  }
  for (const list of document.querySelectorAll("#picks-list, #outliers-list")) {
    list.addEventListener("keydown", stepInList);
    list.addEventListener("focusin", keepStop);
  }
  narrow.addEventListener("change", () => {
    for (const box of document.querySelectorAll(".fold-why")) box.open = !narrow.matches;
  });
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
  repaint("points", "marks", "tip", "curve", "histogram", "fold");
}

document.documentElement.classList.add("js");
map.palette = readPalette();
follow();
buildPicks();
buildOutliers();
buildColours();
buildColumns();
fitCharts();
fitMap();
listenOnMap();
listenToSearch();
wire();
repaint(...Object.keys(painters));
new ResizeObserver(resized).observe(byId("map"));
