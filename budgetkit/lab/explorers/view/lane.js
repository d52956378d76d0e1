// A lane: what stands in each request of one policy, drawn as blocks, and told in a sentence.
//
// Time is a number of requests, and not a whole one while something moves: each block goes from its place in one
// request to its place in the next, what is new comes in from the right, and what has left falls out. The stripe below
// is the prompt cache: read, written, gone cold.

const LANE = { top: 4, bar: 40, stripe: 48, thick: 7, fall: 84 };
const CACHE = { cached: "#009e73", written: "#e69f00", cold: "#7d93ad" };
const COLD = ["", "the cache has gone cold: the pause was too long", "the cache is lost: the beginning changed"];

const grouped = (number) => Math.round(number).toLocaleString("en-US").replace("-", "\u2212");
const many = (number, what) => `${grouped(number)} ${what}${number === 1 ? "" : "s"}`;

// What stands in a request, in the order of the prompt: {key, kind, tokens, message}.
function blocksAt(film, track, request) {
  const blocks = [];
  const push = (key, kind, tokens, message, cut) => tokens > 0 && blocks.push({ key, kind, tokens, message, cut });
  const fixed = (list, mark, cuts) => list.forEach(([kind, sizes], i) => push(`${mark}${i}`, kind, sizes[request - 1], undefined, cuts?.[i][request - 1]));
  fixed(track.before, "b", track.cuts);
  const summaries = new Map(track.summaries.filter(([, from, until]) => from <= request && !(until && until <= request)).map((each) => [each[0], each[3]]));
  const back = track.back[request] ?? [];
  film.first.forEach((first, i) => {
    if (summaries.has(i)) push(`s${i}`, track.kind_of_summary, summaries.get(i));
    const left = (track.gone[i] && track.gone[i] <= request) || (track.shrunk[i] && track.shrunk[i] <= request);
    if (first && first <= request && !left) push(`m${i}`, film.kind[i], film.tokens[i], i);
  });
  back.forEach((i) => push(`r${i}`, film.kind[i], film.tokens[i], i));
  fixed(track.after, "a");
  return blocks;
}

// The same with places, in tokens from the beginning of the prompt; the last few are kept.
function placedAt(lane, film, request) {
  if (lane.placed.has(request)) return lane.placed.get(request);
  const found = new Map();
  let x = 0;
  for (const block of blocksAt(film, lane.track, request)) {
    found.set(block.key, { ...block, x });
    x += block.tokens;
  }
  if (lane.placed.size > 6) lane.placed.clear();
  lane.placed.set(request, { found, total: x });
  return lane.placed.get(request);
}

function drawLane(lane, film, time, theme) {
  const { canvas } = lane;
  const width = canvas.clientWidth;
  if (!width) return;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(lane.height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, lane.height);
  const at = Math.min(Math.floor(time), film.turns.length);
  const part = ease(time - at);
  const [before, after] = [placedAt(lane, film, at), placedAt(lane, film, part ? at + 1 : at)];
  const scale = width / lane.most;
  pen.fillStyle = theme.soft;
  pen.fillRect(0, LANE.top, Math.min(width, film.room * scale), LANE.bar);
  pen.font = `600 12px ${theme.font}`;
  const look = { kinds: film.kinds, alarm: theme.alarm };
  for (const [key, block] of before.found) {
    const next = after.found.get(key);
    if (next) drawBlock(pen, look, block, mix(block.x, next.x, part) * scale, mix(block.tokens, next.tokens, part) * scale, 0, 1);
    else drawBlock(pen, look, block, block.x * scale, block.tokens * scale, part * part * (lane.height - LANE.top), 1 - part);
  }
  for (const [key, block] of after.found) {
    if (!before.found.has(key)) drawBlock(pen, look, block, (block.x + (1 - part) * lane.most * 0.08) * scale, block.tokens * scale, 0, part);
  }
  drawCache(pen, lane.track, at, part, scale);
  pen.fillStyle = theme.alarm;
  if (lane.most > film.room) pen.fillRect(film.room * scale - 1, 0, 2, LANE.stripe + LANE.thick + 3);
}

const mix = (a, b, part) => a + (b - a) * part;
const ease = (part) => part * part * (3 - 2 * part);

function drawBlock(pen, look, block, x, width, drop, alpha) {
  const [name, color] = look.kinds[block.kind];
  pen.globalAlpha = alpha;
  pen.fillStyle = color;
  pen.fillRect(x, LANE.top + drop, Math.max(0.4, width > 3 ? width - 1 : width), LANE.bar);
  if (block.message === undefined && width > 34 && textWidth(name, pen.font) + 12 < width) {
    pen.fillStyle = isDark(color) ? "#ffffff" : "#111111";
    pen.fillText(name, x + 6, LANE.top + drop + LANE.bar / 2 + 4);
  }
  pen.fillStyle = look.alarm;
  if (block.cut) pen.fillRect(x + width - 4, LANE.top + drop, 3, LANE.bar); // as the bar marks what loses something
  pen.globalAlpha = 1;
}

function isDark(color) {
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
  return 0.3 * red + 0.59 * green + 0.11 * blue < 120;
}

function drawCache(pen, track, at, part, scale) {
  if (!track.cached) return;
  const value = (name) => mix(track[name][at - 1], track[name][Math.min(at, track[name].length - 1)], part);
  const isCooling = part > 0 && track.cold[at] > 0;
  const [cached, written] = [value("cached"), value("written")];
  pen.fillStyle = CACHE.cached;
  pen.fillRect(0, LANE.stripe, cached * scale, LANE.thick);
  pen.fillStyle = CACHE.written;
  pen.fillRect(cached * scale, LANE.stripe, written * scale, LANE.thick);
  const isCold = !part && track.cold[at - 1] > 0;
  if (!isCooling && !isCold) return;
  const lost = isCold ? track.sent[at - 1] : track.cached[at - 1] + track.written[at - 1];
  pen.globalAlpha = isCold ? 1 : part;
  pen.fillStyle = CACHE.cold;
  pen.fillRect(0, LANE.stripe, lost * scale, isCold ? LANE.thick / 2 : LANE.thick);
  pen.globalAlpha = 1;
}

function nameOf(film, request) {
  const turn = film.turns[request - 1];
  return film.by === "turn" ? `turn ${grouped(turn)}` : `request ${grouped(request)} (turn ${grouped(turn)})`;
}

// What happens at a request, in a sentence.
function toldAt(film, lane, request) {
  const { track } = lane;
  const here = placedAt(lane, film, request).found;
  const was = request > 1 ? placedAt(lane, film, request - 1).found : new Map();
  const isMessage = (block) => block.message !== undefined;
  const came = [...here.values()].filter((block) => isMessage(block) && !was.has(block.key));
  const gone = [...was.values()].filter((block) => isMessage(block) && !here.has(block.key));
  const [short, left] = [true, false].map((is) => gone.filter(({ message }) => (track.shrunk[message] === request) === is));
  const sum = (blocks) => grouped(blocks.reduce((total, { tokens }) => total + tokens, 0));
  const parts = [];
  if (came.length) parts.push(`${many(came.length, "message")} in (${sum(came)} tokens)`);
  if (left.length) parts.push(`${many(left.length, "message")} out (${sum(left)})`);
  if (short.length) parts.push(`${many(short.length, "result")} cut to a placeholder (${sum(short)})`);
  if (track.sent) parts.push(`${grouped(track.sent[request - 1])} sent`);
  if (track.cached) parts.push(`${grouped(track.cached[request - 1])} read from the cache`);
  for (const [name, values] of track.rows ?? []) parts.push(`${name} ${grouped(values[request - 1])}`);
  if (track.cold?.[request - 1]) parts.push(COLD[track.cold[request - 1]]);
  if (track.cost) parts.push(`$${track.cost[request - 1].toFixed(track.cost.at(-1) < 1 ? 4 : 2)} so far`);
  return parts.join("; ");
}

function makeLane(film, track) {
  const height = track.cached ? LANE.fall : LANE.stripe; // without a cache there is nothing below the bar
  const canvas = element("canvas", { class: "bk-lane", role: "img", style: `height:${height}px` });
  const told = element("span", { class: "bk-note" });
  const root = element("div", {}, element("p", { class: "bk-lane-told" }, element("b", {}, track.name), told), canvas);
  const sums = film.turns.map((_, at) => [...track.before, ...track.after].reduce((total, [, sizes]) => total + sizes[at], 0));
  return { track, height, canvas, told, root, placed: new Map(), most: Math.max(film.room, ...(track.sent ?? sums)) };
}
