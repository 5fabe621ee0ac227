// Rows that a reader marked as fine or wrong. The browser keeps them for this page; nothing is sent anywhere.

const MARKS = [["fine", "✓", "✓ Fine"], ["wrong", "✗", "✗ Wrong"]];
const marksKey = `mosaic marks ${packedFacts.dataset.key}`;
const marks = new Map(); // row → "fine" or "wrong"
let keepsMarks = true; // whether the browser lets the page keep them

try {
  for (const [row, mark] of JSON.parse(localStorage.getItem(marksKey)) ?? []) marks.set(row, mark);
} catch {
  keepsMarks = false;
}

/* Mark a row; the same mark again takes it away. */
function setMark(row, mark) {
  const isGone = marks.get(row) === mark;
  marks.delete(row);
  if (!isGone) marks.set(row, mark);
  marked();
  say(isGone ? `${rowName(row)} is not marked any more.` : `${rowName(row)} is marked as ${mark}.`);
}

function marked() {
  try {
    localStorage.setItem(marksKey, JSON.stringify([...marks]));
  } catch {
    keepsMarks = false;
  }
  repaint("marks", "marked", "pressed");
}

function rowName(row) {
  const i = points.at.get(row);
  return i === undefined ? called(itemOf(row) ?? { row }) : nameOf(i);
}

function markButtons(row, hasWords = false) {
  const buttons = MARKS.map(([mark, sign, words]) => {
    const button = el("button", {
      type: "button", tabIndex: hasWords ? 0 : -1, className: `mark mark-${mark}`, textContent: hasWords ? words : sign, title: `Mark as ${mark}`, "data-mark": `${mark} ${row}`,
      "aria-label": `Mark ${rowName(row)} as ${mark}`, "aria-pressed": String(marks.get(row) === mark),
    });
    button.addEventListener("click", () => setMark(row, mark));
    return button;
  });
  return el("span", { className: "mark-buttons screen-only" }, ...buttons);
}

/* Every pair of buttons on the page shows the mark of its row. */
function paintPressed() {
  for (const button of document.querySelectorAll("[data-mark]")) {
    const [mark, row] = button.dataset.mark.split(" ");
    button.setAttribute("aria-pressed", String(marks.get(Number(row)) === mark));
  }
}

function paintMarked() {
  byId("marked").hidden = !marks.size;
  byId("marked-tally").textContent = whole(marks.size);
  const kept = keepsMarks ? "This browser keeps them for this page." : "This browser does not keep them.";
  byId("marked-text").textContent = `${kept} Save them for the next run: with marks.csv rows that are fine are no outliers.`;
  const rows = [...marks].map(([row, mark]) => {
    const button = el("button", { type: "button", className: "chip", "data-row": row });
    button.append(MARKS.find(([name]) => name === mark)[1], dataText(rowName(row)));
    button.addEventListener("click", () => pin(row));
    return el("li", {}, button);
  });
  byId("marked-list").replaceChildren(...rows);
}

function removeMarks() {
  marks.clear();
  marked();
  say("All marks are removed.");
}

const DRAWN = 30; // outliers that are drawn at random, which bound how many of the list are wrong

/* Some of a list, drawn at random; from the same list of the same page always the same, in the order of the list. */
function drawnFrom(items) {
  let seed = 1 + (parseInt(packedFacts.dataset.key.slice(0, 12), 16) % 2147483646);
  const random = () => (seed = (48271 * seed) % 2147483647); // Lehmer's generator
  for (let warm = 0; warm < 9; warm++) random();
  const keys = new Map(items.map((item) => [item, random()]));
  const drawn = new Set([...items].sort((a, b) => keys.get(a) - keys.get(b)).slice(0, DRAWN));
  return items.filter((item) => drawn.has(item));
}

function toggleDrawn() {
  lists.outliers.isDrawn = !lists.outliers.isDrawn;
  byId("draw").setAttribute("aria-pressed", String(lists.outliers.isDrawn));
  repaint("outliers", "fold");
}

function marksCsv() {
  const list = oddities.slice(0, nOutliersListed());
  const drawn = drawnFrom(list);
  const drawnRows = new Set(drawn.map((item) => item.row));
  const lines = [...marks].map(([row, mark]) => {
    const [item, i] = [itemOf(row), points.at.get(row)];
    const status = (lowOf.has(row) && isOutlier(lowOf.get(row))) || now.out[i] ? "outlier" : rankOf.get(row) < state.k ? "representative" : "";
    const draw = drawnRows.has(row) ? `${drawn.length} of ${list.length}` : "";
    return [row, item?.full ?? rowId(row), mark, status, draw, item?.reason, ...inFileOrder(cellsOf(row))];
  });
  return csv(["row", "id", "mark", "status", "drawn", "reason", ...inFileOrder(facts.columns)], lines);
}

function rowId(row) {
  return rowName(row) === `row ${row}` ? "" : rowName(row);
}
