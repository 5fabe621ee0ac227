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
  byId("marked-text").textContent = keepsMarks
    ? "This browser keeps them for this page. Save them to use them elsewhere."
    : "This browser does not keep them. Save them before you close the page.";
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

function marksCsv() {
  const lines = [...marks].map(([row, mark]) => {
    const [item, i] = [itemOf(row), points.at.get(row)];
    const status = i !== undefined && now.out[i] ? "outlier" : rankOf.get(row) < state.k ? "representative" : "";
    return [row, item?.full ?? rowId(row), mark, status, item?.reason, ...inFileOrder(cellsOf(row))];
  });
  return csv(["row", "id", "mark", "status", "reason", ...inFileOrder(facts.columns)], lines);
}

function rowId(row) {
  return rowName(row) === `row ${row}` ? "" : rowName(row);
}
