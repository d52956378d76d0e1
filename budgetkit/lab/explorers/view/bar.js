// The window as one bar: a segment for each section, the shared pool and the reserves, and a handle for each line.
//
// While a handle is dragged, the page moves the segment and the shared pool by itself; the numbers beside them
// are the kernel's and follow with its next answer.

// Under a finger a handle is as wide as WCAG 2.2 asks of a target, 24 pixels.
const IS_COARSE = matchMedia("(pointer: coarse)").matches;
const BAR = { top: 24, height: 46, lane: 86, knob: 17, gap: IS_COARSE ? 24 : 15, axis: 121, total: 128, pinned: 32 };

function createBar(post) {
  const svg = shape("svg", { class: "bk-bar", role: "group", "aria-label": "Context window by section" });
  const layers = {};
  for (const name of ["bracket", "segments", "end", "axis", "pinned", "handles"]) {
    svg.append((layers[name] = shape("g", { class: `bk-${name}` })));
  }
  const id = `bk-hatch-${Math.random().toString(36).slice(2)}`;
  svg.prepend(hatch(id));
  const tip = element("div", { class: "bk-tip", role: "presentation", popover: "manual" });
  const bar = { svg, tip, layers, post, state: null, moves: new Map(), serial: 0, hatch: `url(#${id})`, onHover: () => {}, onDrag: () => {} };
  bar.draw = (state) => {
    bar.state = state;
    for (const [key, move] of bar.moves) if (move.settled()) bar.moves.delete(key);
    paintBar(bar);
  };
  return bar;
}

function hatch(id) {
  const lines = shape("path", { d: "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4", class: "bk-hatch-line" });
  const pattern = { id, width: 8, height: 8, patternUnits: "userSpaceOnUse" };
  return shape("defs", {}, shape("pattern", pattern, shape("rect", { width: 8, height: 8, class: "bk-hatch" }), lines));
}

// The positions of all parts, in pixels; a moved segment keeps the size that the user gave it until the kernel
// has answered.
function placeBar(bar, width, moves = bar.moves) {
  const { state } = bar;
  const tokensOf = (segment) => {
    const tokens = moves.get(segment.key)?.tokens;
    return tokens === undefined ? segment.tokens : Math.min(tokens, segment.reach ?? tokens);
  };
  const grown = state.segments.reduce((sum, segment) => sum + tokensOf(segment) - segment.tokens, 0);
  const short = Math.min(0, state.pool - grown) - Math.min(0, state.pool); // beyond the pool the remainder gives
  const size = (segment) => {
    if (moves.has(segment.key)) return tokensOf(segment);
    if (segment.key === state.rest) return Math.max(0, segment.tokens + short);
    return segment.kind === "pool" ? Math.max(0, state.pool - grown) : segment.tokens;
  };
  const sizes = state.segments.map(size);
  const total = Math.max(state.window, sizes.reduce((a, b) => a + b, 0), 1);
  let x = 0;
  const places = state.segments.map((segment, i) => {
    const place = { segment, key: segment.key, x, width: (sizes[i] / total) * width };
    x += place.width;
    return place;
  });
  return { places, total, scale: width / total, end: (state.window / total) * width };
}

// Asked for when the page may have changed, and not on every move: the answer makes the browser lay out the page.
function measureBar(bar) {
  bar.width = bar.svg.getBoundingClientRect().width;
  bar.font = getComputedStyle(bar.svg).fontFamily;
}

function paintBar(bar) {
  if (!bar.width) measureBar(bar);
  const { width } = bar;
  if (!width || !bar.state) return;
  const { layers, state } = bar;
  const placed = placeBar(bar, width);
  bar.scale = placed.scale;
  put(bar.svg, { height: BAR.total + (state.pinned ? BAR.pinned : 0) });
  keep(layers.segments, placed.places, (place) => makeSegment(bar, place), (node, place) => paintSegment(bar, node, place));
  const handles = placeHandles(placed.places, width, bar.drag);
  keep(layers.handles, handles, (place) => makeHandle(bar, place.key), (node, place) => paintHandle(bar, node, place));
  paintBracket(layers.bracket, state, placed, width);
  paintEnd(layers.end, state, placed, width);
  paintAxis(layers.axis, state, placed, width);
  paintPinned(layers.pinned, state, placed);
}

function makeSegment(bar, { key }) {
  const parts = ["fill", "used", "edge"].map((name) => shape("rect", { class: `bk-${name}` }));
  const texts = ["name", "tokens"].map((name) => shape("text", { class: `bk-${name}` }));
  const node = shape("g", { class: "bk-segment", role: "img" }, ...parts, ...texts);
  const segment = () => bar.state.segments.find((s) => s.key === key);
  node.addEventListener("pointerenter", () => bar.onHover(key));
  node.addEventListener("pointermove", (event) => showTip(bar.tip, segment()?.tip, event));
  node.addEventListener("pointerleave", () => {
    showTip(bar.tip, null);
    bar.onHover(null);
  });
  return node;
}

function paintSegment(bar, node, { segment, x, width }) {
  const [fill, used, edge, name, tokens] = node.children;
  const inner = Math.max(0, width - 1);
  const { top, height } = BAR;
  put(node, { "aria-label": segment.tip, class: `bk-segment bk-${segment.kind}` });
  put(fill, { x, y: top, width: inner, height, rx: Math.min(3, inner / 2), fill: segment.hatch ? bar.hatch : segment.color });
  const share = segment.used ?? 0;
  put(used, { x: x + 3, y: top + height - 7, width: Math.max(0, (inner - 6) * share), height: 4, rx: 2, style: `fill:${segment.ink}` });
  put(edge, { x: x + inner - 3, y: top, width: segment.cut && inner > 0 ? 3 : 0, height });
  const fits = (text, weight, { size, edge }) => textWidth(text, `${weight} ${size}px ${bar.font}`) + 2 * edge <= inner;
  const named = whatFits(segment.name, (text, room) => fits(text, 600, room));
  const size = fits(segment.text, 400, named.room) ? segment.text : "";
  const style = `fill:${segment.ink};font-size:${named.room.size}px`;
  const long = textWidth(segment.name, `600 10px ${bar.font}`);
  const isUpright = !named.text && inner > 13 && long < height;
  const [left, low] = isUpright ? [x + inner / 2 + 3.5, top + (height + long) / 2] : [x + named.room.edge, top + (size ? 18 : 25)];
  say(put(name, { x: left, y: low, style, transform: isUpright && `rotate(-90 ${left} ${low})` }), isUpright ? segment.name : named.text);
  say(put(tokens, { x: x + named.room.edge, y: top + 33, style }), isUpright ? "" : size);
}

// A long name is set closer, then smaller, then shortened to no less than three letters. In a narrower segment it is
// upright or left out: the line below the bar, the legend and the tip have it.
const ROOMS = [{ size: 12, edge: 7 }, { size: 12, edge: 3 }, { size: 10, edge: 1.5 }];

function whatFits(name, fits) {
  const room = ROOMS.find((each) => fits(name, each)) ?? ROOMS.at(-1);
  const letters = [...name]; // whole characters
  for (let length = letters.length; length >= 3; length--) {
    const text = length < letters.length ? `${letters.slice(0, length).join("")}…` : name;
    if (fits(text, room)) return { text, room };
  }
  return { text: "", room };
}

function paintBracket(layer, state, { places }, width) {
  const reserves = places.filter((p) => p.segment.kind === "reserve" && p.width > 0);
  const split = reserves.length ? reserves[0].x : width;
  const parts = [
    { key: "usable", d: `M1,${BAR.top - 3} v-4 H${Math.max(1, split - 2)} v4`, x: 1, anchor: "start", text: state.usable_text },
    { key: "reserved", d: `M${split},${BAR.top - 3} v-4 H${width - 2} v4`, x: width - 1, anchor: "end", text: state.reserved_text },
  ];
  const shown = reserves.length ? parts : parts.slice(0, 1);
  keep(layer, shown, () => shape("g", {}, shape("path"), shape("text")), (node, part) => {
    put(node.children[0], { d: part.d });
    say(put(node.children[1], { x: part.x, y: 11, "text-anchor": part.anchor }), part.text);
  });
}

function paintEnd(layer, state, { end, total }, width) {
  const over = total > state.window ? [{ key: "end" }] : [];
  const make = () => shape("g", {}, shape("rect"), shape("path"), shape("text"));
  keep(layer, over, make, (node) => {
    const [area, line, text] = node.children;
    put(area, { x: end, y: BAR.top - 3, width: Math.max(0, width - end), height: BAR.height + 6 });
    put(line, { d: `M${end},${BAR.top - 8} V${BAR.axis - 12}` });
    const room = 7 * state.end_text.length; // pixels that the sentence may take
    const isLate = end > width * 0.6;
    const fits = isLate ? end - 5 >= room : width - end - 5 >= room;
    const beside = { x: end + (isLate ? -5 : 5), "text-anchor": isLate ? "end" : "start" };
    put(text, { y: BAR.axis, ...(fits ? beside : { x: width / 2, "text-anchor": "middle" }) });
    say(text, state.end_text);
  });
}

function paintAxis(layer, state, { total, scale }, width) {
  const last = state.ticks.at(-1);
  const room = (tick) => tick === last || (last.at - tick.at) * scale > 22 + 3.5 * (last.text.length + tick.text.length);
  const ticks = total > state.window ? [] : state.ticks.filter(room).map((tick, i) => ({ key: String(i), ...tick }));
  keep(layer, ticks, () => shape("text"), (node, { at, text }) => {
    const x = at * scale;
    const anchor = x < 20 ? "start" : x > width - 20 ? "end" : "middle";
    say(put(node, { x, y: BAR.axis, "text-anchor": anchor }), text);
  });
}

function paintPinned(layer, state, { scale }) {
  const pinned = state.pinned;
  const parts = [];
  let x = 0;
  for (const { key, tokens, color } of pinned?.segments ?? []) {
    parts.push({ key, x, width: tokens * scale, color });
    x += tokens * scale;
  }
  if (pinned) parts.push({ key: "pinned text", text: pinned.text });
  const make = ({ text }) => shape(text === undefined ? "rect" : "text");
  keep(layer, parts, make, (node, part) => {
    if (part.text !== undefined) return void say(put(node, { x: 0, y: BAR.total + 13 }), part.text);
    put(node, { x: part.x, y: BAR.total + 19, width: Math.max(0, part.width - 1), height: 8, rx: 1.5, fill: part.color });
  });
}

// A tip is a popover over the whole page, because an element of JupyterLab confines fixed elements inside it.
function showTip(tip, text, event) {
  const isOpen = tip.matches(":popover-open");
  if (!text || !tip.isConnected) return void (isOpen && tip.hidePopover());
  say(tip, text);
  if (!isOpen) tip.showPopover();
  const { width, height } = tip.getBoundingClientRect();
  const below = event.clientY + 18;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8))}px`;
  tip.style.top = `${below + height > window.innerHeight - 4 ? event.clientY - height - 8 : below}px`;
}

// The handles of the bar: sliders for the pointer and the keyboard, in a lane below it where none hides another.

// An allocation has its handle at the right edge, a reserve at the left one. Overlapping knobs are spread out.
function placeHandles(places, width, drag) {
  const held = places.filter((place) => place.segment.handle);
  const handles = held.map((place) => {
    return { key: place.key, segment: place.segment, edge: edgeOf(place) };
  });
  splitEdges(handles);
  const gap = Math.min(BAR.gap, width / handles.length); // many knobs overlap, but none leaves the bar
  let least = gap / 2;
  for (const handle of handles) {
    handle.knob = Math.max(least, handle.edge);
    least = handle.knob + gap;
  }
  let most = width - gap / 2;
  for (const handle of [...handles].reverse()) {
    handle.knob = Math.min(most, handle.knob);
    most = handle.knob - gap;
  }
  if (drag) followPointer(handles, drag, gap);
  return handles;
}

function edgeOf(place) {
  return place.segment.kind === "reserve" ? place.x : place.x + place.width;
}

// Where edges meet, each line is grabbed on its own side.
const REACH = 5; // pixels

function splitEdges(handles) {
  handles.forEach((handle, i) => {
    const [before, after] = [handles[i - 1], handles[i + 1]];
    handle.left = Math.max(handle.edge - REACH, before ? (before.edge + handle.edge) / 2 : -Infinity);
    handle.right = Math.min(handle.edge + REACH, after ? (after.edge + handle.edge) / 2 : Infinity);
  });
}

// The dragged knob stays under the pointer; its neighbours move aside.
function followPointer(handles, { key, apart }, gap) {
  const held = handles.findIndex((handle) => handle.key === key);
  if (held < 0) return;
  handles[held].knob = handles[held].edge + apart;
  for (let i = held + 1; i < handles.length; i++) handles[i].knob = Math.max(handles[i].knob, handles[i - 1].knob + gap);
  for (let i = held - 1; i >= 0; i--) handles[i].knob = Math.min(handles[i].knob, handles[i + 1].knob - gap);
}

function makeHandle(bar, key) {
  const parts = [shape("path", { class: "bk-leader" }), shape("rect", { class: "bk-hit" })];
  parts.push(shape("rect", { class: "bk-edge-hit" }), shape("rect", { class: "bk-knob" }), shape("path", { class: "bk-grip" }));
  const node = shape("g", { class: "bk-handle", tabindex: 0, role: "slider", "aria-orientation": "horizontal" }, ...parts);
  node.addEventListener("keydown", (event) => pressKey(bar, key, event));
  node.addEventListener("pointerdown", (event) => startDrag(bar, key, node, event));
  node.addEventListener("pointerenter", () => bar.onHover(key));
  node.addEventListener("pointermove", (event) => showTip(bar.tip, bar.moves.size ? null : bar.state.segments.find((s) => s.key === key)?.tip, event));
  node.addEventListener("pointerleave", () => {
    showTip(bar.tip, null);
    bar.onHover(null);
  });
  return node;
}

function paintHandle(bar, node, { segment, edge, knob, left, right }) {
  const [leader, hit, edgeHit, rect, grip] = node.children;
  const { handle } = segment;
  put(node, {
    "aria-label": handle.label,
    "aria-valuemin": handle.min,
    "aria-valuemax": handle.max,
    "aria-valuenow": handle.value,
    "aria-valuetext": handle.text,
    "aria-disabled": handle.locked ? "true" : null,
    class: handle.locked ? "bk-handle bk-locked" : "bk-handle",
  });
  const bottom = BAR.top + BAR.height;
  put(leader, { d: `M${edge},${BAR.top - 2} V${bottom + 3} L${knob},${BAR.lane - 6} V${BAR.lane}` });
  put(hit, { x: knob - BAR.gap / 2, y: BAR.lane - 9, width: BAR.gap, height: 34 });
  put(edgeHit, { x: left, y: BAR.top, width: Math.max(0, right - left), height: BAR.height });
  put(rect, { x: knob - 5.5, y: BAR.lane - 3, width: 11, height: BAR.knob, rx: 4, fill: segment.hatch ? bar.hatch : segment.color });
  const middle = BAR.lane - 3 + BAR.knob / 2;
  const lock = `M${knob - 2.5},${middle - 0.5} h5 v4 h-5 z M${knob - 1.5},${middle - 0.5} v-2 a1.5,1.5 0 0 1 3,0 v2`;
  put(grip, { d: handle.locked ? lock : `M${knob - 1.5},${middle - 4} v8 M${knob + 1.5},${middle - 4} v8`, style: `stroke:${segment.ink}` });
}

function clampTo(handle, tokens) {
  return Math.round(Math.max(handle.min, Math.min(handle.max, tokens)));
}

function pressKey(bar, key, event) {
  const { handle } = bar.state.segments.find((s) => s.key === key);
  const step = event.shiftKey ? handle.page : handle.step;
  // The next step goes on from the last one, also before the kernel answers, and where another line was moved.
  const now = bar.moves.get(key)?.tokens ?? handle.value;
  const steps = { ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step, PageUp: handle.page, PageDown: -handle.page };
  const next = { Home: handle.min, End: handle.max }[event.key] ?? now + steps[event.key];
  if (isNaN(next) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (!handle.locked) moveLine(bar, key, clampTo(handle, next), `key ${key}`);
}

function startDrag(bar, key, node, event) {
  const { handle } = bar.state.segments.find((s) => s.key === key);
  if (event.button !== 0) return;
  event.preventDefault();
  node.focus({ preventScroll: true });
  if (handle.locked) return;
  const gesture = `drag ${key} ${++bar.serial}`;
  const places = placeBar(bar, bar.width).places;
  const own = placeHandles(places, bar.width).find((place) => place.key === key);
  const from = event.clientX;
  bar.drag = { key, apart: own.knob - own.edge };
  bar.onDrag(true);
  const move = (at) => moveLine(bar, key, clampTo(handle, tokensAt(bar, key, own.edge + at.clientX - from)), gesture);
  bar.svg.classList.add("bk-dragging");
  untilLetGo(() => {
    bar.drag = null;
    bar.post({ kind: "rest" });
    bar.onDrag(false);
    paintBar(bar);
    bar.svg.classList.remove("bk-dragging");
  }, move);
}

// The size of a line whose edge is at a position. An overfull bar shrinks, so its scale is not constant.
function tokensAt(bar, key, x) {
  const segment = bar.state.segments.find((s) => s.key === key);
  const { handle, kind, reach } = segment;
  const edgeAt = (tokens) => edgeOf(placeBar(bar, bar.width, new Map([...bar.moves, [key, { tokens }]])).places.find((place) => place.key === key));
  const isShort = (tokens) => (kind === "reserve" ? edgeAt(tokens) > x : edgeAt(tokens) < x);
  const most = Math.max(handle.min, Math.min(handle.max, reach ?? handle.max));
  if (isShort(most)) return most + Math.abs(x - edgeAt(most)) / bar.scale;
  let [low, high] = [handle.min, most];
  for (let i = 0; i < 40 && high - low > 0.01; i++) {
    const middle = (low + high) / 2;
    if (isShort(middle)) low = middle;
    else high = middle;
  }
  return high;
}

function moveLine(bar, key, tokens, gesture) {
  const settled = bar.post({ kind: "size", line: key, size: tokens, gesture });
  bar.moves.set(key, { tokens, settled });
  bar.movedAt = performance.now();
  paintBar(bar);
}

// The window: its bar with handles, the notes around it, and the legend of its sections.

const RESTING = 90; // milliseconds without a move

function createWindow(post) {
  const bar = createBar(post);
  const legend = element("ul", { class: "bk-legend", "aria-label": "Sections" });
  const title = element("h3", {}, "What fills the window?");
  const hint = element("p", { class: "bk-note" }, "");
  const sums = element("p", { class: "bk-sums" });
  const card = element("section", { class: "bk-card bk-window" }, title, hint, bar.svg, sums, legend);
  let hover = () => {};
  return {
    nodes: [card, bar.tip],
    // True while a handle is being moved, but not while the pointer rests on it.
    isMoving: () => bar.svg.classList.contains("bk-dragging") && performance.now() - bar.movedAt < RESTING,
    onHover(call) {
      bar.onHover = hover = call;
    },
    onDrag(call) {
      bar.onDrag = call;
    },
    draw(state) {
      bar.draw(state);
      say(hint, state.hint);
      say(sums, state.sums);
      paintLegend(legend, state.segments, (key) => hover(key));
    },
    // The bar as it would be, and as it is where nothing is offered.
    preview(offered, own) {
      bar.svg.classList.toggle("bk-previewed", Boolean(offered));
      bar.draw(offered ?? own);
    },
    redraw() {
      if (!bar.state) return;
      measureBar(bar);
      bar.draw(bar.state);
    },
    // Show a line that another control moves, before the kernel has answered.
    follow(key, tokens, settled) {
      bar.moves.set(key, { tokens, settled });
      paintBar(bar);
    },
    highlight(key) {
      for (const node of [...bar.layers.segments.children, ...legend.children]) {
        node.classList.toggle("bk-faded", Boolean(key) && node.dataset.key !== key);
      }
    },
  };
}

function paintLegend(list, segments, hover) {
  const make = ({ key }) => {
    const item = element("li", {}, element("span", { class: "bk-swatch", "aria-hidden": "true" }), element("span"), element("b"), element("em"));
    item.addEventListener("pointerenter", () => hover(key));
    item.addEventListener("pointerleave", () => hover(null));
    return item;
  };
  keep(list, segments, make, (item, segment) => {
    const [swatch, name, tokens, cut] = item.children;
    put(swatch, { class: `bk-swatch ${segment.hatch ? "bk-hatched" : ""}`.trim(), style: `--bk-color:${segment.color}` });
    say(name, segment.name);
    say(tokens, segment.text);
    say(cut, segment.cut ?? "");
  });
}
