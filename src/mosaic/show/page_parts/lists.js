// Lists and tables: representatives, outliers, groups.

const byId = (id) => document.getElementById(id);
const PICTURE = /^data:image\/(png|jpeg|webp|gif);base64,/;
const FEW_OUTLIERS = 24; // outliers that are listed until more are requested
const MOST_CAUSES = 8; // causes that are counted above the list
const NEXT_OUTLIERS = 4; // listed rows that would be the next outliers
const CARD_CELLS = 3; // cells below a picture
const CARD_MEMBERS = 3; // small pictures below a picture

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

/* Only what changes is laid out again. */
function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
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
  const button = el("button", { type: "button", className: "link", tabIndex: -1, "data-row": item.row }, label);
  button.addEventListener("click", () => {
    pin(item.row);
    const { top, bottom, height } = map.host.getBoundingClientRect();
    if (Math.min(bottom, innerHeight) - Math.max(top, 0) < height / 3) map.host.scrollIntoView({ block: "nearest" });
  });
  return button;
}

/* Rows that a row is most like, as text; representatives have those that they stand for. */
function mostLike(members) {
  return members.length ? `most like ${members.slice(0, CARD_MEMBERS).map(called).join(", ")}` : "";
}

/* The first cells, those at fault before others. */
function cellList({ cells, faults }) {
  const list = el("dl", { className: "cells" });
  const order = [...new Set([...faults, ...cells.keys()])].slice(0, CARD_CELLS);
  for (const c of order) {
    const value = el("dd", { className: faultOf(faults, c) }, dataText(cells[c]));
    list.append(el("div", {}, el("dt", {}, dataText(facts.columns[c])), value));
  }
  return list;
}

/* A cell that makes its row an outlier is marked, for those who hear the page, too. */
function faultOf(faults, c) {
  return faults.includes(c) ? "fault" : "";
}

/* Columns of numbers are aligned right. */
const columnKinds = facts.columns.map((_, c) => {
  const cells = [...ranking, ...facts.lowest].map((item) => item.cells[c] ?? "").filter((cell) => cell !== "");
  return cells.length && cells.every((cell) => /^[-+]?[\d.]+(e[-+]?\d+)?$/i.test(cell)) ? "num" : "";
});

/* Short texts, such as dates, stay on one line. */
function shortness(text) {
  return text.length <= 18 ? "short" : "";
}

function kindOf(c) {
  return `${columnKinds[c]}${c >= facts.n_compared ? " folded" : ""}`;
}

function columnHeads() {
  return facts.columns.map((column, c) => ({ label: dataText(column), kind: kindOf(c), value: (item) => item.cells[c] ?? "" }));
}

/* Columns that rows are not compared by come last and are folded. */
const nFolded = facts.columns.length - facts.n_compared;
let showsFolded = false;

function foldButton() {
  const label = showsFolded ? "Hide columns that are not compared" : `Show ${counted(nFolded, "column")} that ${nFolded === 1 ? "is" : "are"} not compared`;
  const button = el("button", { type: "button", className: "fold-columns screen-only", textContent: label });
  button.setAttribute("aria-expanded", String(showsFolded));
  button.addEventListener("click", () => ((showsFolded = !showsFolded), paintFolds()));
  return button;
}

function paintFolds() {
  document.documentElement.classList.toggle("all-columns", showsFolded);
  for (const button of document.querySelectorAll(".fold-columns")) {
    const isHeld = button === document.activeElement;
    const next = foldButton();
    button.replaceWith(next);
    if (isHeld) next.focus();
  }
}

function cellNodes({ cells, faults }) {
  return cells.map((cell, c) => {
    const node = el("td", { className: `${kindOf(c)} ${shortness(cell)} ${faultOf(faults, c)}` }, dataText(cell));
    if (faults.includes(c)) node.title = "makes the row an outlier";
    return node;
  });
}

/* A note, only in print, about columns that are not printed. */
function printNotes(text) {
  return text ? [el("p", { className: "fine print-only", textContent: text })] : [];
}

/* Cards where there are pictures, otherwise a table that can be arranged; and what stands above and below. */
function listed(name, tag, heads) {
  const list = (lists[name] = arrangement(name, heads));
  const box = el("div", { className: "scroll", role: "region", tabIndex: 0, "aria-label": `List of ${name === "picks" ? "representatives" : name}` });
  list.body = el(hasPictures ? tag : "tbody", { className: hasPictures ? "cards" : "" });
  if (hasPictures) {
    box.append(list.body);
    return [box, ...printNotes(texts.not_printed.cards)];
  }
  const line = el("tr", {}, ...heads.map((head, place) => headCell(list, head, place)));
  box.append(el("table", { className: "lines" }, el("thead", {}, line), list.body));
  byId(`save-${name}`).before(...listTools(list));
  return [box, ...(nFolded ? [foldButton()] : []), ...printNotes(texts.not_printed[name])];
}

const narrow = matchMedia("(max-width: 560px)");

/* The reason below a picture; folded on a phone. */
function cardWhy(parts) {
  const inside = parts.filter(Boolean);
  if (!inside.length) return [];
  const box = el("details", { className: "fold-why", open: !narrow.matches });
  box.append(el("summary", { textContent: "Why" }), ...inside);
  return [box];
}

function whyText(text) {
  return text ? el("p", { className: "why", textContent: text }) : null;
}

/* Small pictures of the rows that a row is most like. */
function smallPictures(members, label) {
  const some = members.filter((member) => PICTURE.test(member.picture ?? "")).slice(0, CARD_MEMBERS);
  if (!some.length) return null;
  return el("div", { className: "near", role: "img", "aria-label": `${label}: ${some.map(called).join(", ")}` }, ...some.map((member) => picture(member.picture)));
}

/* The name of a row, which pins it, with the buttons that mark it. */
function nameCell(item, ...notes) {
  return el("th", { scope: "row" }, el("div", {}, pickButton(item, dataText(called(item))), ...notes, markButtons(item.row)));
}

function whyCell(text) {
  return el("td", { className: "why", textContent: text, title: text });
}

/* The cells that make a row an outlier, with their columns. */
function oddCell({ cells, faults }) {
  const parts = faults.flatMap((c) => [dataText(facts.columns[c], "of"), dataText(cells[c] || "missing", "fault")]);
  return el("td", { className: "odd-cell", title: faults.map((c) => `${facts.columns[c]} ${cells[c] || "missing"}`).join(", ") }, ...parts);
}

function buildPicks() {
  if (!maxK) return;
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
        ...cardWhy([whyText(pick.reason), smallPictures(pick.members, "Most like it"), pick.cells.length ? cellList(pick) : null]),
      );
    } else {
      entry.node = el(
        "tr", { className: "pick" },
        el("td", { className: "num rank", textContent: j + 1 }),
        nameCell(pick, entry.note),
        el("td", { className: "num stands" }, entry.stands, bar),
        whyCell(pick.reason || mostLike(pick.members)),
        ...cellNodes(pick),
      );
    }
    pointAt(entry.node, pick.row);
    entries.push(entry);
  });
  const heads = [
    { label: "Rank", kind: "num", value: (pick) => rankOf.get(pick.row) },
    { label: "Name", kind: "", value: called },
    { label: "Stands for", kind: "num", value: (pick) => now.rows[rankOf.get(pick.row)] },
    { label: "Why", kind: "", value: (pick) => pick.reason },
    ...columnHeads(),
  ];
  byId("picks-list").replaceChildren(...listed("picks", "ol", heads));
}

/* What the pointer is over in a list is marked on the map, too. */
function pointAt(node, row) {
  node.addEventListener("pointerenter", () => hover(points.at.get(row) ?? -1));
  node.addEventListener("pointerleave", () => hover(-1));
}

/* The first list of the page shows its beginning, so that the map is in sight, too. */
let isUnfolded = false;
const unfold = el("button", { type: "button", id: "unfold", className: "screen-only", hidden: true });
unfold.addEventListener("click", () => ((isUnfolded = !isUnfolded), paintFold()));

function paintFold() {
  const section = document.querySelector(".first");
  section.classList.toggle("unfolded", isUnfolded);
  const box = section.querySelector(".scroll");
  if (box && !unfold.isConnected) box.after(unfold);
  unfold.hidden = !box || !(isUnfolded || box.scrollHeight > box.clientHeight + 2);
  unfold.textContent = isUnfolded ? "Fold the list" : "Unfold the list";
  unfold.setAttribute("aria-expanded", String(isUnfolded));
}

/* Within its box, not in the page. */
function bringIntoSight(node) {
  const box = node?.closest(".first:not(.unfolded) .scroll");
  if (!box) return;
  const [low, high] = [node.getBoundingClientRect().top - box.getBoundingClientRect().top, node.offsetHeight];
  if (low < 30 || low + high > box.clientHeight) box.scrollTop += low - 40;
}

function paintPickList() {
  if (!maxK) return;
  entries.slice(0, state.k).forEach(({ node, stands, bar, note }, j) => {
    const isOut = now.struck[j] === 1;
    node.classList.toggle("struck", isOut);
    note.hidden = !isOut;
    put(stands, isOut ? "–" : hasPictures ? `stands for ${about(now.rows[j], "row")}` : about(now.rows[j]));
    bar.style.transform = `scaleX(${isOut ? 0 : Math.max(0.01, now.rows[j] / now.most)})`;
  });
  fill(lists.picks.body, arranged(lists.picks, ranking.slice(0, state.k)).map((pick) => entries[rankOf.get(pick.row)].node));
  byId("picks-tally").textContent = whole(now.shown.length);
  allow("save-picks", now.shown.length > 0);
  paintLit();
}

// ---------------------------------------------------------------- outliers

const oddities = facts.lowest.filter((item) => !item.safe); // lowest first, so that outliers are the first of them at any threshold
const oddEntries = new Map(); // their nodes, made when they are first shown
const oddList = { box: null, more: null, notes: null, none: null, shown: [] };
const opened = new Set(); // causes of which all rows are shown
let showsAll = false;

function nOutliersListed() {
  const end = oddities.findIndex((item) => item.bin >= state.t);
  return end < 0 ? oddities.length : end;
}

/* What depends on k and the threshold. */
function whyOdd(item, isNext, reason) {
  if (isNext) return reason ? `would be next: ${reason}` : "would be next";
  const j = now.rep[points.at.get(item.row)] ?? -1;
  if (j < 0 || ranking[j].row === item.row) return reason;
  return `${reason} Representative ${j + 1} stands for it.`.trim();
}

function oddEntry(item) {
  const copies = !facts.scaled && item.copies > 1 ? ` (${item.copies} equal rows)` : "";
  const why = el(hasPictures ? "p" : "td", { className: "why" });
  const parts = [why, smallPictures(item.members, "Nearest rows that belong"), item.cells.length ? cellList(item) : null];
  const node = hasPictures
    ? el(
        "li", { className: "pick odd" },
        el("div", { className: "frame" }, picture(item.picture)),
        el("h3", {}, pickButton(item, dataText(called(item)))), markButtons(item.row),
        el("p", { className: "stands", textContent: `${alike(item)}${copies}` }),
        ...cardWhy(parts),
      )
    : el(
        "tr", { className: "odd" },
        nameCell(item, copies),
        oddCell(item),
        why,
        el("td", { className: "num", textContent: significant(item.count) }),
        ...cellNodes(item),
      );
  pointAt(node, item.row);
  return { node, why, fold: parts.some((part, p) => p && part) ? null : why.parentElement };
}

/* The line above the rows of a cause: how many they are, and whether all of them are shown. */
function causeLine(cause, number, few) {
  const label = `${whole(number)} × ${cause}`;
  const isOpen = showsAll || opened.has(cause);
  const line = el("th", { scope: "rowgroup", colSpan: lists.outliers.heads.length }, dataText(label, ""));
  if (number > few) {
    const button = el("button", { type: "button", className: "link", tabIndex: -1, "data-cause": cause, "aria-expanded": String(isOpen) }, dataText(label, ""));
    button.addEventListener("click", () => (opened.delete(cause) || opened.add(cause), repaint("outliers", "fold")));
    line.replaceChildren(button);
  }
  return el("tr", { className: "cause" }, line);
}

/* What is said where the page or the list does not have all outliers. Equal rows are one point. */
function outlierTexts(nListed) {
  let [n, rows] = [0, 0];
  const count = (copies) => ((n += 1), (rows += facts.scaled ? 1 : copies));
  now.out.forEach((isOut, i) => isOut && count(points.copies[i]));
  for (const item of oddities.slice(0, nListed)) if (!points.at.has(item.row)) count(item.copies);
  const all = `${isEstimate() ? "about " : ""}${whole(now.outliers)}`;
  const notes = [];
  if (rows > n) {
    const part = rows < now.outliers ? ` of ${all}; the others are not on this page` : "";
    notes.push(`${counted(n, "point")}, ${counted(rows, "row")}${part}.`);
  } else if (rows < now.outliers) {
    const isLowest = facts.has_lowest && !isEstimate();
    const some = isLowest ? `the lowest ${whole(n)} of ${all}.` : `${whole(n)} of ${all}, those in the sample. Others may be odder.`;
    notes.push(`This page and the files that it saves have ${some}`);
  }
  if (nListed < n) notes.push(`The list has the lowest ${whole(nListed)}; the others are on the map and in saved files.`);
  return notes.length ? [el("p", { className: "fine", textContent: notes.join(" ") })] : [];
}

function noOutliersText() {
  const isUndetected = !detects && state.t === first.t;
  return isUndetected ? "Outliers were not looked for. Move the threshold to mark some." : "There are no outliers at this threshold.";
}

function buildOutliers() {
  const heads = [
    { label: "Name", kind: "", value: called },
    { label: "Odd cell", kind: "", value: ({ cells, faults }) => cells[faults[0]] ?? "" },
    { label: "Why", kind: "", value: (item) => item.reason },
    { label: "Effective count", kind: "num", value: (item) => item.count },
    ...columnHeads(),
  ];
  const nodes = listed("outliers", "ul", heads);
  Object.assign(oddList, {
    box: nodes.find((node) => node.matches(".scroll")), none: el("p", { className: "fine" }), notes: el("div", {}),
    more: el("button", { type: "button", id: "more-outliers", className: "screen-only" }),
  });
  oddList.more.addEventListener("click", () => ((showsAll = !showsAll), opened.clear(), repaint("outliers", "fold")));
  byId("outliers-list").replaceChildren(oddList.none, ...nodes, oddList.more, oddList.notes);
}

function oddLine(item, isNext) {
  if (!oddEntries.has(item)) oddEntries.set(item, oddEntry(item));
  const { node, why, fold } = oddEntries.get(item);
  const text = whyOdd(item, isNext, item.reason || (hasPictures ? "" : `${alike(item)}.`));
  node.classList.toggle("next", isNext);
  put(why, text);
  if (!hasPictures) why.title = text;
  if (fold) fold.hidden = !text;
  return node;
}

/* The most frequent causes, each with the number of its rows. */
function causesText(parts) {
  const told = [...parts].sort(([, a], [, b]) => b.length - a.length).map(([cause, items]) => `${whole(items.length)} × ${cause}`);
  const left = told.length > MOST_CAUSES ? [`${counted(told.length - MOST_CAUSES, "other cause")}`] : [];
  return `${[...told.slice(0, MOST_CAUSES), ...left].join(", ")}.`;
}

/* Outliers by cause, all or the lowest of each; rows that would be next come after the last one only. */
function paintOutliers() {
  const nListed = nOutliersListed();
  const asked = isAsked(lists.outliers);
  const found = arranged(lists.outliers, oddities.slice(0, nListed));
  const parts = hasPictures || lists.outliers.by !== null ? [["", found]] : byCause(found);
  const showsEach = showsAll || isPrinting() || asked;
  const few = showsEach ? Infinity : Math.max(Math.floor(FEW_OUTLIERS / parts.length), 1);
  const nodes = [];
  oddList.shown = [];
  for (const [cause, items] of parts) {
    const some = opened.has(cause) ? items : items.slice(0, few);
    if (cause) nodes.push(causeLine(cause, items.length, few));
    nodes.push(...some.map((item) => oddLine(item, false)));
    oddList.shown.push(...some);
  }
  if (!asked && oddList.shown.length === nListed) {
    const next = oddities.slice(nListed, nListed + NEXT_OUTLIERS);
    nodes.push(...next.map((item) => oddLine(item, true)));
  }
  if (parts.some(([cause]) => cause)) put(byId("causes"), causesText(parts));
  const { box, none, more, notes } = oddList;
  fill(lists.outliers.body, nodes);
  box.hidden = !nodes.length;
  none.hidden = found.length > 0;
  none.textContent = asked && nListed ? "No outlier has this." : noOutliersText();
  more.hidden = asked || nListed <= FEW_OUTLIERS;
  more.textContent = showsAll ? "Show only the lowest" : `Show all ${whole(nListed)}`;
  notes.replaceChildren(...outlierTexts(nListed));
  byId("outliers-tally").textContent = `${isEstimate() && now.outliers ? "about " : ""}${whole(now.outliers)}`;
  byId("outliers-tally").hidden = !detects && state.t === first.t;
  allow("save-outliers", now.outliers > 0);
  paintLit();
}

/* The pinned row in the lists. */
function paintLit() {
  const light = ({ node }, item) => {
    const isLit = item.row === state.pin;
    node.classList.toggle("lit", isLit);
    if (isLit && node.isConnected) bringIntoSight(node);
  };
  entries.forEach((entry, j) => light(entry, ranking[j]));
  oddEntries.forEach(light);
}

function paintGroups() {
  if (!groups) return;
  const picks = new Array(groups.labels.length).fill(0);
  for (const j of now.shown) if (ranking[j].group >= 0) picks[ranking[j].group]++;
  const body = byId("groups-body");
  const [rough, few] = [groups.is_estimate ? "about " : "", isEstimate() ? "about " : ""];
  groups.labels.forEach((_, g) => {
    const cells = [
      rough + whole(groups.rows[g]), rough + percent(groups.rows[g] / facts.n),
      ...(maxK ? [whole(picks[g]), percent(now.shown.length ? picks[g] / now.shown.length : 0)] : []),
      few + whole(below(state.t, groups.low[g])),
    ];
    cells.forEach((text, c) => put(body.rows[g].cells[c + 1], text));
  });
}
