// The handles of the bar: sliders for the pointer and the keyboard, in a lane below it where none hides another.

// An allocation is held at its right edge, a reserve at its left one. Knobs that would overlap are spread out.
function placeHandles(places, width, drag) {
  const held = places.filter((place) => place.segment.handle);
  const handles = held.map((place) => {
    return { key: place.key, segment: place.segment, edge: edgeOf(place) };
  });
  splitEdges(handles);
  const { gap } = BAR;
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
  if (drag) followPointer(handles, drag);
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

// The knob that is held stays under the pointer; those beside it make room.
function followPointer(handles, { key, apart }) {
  const held = handles.findIndex((handle) => handle.key === key);
  if (held < 0) return;
  const { gap } = BAR;
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
    bar.onDrag(false);
    paintBar(bar);
    bar.svg.classList.remove("bk-dragging");
  }, move);
}

// The size at which a line's edge stands there. The bar shrinks when it holds too much, so its scale is no constant.
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
  const settled = bar.post({ kind: "line", line: key, tokens, gesture });
  bar.moves.set(key, { tokens, settled });
  bar.movedAt = performance.now();
  paintBar(bar);
}
