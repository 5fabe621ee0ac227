// Lists and tables: representatives, outliers, groups.

const byId = (id) => document.getElementById(id);
const PICTURE = /^data:image\/(png|jpeg|webp|gif);base64,/;
const FEW_OUTLIERS = 12; // outliers that are listed until more are requested
const NEXT_OUTLIERS = 4; // listed rows that would be the next outliers
const CARD_CELLS = 3; // cells below a picture

function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element && !key.includes("-")) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/* Text of the data: never markup, with its own direction of writing. */
function dataText(text, kind = "clip") {
  return el("bdi", { className: kind, textContent: text });
}

/* Not the disabled attribute, with which a button loses the focus. */
function allow(button, isAllowed) {
  byId(button).setAttribute("aria-disabled", String(!isAllowed));
}

/* Repaint a part and keep the keyboard focus at the same row or button. */
function keepingFocus(box, paint, otherwise) {
  const held = box.contains(document.activeElement) ? document.activeElement : null;
  paint();
  if (!held || held.isConnected) return;
  const again = held.id ? byId(held.id) : box.querySelector(`button[data-row="${held.dataset.row}"]`);
  (again ?? otherwise())?.focus({ preventScroll: true });
}

function picture(uri) {
  if (!PICTURE.test(uri ?? "")) return el("span", { className: "no-picture" });
  return el("img", { src: uri, alt: "" });
}

const hasPictures = [...ranking, ...facts.lowest].some((item) => PICTURE.test(item.picture ?? ""));

// ---------------------------------------------------------------- representatives

const entries = []; // for each rank the nodes that change

function pickButton(item, label) {
  const button = el("button", { type: "button", className: "link", "data-row": item.row }, label);
  button.addEventListener("click", () => {
    pin(item.row);
    map.host.scrollIntoView({ block: "nearest" });
  });
  return button;
}

function cellList(cells, most = Infinity) {
  const list = el("dl", { className: "cells" });
  cells.slice(0, most).forEach((cell, c) => {
    list.append(el("div", {}, el("dt", {}, dataText(facts.columns[c])), el("dd", {}, dataText(cell))));
  });
  return list;
}

/* Columns of numbers are aligned right. */
const columnKinds = facts.columns.map((_, c) => {
  const cells = [...ranking, ...facts.lowest].map((item) => item.cells[c] ?? "").filter((cell) => cell !== "");
  return cells.length && cells.every((cell) => /^[-+]?[\d.]+(e[-+]?\d+)?$/i.test(cell)) ? "num" : "";
});

function columnHeads() {
  return facts.columns.map((column, c) => [dataText(column), columnKinds[c]]);
}

function cellNode(cell, c) {
  return el("td", { className: columnKinds[c] }, dataText(cell));
}

/* A note, only in print, about columns that are not printed. */
function printNotes(text) {
  return text ? [el("p", { className: "fine print-only", textContent: text })] : [];
}

function scrolling(titled, head, rows) {
  const line = el("tr", {}, ...head.map(([text, kind]) => el("th", { scope: "col", className: kind }, text)));
  const box = el("div", { className: "scroll", role: "region", tabIndex: 0, "aria-labelledby": titled });
  box.append(el("table", {}, el("thead", {}, line), el("tbody", {}, ...rows)));
  return box;
}

/* Cards where there are pictures, otherwise a table. */
function listed(tag, titled, head, nodes, note) {
  if (!hasPictures) return [scrolling(titled, head, nodes), ...printNotes(note)];
  return [el(tag, { className: "cards" }, ...nodes), ...printNotes(texts.not_printed.cards)];
}

function buildPicks() {
  ranking.forEach((pick, j) => {
    const entry = { stands: el("span"), bar: el("span"), note: el("p", { className: "struck-note", hidden: true }) };
    const bar = el("span", { className: "meter", "aria-hidden": "true" }, entry.bar);
    entry.note.textContent = "an outlier at this threshold";
    if (hasPictures) {
      entry.node = el(
        "li", { className: "pick" },
        el("div", { className: "frame" }, picture(pick.picture), el("span", { className: "rank", textContent: j + 1 })),
        el("h3", {}, pickButton(pick, dataText(called(pick)))),
        el("p", { className: "stands" }, entry.stands), bar, entry.note,
        el("p", { className: "why", textContent: pick.reason }), cellList(pick.cells, CARD_CELLS),
      );
    } else {
      entry.node = el(
        "tr", { className: "pick" },
        el("td", { className: "num rank", textContent: j + 1 }),
        el("th", { scope: "row" }, pickButton(pick, dataText(called(pick))), entry.note),
        el("td", { className: "num" }, entry.stands, bar),
        el("td", { className: "why", textContent: pick.reason }),
        ...pick.cells.map(cellNode),
      );
    }
    entries.push(entry);
  });
  const nodes = entries.map((entry) => entry.node);
  const head = [["Rank", "num"], ["Name", ""], ["Stands for", "num"], ["Why", ""], ...columnHeads()];
  byId("picks-list").replaceChildren(...listed("ol", "picks-title", head, nodes, texts.not_printed.picks));
}

function paintPickList() {
  entries.forEach(({ node, stands, bar, note }, j) => {
    node.hidden = j >= state.k;
    if (node.hidden) return;
    const isOut = now.struck[j] === 1;
    node.classList.toggle("struck", isOut);
    node.classList.toggle("lit", ranking[j].row === state.pin);
    note.hidden = !isOut;
    stands.textContent = isOut ? "–" : hasPictures ? `stands for ${about(now.rows[j], "row")}` : about(now.rows[j]);
    bar.style.width = isOut ? "0" : `${Math.max(1, (100 * now.rows[j]) / now.most)}%`;
  });
  byId("picks-tally").textContent = whole(now.shown.length);
  allow("save-picks", now.shown.length > 0);
}

// ---------------------------------------------------------------- outliers

let showsAll = false;

/* The reason of the row, and what depends on k and the threshold. */
function whyOdd(item, isNext) {
  if (isNext) return `would be next: ${item.reason}`;
  const j = now.rep[points.at.get(item.row)] ?? -1;
  if (j < 0 || ranking[j].row === item.row) return item.reason;
  return `${item.reason} Representative ${j + 1} stands for it.`;
}

function outlierNode(item, isNext) {
  const count = significant(item.count);
  const kind = `odd${isNext ? " next" : ""}${item.row === state.pin ? " lit" : ""}`;
  const copies = !facts.scaled && item.copies > 1 ? ` (${item.copies} equal rows)` : "";
  if (hasPictures) {
    return el(
      "li", { className: `pick ${kind}` },
      el("div", { className: "frame" }, picture(item.picture)),
      el("h3", {}, pickButton(item, dataText(called(item)))),
      el("p", { className: "stands", textContent: `effective count ${count}${copies}` }),
      el("p", { className: "why", textContent: whyOdd(item, isNext) }), cellList(item.cells, CARD_CELLS),
    );
  }
  return el(
    "tr", { className: kind },
    el("th", { scope: "row" }, pickButton(item, dataText(called(item))), copies),
    el("td", { className: "num", textContent: count }),
    el("td", { className: "why", textContent: whyOdd(item, isNext) }),
    ...item.cells.map(cellNode),
  );
}

/* The number of outliers on the page, and the number in the list. Equal rows are one point. */
function outlierTexts(nPrinted, nListed) {
  const known = shownOutliers();
  const rows = facts.scaled ? known.length : known.reduce((sum, item) => sum + item.copies, 0);
  const all = facts.scaled ? `about ${whole(now.outliers)}` : whole(now.outliers);
  const notes = [];
  if (hasCopies(known)) {
    const part = rows < now.outliers ? ` of ${all}; the others are not on this page` : "";
    notes.push(`${counted(known.length, "point")}, ${counted(rows, "row")}${part}.`);
  } else if (rows < now.outliers) {
    notes.push(`This page and the files that it saves have the lowest ${whole(known.length)} of ${all}.`);
  }
  if (nListed < known.length) notes.push(`The list has the lowest ${whole(nListed)}; the others are on the map and in saved files.`);
  const parts = notes.length ? [el("p", { className: "fine", textContent: notes.join(" ") })] : [];
  const missing = nListed - nPrinted;
  if (missing > 0) parts.push(...printNotes(`The lowest ${whole(nPrinted)}; ${whole(missing)} more on the page itself.`));
  return parts;
}

function noOutliersText() {
  const isUndetected = !detects && state.t === first.t;
  return isUndetected ? "Outliers were not looked for. Move the threshold to mark some." : "There are no outliers at this threshold.";
}

function paintOutliers() {
  const odd = facts.lowest.filter(isOutlier);
  const some = showsAll ? odd : odd.slice(0, FEW_OUTLIERS);
  const next = facts.lowest.filter((item) => !isOutlier(item) && !item.safe).slice(0, NEXT_OUTLIERS);
  const nodes = [...some.map((item) => outlierNode(item, false)), ...next.map((item) => outlierNode(item, true))];
  const head = [["Name", ""], ["Count", "num"], ["Why", ""], ...columnHeads()];
  const parts = [];
  if (!odd.length) parts.push(el("p", { className: "fine", textContent: noOutliersText() }));
  if (nodes.length) parts.push(...listed("ul", "outliers-title", head, nodes, texts.not_printed.outliers));
  if (odd.length > FEW_OUTLIERS) {
    const label = showsAll ? `Show only the lowest ${FEW_OUTLIERS}` : `Show ${odd.length - FEW_OUTLIERS} more`;
    const more = el("button", { type: "button", id: "more-outliers", className: "screen-only", textContent: label });
    more.addEventListener("click", () => ((showsAll = !showsAll), repaint("outliers")));
    parts.push(more);
  }
  parts.push(...outlierTexts(some.length, odd.length));
  const box = byId("outliers-list");
  keepingFocus(box, () => box.replaceChildren(...parts), () => box.querySelector("[tabindex], button"));
  byId("outliers-tally").textContent = facts.scaled ? `about ${whole(now.outliers)}` : whole(now.outliers);
  byId("outliers-tally").hidden = !detects && state.t === first.t;
  allow("save-outliers", now.outliers > 0);
}

function paintGroups() {
  if (!groups) return;
  const picks = new Array(groups.labels.length).fill(0);
  for (const j of now.shown) if (ranking[j].group >= 0) picks[ranking[j].group]++;
  const lines = groups.labels.map((label, g) => {
    const cells = [
      whole(groups.rows[g]), percent(groups.rows[g] / facts.n), whole(picks[g]),
      percent(now.shown.length ? picks[g] / now.shown.length : 0), whole(below(state.t, groups.low[g])),
    ];
    const numbers = cells.map((text) => el("td", { className: "num", textContent: text }));
    return el("tr", {}, el("th", { scope: "row" }, dataText(label)), ...numbers);
  });
  byId("groups-body").replaceChildren(...lines);
}
