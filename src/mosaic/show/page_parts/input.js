// Input on the map: pointer, fingers, wheel and keys.

const fingers = new Map(); // pointers that are down, by id
const REACH = 12; // pixels within which the pointer finds a point
const EDGE = 16; // pixels from the border within which a point is hard to see
const grip = { moved: false, x: 0, y: 0, spread: 0 };

function local(event) {
  const box = map.host.getBoundingClientRect();
  return [event.clientX - box.left - map.host.clientLeft, event.clientY - box.top - map.host.clientTop];
}

/* The point under the pointer; a representative's mark is larger, so it is found from farther away. */
function nearest(x, y) {
  let best = -1;
  let closest = REACH * REACH;
  for (let i = 0; i < points.n; i++) {
    const [px, py] = place(i);
    const d = (px - x) ** 2 + (py - y) ** 2;
    if (d < closest) [best, closest] = [i, d];
  }
  for (const j of now.shown) {
    const i = points.at.get(ranking[j].row);
    if (i === undefined) continue;
    const [px, py] = place(i);
    if (Math.hypot(px - x, py - y) <= pickRadius(j) + 1) best = i;
  }
  return best;
}

/* Zoom by a factor; the place under (x, y) stays where it is. */
function zoomBy(factor, x = map.width / 2, y = map.height / 2) {
  const zoom = Math.min(Math.max(map.zoom * factor, 1), DEEPEST);
  const { sx, sy } = map.home;
  map.cx += ((x - map.width / 2) / sx) * (1 / map.zoom - 1 / zoom);
  map.cy -= ((y - map.height / 2) / sy) * (1 / map.zoom - 1 / zoom);
  map.zoom = zoom;
  settle();
}

function resetView() {
  map.zoom = 1;
  settle();
}

/* The centre of the view stays over the data; at zoom 1 it is their centre. */
function settle() {
  const { cx, cy, w, h, xReach, yReach } = map.home;
  const play = 0.7 - 0.5 / map.zoom;
  const within = (value, middle, size, [low, high]) =>
    Math.min(Math.max(value, Math.min(middle - size * play, low)), Math.max(middle + size * play, high));
  map.cx = map.zoom === 1 ? cx : within(map.cx, cx, w, xReach);
  map.cy = map.zoom === 1 ? cy : within(map.cy, cy, h, yReach);
  map.host.classList.toggle("zoomed", map.zoom > 1);
  repaint("points", "marks", "tip", "zoom");
}

/* Centre the view on a point that is outside of it, or at its edge. */
function reveal(i) {
  const [x, y] = place(i);
  if (x >= EDGE && y >= EDGE && x <= map.width - EDGE && y <= map.height - EDGE) return;
  [map.cx, map.cy] = [points.x[i], points.y[i]];
  settle();
}

function paintZoom() {
  allow("zoom-out", map.zoom > 1);
  allow("zoom-reset", map.zoom > 1);
  allow("zoom-in", map.zoom < DEEPEST);
}

function pinch() {
  const [a, b] = [...fingers.values()];
  const spread = Math.hypot(a[0] - b[0], a[1] - b[1]);
  const [x, y] = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  if (grip.spread > 0) {
    drag(x, y);
    zoomBy(spread / grip.spread, x, y);
  }
  [grip.x, grip.y, grip.spread, grip.moved] = [x, y, spread, true];
}

function drag(x, y) {
  map.cx -= (x - grip.x) / (map.home.sx * map.zoom);
  map.cy += (y - grip.y) / (map.home.sy * map.zoom);
  [grip.x, grip.y] = [x, y];
  settle();
}

function down(event) {
  if (event.button !== 0) return;
  const [x, y] = local(event);
  fingers.set(event.pointerId, [x, y]);
  if (fingers.size === 1) [grip.x, grip.y, grip.moved] = [x, y, false];
  grip.spread = 0;
  // Synthetic pointers cannot be captured.
  if (event.isTrusted) map.host.setPointerCapture(event.pointerId);
}

function move(event) {
  const [x, y] = local(event);
  if (fingers.has(event.pointerId)) {
    fingers.set(event.pointerId, [x, y]);
    if (fingers.size === 2) return pinch();
    if (grip.moved || Math.hypot(x - grip.x, y - grip.y) > 4) {
      grip.moved = true;
      if (map.zoom > 1) return drag(x, y);
    }
    if (event.pointerType !== "mouse") return undefined;
  }
  return hover(nearest(x, y));
}

function up(event) {
  if (!fingers.delete(event.pointerId)) return;
  grip.spread = 0;
  if (fingers.size) [[grip.x, grip.y]] = [...fingers.values()];
  else if (event.type === "pointerup" && !grip.moved) {
    const i = nearest(...local(event));
    hover(i);
    pin(i < 0 ? -1 : points.row[i]);
  }
}

function hover(i) {
  if (i === state.hover) return;
  const before = litRank();
  state.hover = i;
  repaint("marks", "tip", ...(litRank() === before ? [] : ["points"]));
}

/* Rows that arrow keys step through: the representatives that are shown; without any, or from an outlier, the listed outliers. */
function steppedRows() {
  const odd = oddList.shown.map((item) => item.row);
  const row = state.hover >= 0 ? points.row[state.hover] : state.pin;
  return !maxK || odd.includes(row) ? odd : now.shown.map((j) => ranking[j].row);
}

function stepTo(rows, place) {
  if (!rows.length) return;
  const i = points.at.get(rows[(place + rows.length) % rows.length]);
  if (i === undefined) return;
  reveal(i);
  hover(i);
  say(`${describe(i).join(". ")}. Enter pins it.`);
}

/* Keys zoom about the point that was stepped to, so that it stays in view. */
function zoomByKey(factor) {
  zoomBy(factor, ...(state.hover < 0 ? [] : place(state.hover)));
  say(map.zoom === 1 ? "The whole map is shown." : `Zoomed ${significant(map.zoom, 2)} times.`);
}

/* Marks the point that was stepped to, or else the pinned one. */
function markByKey(mark) {
  const row = state.hover >= 0 ? points.row[state.hover] : state.pin;
  if (row >= 0) setMark(row, mark);
}

function keyed(event) {
  if (event.target !== map.host || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = steppedRows();
  const at = rows.indexOf(state.hover >= 0 ? points.row[state.hover] : state.pin);
  const step = (by) => stepTo(rows, at < 0 && by < 0 ? -1 : at + by);
  const acts = {
    ArrowRight: () => step(1),
    ArrowDown: () => step(1),
    ArrowLeft: () => step(-1),
    ArrowUp: () => step(-1),
    Home: () => stepTo(rows, 0),
    End: () => stepTo(rows, -1),
    Enter: () => state.hover >= 0 && pin(points.row[state.hover]),
    " ": () => state.hover >= 0 && pin(points.row[state.hover]),
    Escape: () => (pin(-1), hover(-1)),
    "+": () => zoomByKey(1.5),
    "=": () => zoomByKey(1.5),
    "-": () => zoomByKey(1 / 1.5),
    0: () => zoomByKey(0),
    f: () => markByKey("fine"),
    w: () => markByKey("wrong"),
  };
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function wheel(event) {
  // Without a modifier the wheel belongs to the page.
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.004)), ...local(event));
}

function listenOnMap() {
  const { host } = map;
  host.addEventListener("pointerdown", down);
  host.addEventListener("pointermove", move);
  host.addEventListener("pointerup", up);
  host.addEventListener("pointercancel", up);
  host.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hover(-1));
  host.addEventListener("wheel", wheel, { passive: false });
  host.addEventListener("touchmove", (event) => event.touches.length > 1 && event.preventDefault(), { passive: false });
  host.addEventListener("keydown", keyed);
  host.addEventListener("blur", () => hover(-1));
  document.getElementById("zoom-in").addEventListener("click", () => zoomBy(1.5));
  document.getElementById("zoom-out").addEventListener("click", () => zoomBy(1 / 1.5));
  document.getElementById("zoom-reset").addEventListener("click", resetView);
}
