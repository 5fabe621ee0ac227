// The facts, and what follows from them at any number k and any threshold t. Nothing here touches the page.

const facts = JSON.parse(document.getElementById("facts").textContent);
const { ranking, bins, moves, groups } = facts;
const maxK = ranking.length;
const nBins = bins.rows.length;
const first = { k: Math.min(facts.k, maxK), t: bins.threshold };
const state = { k: first.k, t: first.t, pin: -1, hover: -1, colour: groups ? "group" : "pick" };

// ---------------------------------------------------------------- text

const HARD = "\u00a0"; // between a number and its unit

function whole(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function percent(share) {
  // What is not everything must not read as everything.
  const value = share < 1 ? Math.min(100 * share, 99.9) : 100;
  return `${value.toFixed(value === 100 || value === 0 ? 0 : 1)}${HARD}%`;
}

function significant(value, digits = 3) {
  if (value >= 1000) return whole(value);
  return String(Number(value.toPrecision(digits)));
}

function counted(number, noun) {
  return `${whole(number)}${HARD}${noun}${Math.round(number) === 1 ? "" : "s"}`;
}

function called(item) {
  return item.name === null || item.name === undefined ? `row ${item.row}` : item.name;
}

// ---------------------------------------------------------------- the points on the map

function decode(text, Kind) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Kind(bytes.buffer);
}

function unpack(map) {
  if (!map) return null;
  const [x0, x1, y0, y1] = map.range;
  const stretch = (codes, low, high) => Float32Array.from(codes, (code) => low + ((high - low) * code) / 65535);
  // More rows than 32 bits can number come as floats.
  const row = decode(map.row, map.row.length > 8 * map.n + 4 ? Float64Array : Uint32Array);
  return {
    n: map.n,
    x: stretch(decode(map.x, Uint16Array), x0, x1),
    y: stretch(decode(map.y, Uint16Array), y0, y1),
    row,
    bin: decode(map.bin, Uint8Array),
    copies: map.copies ? decode(map.copies, Uint32Array) : new Uint32Array(map.n).fill(1),
    group: map.group ? decode(map.group, Int16Array) : null,
    history: decode(map.history, Uint16Array),
    end: decode(map.history_end, Uint32Array),
    at: new Map(Array.from(row, (r, i) => [r, i])),
  };
}

const points = unpack(facts.map);
const rankOf = new Map(ranking.map((pick, j) => [pick.row, j]));
const lowOf = new Map(facts.lowest.map((item) => [item.row, item]));
const rejects = facts.rejects !== false; // otherwise outliers are only reported
const isWhole = points !== null && facts.map.n === facts.map.of;

function nameOf(i) {
  return facts.map.names?.[i] ?? called(itemOf(points.row[i]) ?? { row: points.row[i] });
}

// ---------------------------------------------------------------- what follows at k and t

const now = {
  struck: new Uint8Array(maxK), // picks that are outliers at this threshold
  shown: [], // ranks of the selection
  rows: new Float64Array(maxK), // rows that each rank stands for
  most: 1, // the largest of them
  about: facts.scaled, // whether these are estimates
  outliers: 0,
  rep: new Int16Array(points ? points.n : 0), // rank that stands for each point, -1: nobody
  out: new Uint8Array(points ? points.n : 0),
};

function below(t, counts = bins.rows) {
  let sum = 0;
  for (let b = 0; b < t; b++) sum += counts[b];
  return sum;
}

// Rows that are protected as a group lie below the threshold and are no outliers; they stay so beyond it.
const spared = Math.max(0, below(first.t) - facts.n_outliers);

function outliersAt(t) {
  if (t === first.t) return facts.n_outliers;
  return t > first.t ? below(t) - spared : Math.min(below(t), facts.n_outliers);
}

// A pick that is below the threshold from the start is there because somebody wanted it.
function isStruck(j, t) {
  return rejects && ranking[j].bin < t && ranking[j].bin >= first.t;
}

/* Rows of each rank by summing up the moves. What a struck pick would have had stays with those it would have come from. */
function followMoves() {
  const stayed = new Map(); // struck rank → [rank, share] of who has its rows
  const holders = (rank) => (rank < 0 ? [] : (stayed.get(rank) ?? [[rank, 1]]));
  now.rows.fill(0);
  for (let j = 0; j < state.k; j++) {
    if (now.struck[j]) {
      const total = moves[j].reduce((sum, move) => sum + move[1], 0) || 1;
      const shares = new Map();
      for (const [from, number] of moves[j]) {
        for (const [rank, share] of holders(from)) shares.set(rank, (shares.get(rank) ?? 0) + (share * number) / total);
      }
      stayed.set(j, [...shares]);
      continue;
    }
    for (const [from, number] of moves[j]) {
      now.rows[j] += number;
      for (const [rank, share] of holders(from)) now.rows[rank] -= share * number;
    }
  }
}

function followPoints() {
  const { history, end, bin, n } = points;
  const { k, t } = state;
  for (let i = 0, start = 0; i < n; i++) {
    let q = end[i] - 1;
    while (q >= start && (history[q] >= k || now.struck[history[q]])) q--;
    now.rep[i] = q >= start ? history[q] : -1;
    now.out[i] = bin[i] < t ? 1 : 0;
    start = end[i];
  }
  for (const j of now.shown) {
    const i = points.at.get(ranking[j].row);
    if (i !== undefined) now.out[i] = 0;
  }
}

// Rows of each bin for one that is on the map: more than one only where the map is thinned.
const rowsPerPoint = new Float64Array(nBins);
if (points) {
  points.bin.forEach((b, i) => (rowsPerPoint[b] += points.copies[i]));
  bins.rows.forEach((rows, b) => (rowsPerPoint[b] = rowsPerPoint[b] > 0 ? rows / rowsPerPoint[b] : 0));
}

/* Moves are about all rows; those that are set aside have nobody. With struck picks only the whole map is exact. */
function setAside(anyStruck) {
  if (anyStruck && isWhole) now.rows.fill(0);
  const sign = anyStruck && isWhole ? 1 : -1;
  for (let i = 0; i < points.n; i++) {
    if (now.rep[i] < 0 || (now.out[i] === 1) !== (sign < 0)) continue;
    now.rows[now.rep[i]] += sign * points.copies[i] * rowsPerPoint[points.bin[i]];
  }
}

function follow() {
  now.shown = [];
  for (let j = 0; j < maxK; j++) {
    now.struck[j] = isStruck(j, state.t) ? 1 : 0;
    if (j < state.k && !now.struck[j]) now.shown.push(j);
  }
  const anyStruck = now.struck.subarray(0, state.k).includes(1);
  followMoves();
  if (points) followPoints();
  if (points && rejects) setAside(anyStruck);
  now.most = now.shown.reduce((most, j) => Math.max(most, now.rows[j]), 1);
  now.about = facts.scaled || (!isWhole && (anyStruck || state.t > (facts.map?.low_complete ?? first.t)));
  now.outliers = outliersAt(state.t);
}

function about(number, noun) {
  const text = noun ? counted(number, noun) : whole(number);
  return now.about ? `about ${text}` : text;
}

/* The sentence as pieces [text, isStrong]. */
function sentence() {
  const outliers = now.outliers === 0 ? "no outliers" : `${facts.scaled ? "about " : ""}${counted(now.outliers, "outlier")}`;
  if (maxK === 0) return [[outliers, true], [" among ", false], [counted(facts.n, "point"), true], [".", false]];
  const k = now.shown.length;
  const isFirst = state.t === first.t;
  const share = k === 0 ? 0 : facts.coverage[state.k - 1];
  const hedge = k < state.k ? "at most " : isFirst ? "" : "about ";
  const pieces = [
    [counted(k, "representative"), true],
    [k === 1 ? " stands for " : " stand for ", false],
    [hedge, false],
    [percent(share), true],
    [` of ${counted(facts.n, "point")}; `, false],
    [outliers, true],
    [now.outliers === 0 ? "" : rejects ? " set aside" : " reported", false],
  ];
  const { excesses, excess: whenChosen, k: proven } = facts.certificate;
  if (whenChosen === null || whenChosen === undefined) return [...pieces, [".", false]];
  const excess = state.k === proven ? whenChosen : (excesses?.[state.k - 1] ?? null);
  if (excess === null || !isFirst) return [...pieces, [`; the proof is for ${whole(proven)}.`, false]];
  const best = state.k === 1 ? "best one" : `best ${whole(state.k)}`;
  const within = `${significant(100 * excess, 2)}${HARD}%`;
  return [...pieces, ["; provably within ", false], [within, true], [` of the ${best}.`, false]];
}

// ---------------------------------------------------------------- the selection as files

function csv(header, lines) {
  const quote = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  return [header, ...lines].map((line) => line.map(quote).join(",") + "\r\n").join("");
}

function shownPicks() {
  return now.shown.map((j) => ({
    rank: j + 1,
    row: ranking[j].row,
    id: ranking[j].name,
    stands_for: Math.round(now.rows[j]),
    cells: ranking[j].cells,
  }));
}

/* Listed outliers first, with all that is known of them; then those that are on the map only. */
function shownOutliers() {
  const listed = facts.lowest
    .filter((item) => isOutlier(item))
    .map((item) => ({ row: item.row, id: item.name, effective_count: item.count, reason: item.reason, cells: item.cells }));
  if (!points) return listed;
  const more = [];
  for (let i = 0; i < points.n; i++) {
    if (now.out[i] && !lowOf.has(points.row[i])) more.push(i);
  }
  more.sort((a, b) => points.bin[a] - points.bin[b] || points.row[a] - points.row[b]);
  const id = (i) => (facts.map.names ? facts.map.names[i] : null);
  return listed.concat(
    more.map((i) => ({ row: points.row[i], id: id(i), effective_count: null, reason: null, cells: [] })),
  );
}

function isOutlier(item) {
  const j = rankOf.get(item.row);
  const isKept = j !== undefined && j < state.k && !now.struck[j];
  return item.bin < state.t && !(rejects && isKept);
}

function picksCsv() {
  const lines = shownPicks().map((pick) => [pick.rank, pick.row, pick.id, pick.stands_for, ...pick.cells]);
  return csv(["rank", "row", "id", "stands_for", ...facts.columns], lines);
}

function outliersCsv() {
  const lines = shownOutliers().map((item) => [item.row, item.id, item.effective_count, item.reason, ...item.cells]);
  return csv(["row", "id", "effective_count", "reason", ...facts.columns], lines);
}

function selectionJson() {
  const named = (cells) => Object.fromEntries(cells.map((cell, c) => [facts.columns[c], cell]));
  const threshold = state.t === 0 ? null : bins.edges[state.t];
  const selection = {
    file: facts.file ? facts.file.name : null,
    n: facts.n,
    k: now.shown.length,
    coverage: state.t === first.t && maxK ? facts.coverage[state.k - 1] : null,
    threshold,
    n_outliers: now.outliers,
    representatives: shownPicks().map((pick) => ({ ...pick, cells: named(pick.cells) })),
    outliers: shownOutliers().map((item) => ({ ...item, cells: named(item.cells) })),
  };
  return JSON.stringify(selection, null, 1);
}
