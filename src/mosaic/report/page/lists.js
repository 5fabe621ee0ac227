// Lists and tables: representatives, outliers, groups.

const byId = (id) => document.getElementById(id);
const PICTURE = /^data:image\/(png|jpeg|webp|gif);base64,/;
const FEW = 12; // outliers that are listed until somebody asks for more
const NEXT = 4; // rows that would be the next outliers

function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element && !key.includes("-")) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/* Text of the data: never markup, and its direction of writing stays its own. */
function theirs(text, kind = "clip") {
  return el("bdi", { className: kind, textContent: text });
}

function picture(uri) {
  if (!PICTURE.test(uri ?? "")) return el("span", { className: "no-picture" });
  return el("img", { src: uri, alt: "" });
}

const hasPictures = [...ranking, ...facts.lowest].some((item) => PICTURE.test(item.picture ?? ""));

// ---------------------------------------------------------------- representatives

const entries = []; // for each rank the nodes that change

function pickButton(item, label) {
  const button = el("button", { type: "button", className: "link" }, label);
  button.addEventListener("click", () => {
    pin(item.row);
    if (points) map.host.scrollIntoView({ block: "nearest" });
  });
  return button;
}

function cellList(cells, most = Infinity) {
  const list = el("dl", { className: "cells" });
  cells.slice(0, most).forEach((cell, c) => {
    list.append(el("div", {}, el("dt", {}, theirs(facts.columns[c])), el("dd", {}, theirs(cell))));
  });
  return list;
}

/* Columns of numbers are set flush right. */
const columnKinds = facts.columns.map((_, c) => {
  const cells = [...ranking, ...facts.lowest].map((item) => item.cells[c] ?? "").filter((cell) => cell !== "");
  return cells.length && cells.every((cell) => /^[-+]?[\d.]+(e[-+]?\d+)?$/i.test(cell)) ? "num" : "";
});

function columnHeads() {
  return facts.columns.map((column, c) => [theirs(column), columnKinds[c]]);
}

function cellNode(cell, c) {
  return el("td", { className: columnKinds[c] }, theirs(cell));
}

function scrolling(titled, head, rows) {
  const line = el("tr", {}, ...head.map(([text, kind]) => el("th", { scope: "col", className: kind }, text)));
  const box = el("div", { className: "scroll", role: "region", tabIndex: 0, "aria-labelledby": titled });
  box.append(el("table", {}, el("thead", {}, line), el("tbody", {}, ...rows)));
  return box;
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
        el("h3", {}, pickButton(pick, theirs(called(pick)))),
        el("p", { className: "stands" }, entry.stands), bar, entry.note,
        el("p", { className: "why", textContent: pick.reason }), cellList(pick.cells, 3),
      );
    } else {
      entry.node = el(
        "tr", { className: "pick" },
        el("td", { className: "num rank", textContent: j + 1 }),
        el("th", { scope: "row" }, pickButton(pick, theirs(called(pick))), entry.note),
        el("td", { className: "num" }, entry.stands, bar),
        el("td", { className: "why", textContent: pick.reason }),
        ...pick.cells.map(cellNode),
      );
    }
    entries.push(entry);
  });
  const nodes = entries.map((entry) => entry.node);
  const head = [["Rank", "num"], ["Name", ""], ["Stands for", "num"], ["Why", ""], ...columnHeads()];
  byId("picks-list").replaceChildren(
    hasPictures ? el("ol", { className: "cards" }, ...nodes) : scrolling("picks-title", head, nodes),
  );
}

function paintPickList() {
  if (!maxK) return;
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
  byId("save-picks").disabled = now.shown.length === 0;
}

// ---------------------------------------------------------------- outliers

let showsAll = false;

function outlierNode(item, isNext) {
  const count = significant(item.count);
  const kind = `odd${isNext ? " next" : ""}${item.row === state.pin ? " lit" : ""}`;
  if (hasPictures) {
    return el(
      "li", { className: `pick ${kind}` },
      el("div", { className: "frame" }, picture(item.picture)),
      el("h3", {}, pickButton(item, theirs(called(item)))),
      el("p", { className: "stands", textContent: `effective count ${count}` }),
      el("p", { className: "why", textContent: isNext ? "would be next" : item.reason }), cellList(item.cells, 3),
    );
  }
  return el(
    "tr", { className: kind },
    el("th", { scope: "row" }, pickButton(item, theirs(called(item)))),
    el("td", { className: "num", textContent: count }),
    el("td", { className: "why", textContent: isNext ? "would be next" : item.reason }),
    ...item.cells.map(cellNode),
  );
}

function paintOutliers() {
  const odd = facts.lowest.filter(isOutlier);
  const listed = showsAll ? odd : odd.slice(0, FEW);
  const next = odd.length < facts.lowest.length ? facts.lowest.filter((item) => !isOutlier(item)).slice(0, NEXT) : [];
  const nodes = [...listed.map((item) => outlierNode(item, false)), ...next.map((item) => outlierNode(item, true))];
  const head = [["Name", ""], ["Count", "num"], ["Why", ""], ...columnHeads()];
  const parts = [];
  if (!odd.length) parts.push(el("p", { className: "fine", textContent: "Nothing is set aside at this threshold." }));
  if (nodes.length && hasPictures) parts.push(el("ul", { className: "cards" }, ...nodes));
  else if (nodes.length) parts.push(scrolling("outliers-title", head, nodes));
  if (odd.length > FEW) {
    const label = showsAll ? `Show the first ${FEW}` : `Show ${odd.length - FEW} more`;
    const more = el("button", { type: "button", id: "more-outliers", className: "screen-only", textContent: label });
    more.addEventListener("click", () => ((showsAll = !showsAll), wish("outliers")));
    parts.push(more);
  }
  const known = shownOutliers().length;
  if (known < now.outliers) {
    const text = `The ${whole(known)} lowest of ${whole(now.outliers)} are in this page, and in what it saves.`;
    parts.push(el("p", { className: "fine", textContent: text }));
  }
  byId("outliers-list").replaceChildren(...parts);
  byId("outliers-tally").textContent = facts.scaled ? `about ${whole(now.outliers)}` : whole(now.outliers);
  byId("save-outliers").disabled = known === 0;
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
    return el("tr", {}, el("th", { scope: "row" }, theirs(label)), ...numbers);
  });
  byId("groups-body").replaceChildren(...lines);
}
