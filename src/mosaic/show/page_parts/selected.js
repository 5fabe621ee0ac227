// The tooltip, the panel of a pinned row, and the legend.

/* A point in short lines: its name, what it is, and its representative. */
function describe(i) {
  const j = rankOf.get(points.row[i]);
  const lines = [nameOf(i)];
  const isPick = j !== undefined && j < state.k;
  if (isPick && !now.struck[j]) lines.push(`Representative ${j + 1}, stands for ${about(now.rows[j], "row")}`);
  if (now.out[i]) lines.push(now.struck[j] && isPick ? `Representative ${j + 1}, an outlier at this threshold` : "Outlier");
  else if (points.safe[i] && points.bin[i] < state.t) lines.push("Never an outlier, though its count is low");
  if (isPick || !maxK || (now.out[i] && rejects)) return lines;
  const rank = now.rep[i];
  lines.push(rank < 0 ? "Without a representative" : `Represented by ${called(ranking[rank])} (representative ${rank + 1})`);
  return lines;
}

function paintTip() {
  const tip = byId("tip");
  tip.hidden = state.hover < 0 || points.row[state.hover] === state.pin; // the panel describes the pinned point
  if (tip.hidden) return;
  const [name, ...lines] = describe(state.hover);
  const item = itemOf(points.row[state.hover]);
  const parts = [el("strong", {}, dataText(name)), ...lines.map((text) => el("span", {}, dataText(text)))];
  tip.replaceChildren(...(item && item.picture ? [picture(item.picture)] : []), el("span", { className: "tip-text" }, ...parts));
  const [x, y] = place(state.hover);
  const [w, h] = [tip.offsetWidth, tip.offsetHeight];
  const inside = (start, size, room) => `${Math.max(Math.min(start, room - size - 6), 6)}px`;
  tip.style.left = inside(x - w / 2, w, map.width);
  tip.style.top = inside(y - h - 14 >= 6 ? y - h - 14 : y + 16, h, map.height);
}

const memberOf = new Map();
for (const item of [...ranking, ...facts.lowest]) for (const member of item.members) memberOf.set(member.row, member);

/* The entry of a row: a ranked row, one of the lowest rows, or a member of a ranked row. */
function itemOf(row) {
  const j = rankOf.get(row);
  return j !== undefined ? ranking[j] : (lowOf.get(row) ?? memberOf.get(row) ?? null);
}

function pin(row) {
  state.pin = row === state.pin ? -1 : row;
  repaint("points", "marks", "tip", "lit", "detail", "columns");
  if (state.pin < 0) return say("Nothing is pinned.");
  const i = points.at.get(row);
  if (i !== undefined) reveal(i);
  return say(`Pinned: ${i === undefined ? called(itemOf(row)) : describe(i).join(". ")}.`);
}

function neighbour(member) {
  const label = [member.picture ? picture(member.picture) : "", dataText(called(member))];
  const button = el("button", { type: "button", className: "chip", "data-row": member.row }, ...label);
  button.addEventListener("click", () => pin(member.row));
  return el("li", {}, button);
}

/* The most similar rows that a rank stands for at this k. */
function membersOf(j, but) {
  return ranking[j].members.filter((member) => {
    const i = points.at.get(member.row);
    return member.row !== but && (i === undefined || now.rep[i] === j);
  });
}

function paintDetail() {
  const panel = byId("detail");
  panel.hidden = state.pin < 0;
  if (panel.hidden) return;
  const row = state.pin;
  const item = itemOf(row);
  const i = points.at.get(row);
  const [name, ...lines] = i === undefined ? [called(item)] : describe(i);
  const close = el("button", { type: "button", className: "quiet close", id: "let-go", "aria-label": "Unpin this point" }, "×");
  close.addEventListener("click", () => (pin(-1), map.host.focus({ preventScroll: true })));
  const text = el("div", { className: "detail-text" }, el("h3", { id: "detail-title", tabIndex: -1 }, dataText(name, "")));
  const numbered = name === `row ${row}` ? [] : [`row ${row}`];
  const count = item && item.count !== undefined ? [alike(item)] : i === undefined ? [] : [binText(i)];
  text.append(el("p", { className: "fine", textContent: [...numbered, ...count].join(" · ") }), markButtons(row, true));
  for (const sentence of lines) text.append(el("p", {}, dataText(sentence, "")));
  if (item && item.reason) text.append(el("p", { className: "why", textContent: item.reason }));
  const parts = [close];
  if (item && item.picture) parts.push(picture(item.picture));
  parts.push(text);
  const rank = litRank();
  parts.push(...comparison(row, rank));
  if (rank >= 0) parts.push(similarRows(rank, row));
  else if (item && item.members && item.members.length) parts.push(company("Nearest rows that belong", item.members));
  keepingFocus(panel, () => panel.replaceChildren(...parts), () => byId("detail-title"));
}

/* Cells of a row beside those of its representative; columns that rows are not compared by are folded. */
function comparison(row, rank) {
  const own = cellsOf(row), faults = itemOf(row)?.faults ?? [];
  if (!own.length) return [];
  const other = rank < 0 || ranking[rank].row === row ? null : cellsOf(ranking[rank].row);
  const heads = ["Column", "This row", ...(other ? [`Representative ${rank + 1}`] : [])];
  const table = (from, to) => {
    const lines = facts.columns.slice(from, to).map((name, place) => {
      const c = from + place;
      const cells = [own, ...(other ? [other] : [])].map((some) => el("td", { className: shortness(some[c] ?? "") }, dataText(some[c] ?? "–")));
      if (faults.includes(c)) cells[0].classList.add("fault");
      const differs = other && own[c] !== null && own[c] !== other[c];
      return el("tr", { className: differs ? "differs" : "" }, el("th", { scope: "row" }, dataText(name)), ...cells);
    });
    const head = el("tr", {}, ...heads.map((text) => el("th", { scope: "col", textContent: text })));
    return el("table", { className: "comparison" }, el("thead", {}, head), el("tbody", {}, ...lines));
  };
  const parts = [table(0, facts.n_compared)];
  if (nFolded) {
    const wasOpen = document.querySelector("#detail .ignored-cells")?.open ?? false;
    parts.push(el("details", { className: "ignored-cells", open: wasOpen }, el("summary", { textContent: "Not compared" }), table(facts.n_compared)));
  }
  if (own.includes(null)) parts.push(el("p", { className: "fine", textContent: "– These cells are not on the page." }));
  return [el("div", { className: "compared" }, ...parts)];
}

function binText(i) {
  const [low, high] = [bins.edges[points.bin[i]], bins.edges[points.bin[i] + 1]].map((edge) => significant(edge));
  return `${low === high ? low : `${low} to ${high}`} of ${whole(facts.compared_with)} rows look like it`;
}

function similarRows(rank, row) {
  const pick = ranking[rank];
  const rows = [...(pick.row === row ? [] : [pick]), ...membersOf(rank, row)];
  return company(pick.row === row ? "Most similar rows that it stands for" : "Its representative, and similar rows", rows);
}

function company(title, rows) {
  const box = el("div", { className: "company" }, el("h4", { textContent: title }));
  if (rows.length) box.append(el("ul", { className: "chips-list" }, ...rows.map(neighbour)));
  else box.append(el("p", { className: "fine", textContent: "None besides itself." }));
  return box;
}

// ---------------------------------------------------------------- legend and text of the map

function sample(kind, hue) {
  const dot = el("span", { className: `sample ${kind}`, "aria-hidden": "true" });
  if (hue !== undefined) dot.style.background = map.palette.hues[hue];
  return dot;
}

function paintLegend() {
  const items = [el("li", {}, sample("cross"), "outlier")];
  if (maxK) items.unshift(el("li", {}, sample("chosen"), "representative, larger if it stands for more rows"));
  if (state.colour) {
    const { labels, hues } = state.colour;
    const coloured = [...hues.keys()].filter((g) => hues[g] >= 0).sort((a, b) => hues[a] - hues[b]);
    items.push(...coloured.map((g) => el("li", {}, sample("dot", hues[g]), dataText(labels[g]))));
    if (coloured.length < hues.length) items.push(el("li", {}, sample("dot"), "other values"));
  } else {
    items.push(el("li", {}, sample("dot"), "other rows"));
    if (maxK) items.push(el("li", {}, sample("member"), "rows of the representative under the pointer, or pinned"));
  }
  byId("legend").replaceChildren(...items);
  byId("map-text").textContent = mapText();
  const press = (name, value) => {
    for (const button of document.querySelectorAll(`[data-${name}]`)) {
      button.setAttribute("aria-pressed", String(button.dataset[name] === String(value)));
    }
  };
  press("view", state.view);
}

function mapText() {
  const { n, of } = facts.map;
  const { axes, method, n_outside: outside } = views[state.view];
  const distinct = of < facts.n && !facts.scaled ? "distinct points" : "points";
  const shown = n < of ? `${whole(n)} of ${whole(of)} ${distinct} shown${maxK ? ", with all representatives" : ""}. ` : "";
  const across = method === "neighbours" ? "Rows that look alike lie together; distances between groups mean little." : method === "features" ? `Horizontal: ${axes[0]}; vertical: ${axes[1]}.` : `Horizontal and vertical: ${axes.join(", ")} (${method}).`;
  const beyond = outside ? ` ${counted(outside, "point")} beyond the frame ${outside === 1 ? "is" : "are"} drawn at its edge.` : "";
  return shown + across + beyond;
}
