// The map: points on one canvas, and marks that follow the pointer on a second canvas above it.

const COLOURS = 12;
const HUES = Array.from({ length: COLOURS }, (_, c) => `hue-${c}`);
const DEEPEST = 60; // zoom
const LABELLED = 60; // representatives that are numbered, if there is room

const map = {
  host: document.getElementById("map"),
  under: document.getElementById("map-points"),
  over: document.getElementById("map-marks"),
  width: 0,
  height: 0,
  dpr: 1,
  zoom: 1,
  home: null, // centre and pixels per unit at zoom 1
  cx: 0,
  cy: 0,
  palette: null,
  image: null,
};

/* Colours of the style sheet in the current theme, as an element with them computes them. */
function readPalette() {
  const probe = map.host.appendChild(el("i", { hidden: true }));
  const [card, ink, soft, accent, warm, ...hues] = ["card", "ink", "dust", "accent", "warm", ...HUES].map((name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  const rgb = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);
  return {
    card, ink, soft, accent, warm, hues,
    cardRgb: rgb(card), warmRgb: rgb(warm), softRgb: rgb(soft), accentRgb: rgb(accent), huesRgb: hues.map(rgb),
  };
}

/* The range of the points that belong, and the range of all; outliers beyond the first are drawn at its border. */
function homeRange(values) {
  let low = Infinity, high = -Infinity;
  const inside = [];
  values.forEach((v, i) => {
    low = Math.min(low, v);
    high = Math.max(high, v);
    if (points.bin[i] >= first.t || points.safe[i]) inside.push(v);
  });
  const reach = [low, high];
  const isFilled = views[state.view].method === "neighbours"; // where outliers are says little
  if (inside.length) {
    inside.sort((a, b) => a - b);
    const margin = isFilled ? 0 : Math.floor(0.004 * inside.length);
    let from = inside[margin], to = inside[inside.length - 1 - margin];
    for (const pick of ranking) {
      const i = points.at.get(pick.row);
      if (i !== undefined && (pick.bin >= first.t || pick.safe)) [from, to] = [Math.min(from, values[i]), Math.max(to, values[i])];
    }
    if (isFilled || high - low > 1.5 * (to - from)) [low, high] = [from, to];
  }
  const pad = 0.05 * (high - low) || 1;
  return [low - pad, high + pad, ...reach];
}

function fitMap() {
  const { clientWidth, clientHeight } = map.host;
  if (!clientWidth || !clientHeight) return; // not laid out, as in a hidden frame
  map.width = clientWidth;
  map.height = clientHeight;
  map.dpr = Math.min(window.devicePixelRatio || 1, 2);
  for (const canvas of [map.under, map.over]) {
    canvas.width = Math.round(map.width * map.dpr);
    canvas.height = Math.round(map.height * map.dpr);
  }
  if (!map.home) {
    const [x0, x1, ...xReach] = homeRange(points.x);
    const [y0, y1, ...yReach] = homeRange(points.y);
    map.home = { cx: (x0 + x1) / 2, cy: (y0 + y1) / 2, w: x1 - x0, h: y1 - y0, xReach, yReach };
    [map.cx, map.cy] = [map.home.cx, map.home.cy];
  }
  const { w, h } = map.home;
  let [sx, sy] = [map.width / w, map.height / h];
  // Distances can be compared along principal axes, so both have one scale unless that wastes most of the room.
  const isOneScale = !["features", "neighbours"].includes(views[state.view].method);
  if (isOneScale && Math.max(sx / sy, sy / sx) < 2.2) sx = sy = Math.min(sx, sy);
  [map.home.sx, map.home.sy] = [sx, sy];
}

/* Lay the points out in another way. */
function setView(view) {
  if (view === state.view) return;
  state.view = view;
  Object.assign(points, laidOut(views[view]));
  Object.assign(map, { home: null, zoom: 1 });
  fitMap();
  settle();
  repaint("legend");
}

/* A point has the colour of its value in the chosen column; without one, colour is for the rows of one representative. */
function rgbOf(i, isLit) {
  const { colour } = state;
  if (!colour) return isLit ? map.palette.accentRgb : map.palette.softRgb;
  return map.palette.huesRgb[colour.hues[colour.code[i]]] ?? map.palette.softRgb;
}

function place(i) {
  let x = (points.x[i] - map.cx) * map.home.sx * map.zoom + map.width / 2;
  let y = map.height / 2 - (points.y[i] - map.cy) * map.home.sy * map.zoom;
  if (now.out[i] && map.zoom === 1) {
    x = Math.min(Math.max(x, 7), map.width - 7);
    y = Math.min(Math.max(y, 7), map.height - 7);
  }
  return [x, y];
}

/* The rank whose rows are highlighted: that of the pinned row, or else of the row under the pointer. */
function litRank() {
  const row = state.pin >= 0 ? state.pin : state.hover >= 0 ? points.row[state.hover] : -1;
  if (row < 0) return -1;
  const j = rankOf.get(row);
  if (j !== undefined && j < state.k && !now.struck[j]) return j;
  const i = points.at.get(row);
  return i === undefined ? -1 : now.rep[i];
}

// ---------------------------------------------------------------- painting

/* A shape as distances in an image of this width, and how much of each pixel it covers. */
function stamp(reach, width, coverAt) {
  const steps = [], covers = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const cover = Math.min(Math.max(coverAt(dx, dy), 0), 1);
      if (cover === 0) continue;
      steps.push(4 * (dy * width + dx));
      covers.push(cover);
    }
  }
  return { reach, steps: Int32Array.from(steps), covers: Float64Array.from(covers) };
}

function disc(radius, width) {
  return stamp(Math.ceil(radius), width, (dx, dy) => radius + 0.5 - Math.hypot(dx, dy));
}

function cross(arm, thick, width) {
  const offStroke = (dx, dy) => Math.min(Math.abs(dx - dy), Math.abs(dx + dy)) / Math.SQRT2;
  const beyondEnd = (dx, dy) => Math.max(Math.abs(dx), Math.abs(dy)) - arm;
  return stamp(Math.ceil(arm + 1), width, (dx, dy) => Math.min(thick / 2 + 0.5 - offStroke(dx, dy), 0.5 - beyondEnd(dx, dy)));
}

function dotRadius() {
  const byNumber = 3.3 - 0.62 * Math.log2(Math.max(points.n, 500) / 500) / 2;
  return Math.min(Math.max(byNumber, 1.1) * Math.min(map.zoom ** 0.3, 2.2), 4.5);
}

function paintPoints() {
  if (!map.width) return;
  const context = map.under.getContext("2d");
  const [width, height] = [map.under.width, map.under.height];
  if (map.image?.width !== width || map.image.height !== height) map.image = context.createImageData(width, height);
  const { image } = map;
  const [r, g, b] = map.palette.cardRgb;
  new Uint32Array(image.data.buffer).fill(((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  const lit = litRank();
  for (const pass of lit < 0 ? [0] : [1, 2]) stampDots(image, pass, lit);
  stampCrosses(image, lit);
  context.putImageData(image, 0, 0);
}

/* Pass 0: all points; 1: points that are not highlighted; 2: highlighted points. */
function stampDots(image, pass, lit) {
  const { dpr } = map;
  const { data, width, height } = image;
  const { reach, steps, covers } = disc(dotRadius() * dpr, width);
  const alpha = pass === 1 ? 0.3 : pass === 2 ? 1 : points.n > 10000 ? 0.6 : 0.75;
  const sx = map.home.sx * map.zoom * dpr, sy = map.home.sy * map.zoom * dpr;
  for (let i = 0; i < points.n; i++) {
    if (now.out[i] || (pass && (now.rep[i] === lit) !== (pass === 2))) continue;
    const x = Math.round((points.x[i] - map.cx) * sx + width / 2);
    const y = Math.round(height / 2 - (points.y[i] - map.cy) * sy);
    if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
    press(data, 4 * (y * width + x), steps, covers, alpha, rgbOf(i, pass === 2));
  }
}

function stampCrosses(image, lit) {
  // Many crosses are smaller, so that they hide fewer points.
  const isMany = now.outliers > 300;
  const { data, width, height } = image;
  const { reach, steps, covers } = cross((isMany ? 2.3 : 3.4) * map.dpr, (isMany ? 1.2 : 1.7) * map.dpr, width);
  for (let i = 0; i < points.n; i++) {
    if (!now.out[i]) continue;
    const at = place(i);
    const x = Math.round(at[0] * map.dpr), y = Math.round(at[1] * map.dpr);
    if (x < reach || y < reach || x >= width - reach || y >= height - reach) continue;
    const alpha = lit >= 0 ? (now.rep[i] === lit ? 1 : 0.4) : isMany ? 0.8 : 1;
    press(data, 4 * (y * width + x), steps, covers, alpha, map.palette.warmRgb);
  }
}

function press(data, centre, steps, covers, alpha, rgb) {
  const r = rgb[0], g = rgb[1], b = rgb[2];
  for (let s = 0; s < steps.length; s++) {
    const at = centre + steps[s];
    const a = (256 * alpha * covers[s]) | 0;
    data[at] += ((r - data[at]) * a) >> 8;
    data[at + 1] += ((g - data[at + 1]) * a) >> 8;
    data[at + 2] += ((b - data[at + 2]) * a) >> 8;
  }
}

function paintMarks() {
  if (!map.width) return;
  const { palette } = map;
  // On paper Chromium clears what is below a canvas, too, so there the marks are drawn on the points.
  const context = (isPrinting() ? map.under : map.over).getContext("2d");
  context.setTransform(map.dpr, 0, 0, map.dpr, 0, 0);
  if (!isPrinting()) context.clearRect(0, 0, map.width, map.height);
  const lit = litRank();
  paintRays(context, lit);
  paintPicks(context, lit);
  paintSigns(context);
  const pinned = state.pin < 0 ? undefined : points.at.get(state.pin);
  if (pinned !== undefined) ring(context, place(pinned), 12, palette.ink, 2.5);
  if (state.hover >= 0 && state.hover !== pinned) {
    const j = now.rep[state.hover];
    const to = j < 0 ? undefined : points.at.get(ranking[j].row);
    if (to !== undefined && to !== state.hover) line(context, place(state.hover), place(to), palette.ink);
    const own = rankOf.get(points.row[state.hover]);
    ring(context, place(state.hover), own === j && j >= 0 ? pickRadius(j) + 4 : 8, palette.ink, 1.5);
  }
}

/* Lines to the rows that a representative is most similar to: those that the panel lists. */
function paintRays(context, lit) {
  const from = lit < 0 ? undefined : points.at.get(ranking[lit].row);
  if (from === undefined) return;
  const [x0, y0] = place(from);
  context.strokeStyle = map.palette.ink;
  context.globalAlpha = 0.6;
  context.lineWidth = 1;
  context.beginPath();
  for (const { row } of membersOf(lit, ranking[lit].row)) {
    const to = points.at.get(row);
    if (to === undefined) continue;
    context.moveTo(x0, y0);
    context.lineTo(...place(to));
  }
  context.stroke();
  context.globalAlpha = 1;
}

function pickRadius(j) {
  const crowd = now.shown.length > 120 ? 0.75 : 1;
  return crowd * (4 + 5 * Math.sqrt(Math.max(now.rows[j], 0) / now.most));
}

function paintPicks(context, lit) {
  const { palette } = map;
  const labels = [];
  for (const j of [...now.shown].reverse()) {
    const i = points.at.get(ranking[j].row);
    if (i === undefined) continue;
    const [x, y] = place(i);
    const radius = pickRadius(j);
    context.globalAlpha = lit < 0 || lit === j ? 1 : 0.35;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = `rgb(${rgbOf(i, true)})`;
    context.fill();
    context.lineWidth = 3.5;
    context.strokeStyle = palette.card;
    context.stroke();
    context.lineWidth = 1.75;
    context.strokeStyle = palette.ink;
    context.stroke();
    labels.push([j, x, y, radius]);
  }
  context.globalAlpha = 1;
  if (now.shown.length <= LABELLED * Math.min(map.zoom, 4)) paintNumbers(context, labels.reverse(), lit);
}

function paintNumbers(context, labels, lit) {
  const taken = labels.map(([, x, y, radius]) => [x - radius, y - radius, x + radius, y + radius]);
  context.font = "600 11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  for (const [j, x, y, radius] of labels) {
    if (lit >= 0 && lit !== j) continue;
    const text = String(j + 1);
    const width = context.measureText(text).width;
    const box = [x + radius + 3, y - 6, x + radius + 3 + width, y + 6];
    if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
    taken.push(box);
    context.lineWidth = 3;
    context.strokeStyle = map.palette.card;
    context.strokeText(text, box[0], y + 0.5);
    context.fillStyle = map.palette.ink;
    context.fillText(text, box[0], y + 0.5);
  }
}

/* The signs of marked rows, above their points. */
function paintSigns(context) {
  context.font = "700 14px system-ui, sans-serif";
  context.textAlign = "center";
  context.lineWidth = 4;
  for (const [row, mark] of marks) {
    const i = points.at.get(row);
    if (i === undefined) continue;
    const [x, y] = place(i);
    const sign = MARKS.find(([name]) => name === mark)[1];
    context.strokeStyle = map.palette.card;
    context.strokeText(sign, x, y - 10);
    context.fillStyle = mark === "fine" ? map.palette.accent : map.palette.warm;
    context.fillText(sign, x, y - 10);
  }
  context.textAlign = "start";
}

function ring(context, [x, y], radius, colour, width) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.lineWidth = width + 2.5;
  context.strokeStyle = map.palette.card;
  context.stroke();
  context.lineWidth = width;
  context.strokeStyle = colour;
  context.stroke();
}

function line(context, from, to, colour) {
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.lineWidth = 1.25;
  context.strokeStyle = colour;
  context.stroke();
}
