// Search by name, row number or any cell: matches are listed below the field, and chosen with arrow keys and Enter, or with a click.

const MOST_MATCHES = 8;
const search = { field: document.getElementById("search"), list: document.getElementById("matches"), rows: [], at: -1, index: null };

/* All rows that the page has, with their names in lower case; made when it is first needed. */
function searchIndex() {
  if (search.index) return search.index;
  const rows = new Map(Array.from(points.row, (row, i) => [row, nameOf(i)]));
  for (const item of [...ranking, ...facts.lowest, ...memberOf.values()]) {
    if (item.full || !rows.has(item.row)) rows.set(item.row, item.full ?? called(item));
  }
  search.index = [...rows].sort(([a], [b]) => a - b).map(([row, name]) => ({ row, name, low: name.toLowerCase() }));
  return search.index;
}

/* The cells of a row in lower case; made when no name has the text. */
function cellTextOf(entry) {
  entry.cells ??= cellsOf(entry.row).join("\n").toLowerCase();
  return entry.cells;
}

/* Rows whose name or number is the text, then those whose name begins with it, contains it, and those with a cell that does. */
function matchesOf(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const found = [[], [], [], []];
  for (const entry of searchIndex()) {
    const place = entry.low.indexOf(wanted);
    if (entry.low === wanted || String(entry.row) === wanted) found[0].push(entry);
    else if (place >= 0) found[place ? 2 : 1].push(entry);
    else if (cellTextOf(entry).includes(wanted)) found[3].push(entry);
  }
  return found.flat();
}

function paintMatches() {
  const found = matchesOf(search.field.value);
  search.rows = found.slice(0, MOST_MATCHES).map((entry) => entry.row);
  search.at = Math.min(search.at, search.rows.length - 1);
  const nodes = search.rows.map((row, m) => {
    const node = el("li", { id: `match-${m}`, role: "option", "aria-selected": String(m === search.at) }, dataText(found[m].name));
    if (found[m].name !== `row ${row}`) node.append(el("span", { className: "fine", textContent: `row ${row}` }));
    node.addEventListener("pointerdown", (event) => (event.preventDefault(), goTo(m)));
    return node;
  });
  const isAsked = search.field.value.trim() !== "" && document.activeElement === search.field;
  const left = found.length - search.rows.length;
  const missing = points.n < facts.n && !found.length ? ` The page has ${counted(searchIndex().length, "row")} of ${whole(facts.n)}.` : "";
  const note = found.length ? (left ? `${whole(left)} more` : "") : `No row has this.${missing}`;
  if (note) nodes.push(el("li", { className: "fine", role: "presentation", textContent: note }));
  search.list.replaceChildren(...nodes);
  search.list.hidden = !isAsked;
  search.field.setAttribute("aria-expanded", String(isAsked && found.length > 0));
  if (search.at >= 0) search.field.setAttribute("aria-activedescendant", `match-${search.at}`);
  else search.field.removeAttribute("aria-activedescendant");
  if (isAsked) say(found.length ? `${whole(found.length)} found.` : note);
}

function goTo(m) {
  const row = search.rows[m];
  if (row === undefined) return;
  search.field.value = "";
  search.at = -1;
  paintMatches();
  if (state.pin !== row) pin(row);
  map.host.scrollIntoView({ block: "nearest" });
}

function searchKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && search.rows.length) {
    const from = search.at < 0 && step < 0 ? 0 : search.at;
    search.at = (from + step + search.rows.length) % search.rows.length;
    event.preventDefault();
    paintMatches();
  } else if (event.key === "Enter") {
    event.preventDefault();
    goTo(Math.max(search.at, 0));
  } else if (event.key === "Escape") {
    search.field.value = "";
    search.at = -1;
    paintMatches();
  }
}

function listenToSearch() {
  search.field.addEventListener("input", () => ((search.at = -1), paintMatches()));
  search.field.addEventListener("keydown", searchKey);
  search.field.addEventListener("focus", paintMatches);
  search.field.addEventListener("blur", () => ((search.at = -1), paintMatches()));
}
