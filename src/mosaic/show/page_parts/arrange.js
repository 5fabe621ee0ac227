// What a reader asks of a list of rows: an order by a column, a text in any cell, one group; and its one tab stop.

const lists = { picks: null, outliers: null }; // each with its heads, its body, and what is asked

function arrangement(name, heads) {
  return { name, heads, by: null, isDown: false, text: "", group: "", isDrawn: false, body: null };
}

function isAsked({ by, text, group, isDrawn }) {
  return by !== null || text !== "" || group !== "" || isDrawn;
}

function textOf(item) {
  item.low ??= [called(item), item.full, item.reason, item.cause, ...item.cells].join("\n").toLowerCase();
  return item.low;
}

/* Numbers and dates by their size and before texts; what is missing comes last, up or down. */
function compared(a, b, isDown) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const [x, y] = [a, b].map((value) => (typeof value === "number" ? value : [numberOf(value), dayOf(value)].find(Number.isFinite)));
  const isBefore = x !== undefined && y !== undefined ? x - y : (x === undefined) - (y === undefined) || a.localeCompare(b);
  return isDown ? -isBefore : isBefore;
}

/* The rows that have the text and are of the group, in the order that is asked for. */
function arranged({ heads, by, isDown, text, group, isDrawn }, items) {
  const some = isDrawn ? drawnFrom(items) : items;
  const found = some.filter((item) => (group === "" || item.group === Number(group)) && textOf(item).includes(text));
  return by === null ? found : found.sort((a, b) => compared(heads[by].value(a), heads[by].value(b), isDown));
}

/* By a column up, then down, then as at first. */
function sortBy(list, place) {
  [list.by, list.isDown] = list.by !== place ? [place, false] : list.isDown ? [null, false] : [place, true];
  [...list.body.parentElement.querySelectorAll("thead th")].forEach((head, h) => {
    const order = list.isDown ? "descending" : "ascending";
    if (h === list.by) head.setAttribute("aria-sort", order);
    else head.removeAttribute("aria-sort");
  });
  repaint(list.name, "fold");
}

function headCell(list, { label, kind }, place) {
  const button = el("button", { type: "button", className: "sort" }, label);
  button.addEventListener("click", () => sortBy(list, place));
  return el("th", { scope: "col", className: kind }, button);
}

/* A field for a text and, where there are groups, a menu. */
function listTools(list) {
  const field = el("input", { type: "search", placeholder: "Find in any cell", "aria-label": `Find ${list.name} by any cell` });
  field.addEventListener("input", () => ((list.text = field.value.trim().toLowerCase()), repaint(list.name, "fold")));
  if (!groups) return [field];
  const options = groups.labels.map((label, g) => el("option", { value: g, textContent: label }));
  const menu = el("select", { "aria-label": `Group of ${list.name}` }, el("option", { value: "", textContent: "all groups" }), ...options);
  menu.addEventListener("change", () => ((list.group = menu.value), repaint(list.name, "fold")));
  return [field, menu];
}

/* Rows of a list by their cause, the cause of the oddest first. */
function byCause(items) {
  const parts = new Map();
  for (const item of items) parts.set(item.cause, [...(parts.get(item.cause) ?? []), item]);
  return [...parts];
}

/* Show these nodes and no others, in this order; what has the focus keeps it. */
function fill(body, nodes) {
  const held = body.contains(document.activeElement) ? document.activeElement : null;
  const isSame = nodes.length === body.childElementCount && nodes.every((node, n) => node === body.children[n]);
  if (!isSame) body.replaceChildren(...nodes);
  const again = held?.isConnected ? held : [...body.querySelectorAll("[data-cause]")].find((button) => button.dataset.cause === held?.dataset.cause);
  if (held) again?.focus({ preventScroll: true });
  const stops = [...body.querySelectorAll(STOPS)];
  if (!stops.some((stop) => stop.tabIndex === 0)) stops.slice(0, 1).forEach((stop) => (stop.tabIndex = 0));
}

// ---------------------------------------------------------------- one tab stop

const STOPS = "button.link, .mark"; // what arrow keys step to

/* Up and down to the same place of another row, left and right within a row. */
function stepInList(event) {
  const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
  if ((!down && !right) || !event.target.matches(STOPS)) return;
  const stopsOf = (line) => [...line.querySelectorAll(STOPS)].filter((stop) => stop.offsetParent);
  const lines = [...event.currentTarget.querySelectorAll("tbody tr, .cards > li")].filter((line) => stopsOf(line).length);
  const at = lines.indexOf(event.target.closest("tr, li"));
  const line = lines[at + down];
  event.preventDefault();
  if (!line) return;
  const next = stopsOf(line)[Math.max(stopsOf(lines[at]).indexOf(event.target), 0) + right];
  (next ?? (down ? stopsOf(line)[0] : null))?.focus();
}

/* The stop that has the focus is the one that Tab comes back to. */
function keepStop(event) {
  if (!event.target.matches(STOPS)) return;
  for (const stop of event.currentTarget.querySelectorAll(`:is(${STOPS})[tabindex="0"]`)) stop.tabIndex = -1;
  event.target.tabIndex = 0;
}
