// The handles of the bar: sliders for the pointer and the keyboard, in a lane below it where none hides another.

// An allocation is held at its right edge, a reserve at its left one. Knobs that would overlap are spread out.
function placeHandles(places, width) {
  const held = places.filter((place) => place.segment.handle);
  const handles = held.map((place) => {
    const edge = place.segment.kind === "reserve" ? place.x : place.x + place.width;
    return { key: place.key, segment: place.segment, edge };
  });
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
  return handles;
}

function makeHandle(bar, key) {
  const parts = [shape("path", { class: "bk-leader" }), shape("rect", { class: "bk-hit" })];
  parts.push(shape("rect", { class: "bk-edge-hit" }), shape("rect", { class: "bk-knob" }), shape("path", { class: "bk-grip" }));
  const node = shape("g", { class: "bk-handle", tabindex: 0, role: "slider", "aria-orientation": "horizontal" }, ...parts);
  node.addEventListener("keydown", (event) => pressKey(bar, key, event));
  node.addEventListener("pointerdown", (event) => startDrag(bar, key, node, event));
  node.addEventListener("pointerenter", () => bar.onHover(key));
  node.addEventListener("pointermove", (event) => showTip(bar.tip, bar.moved ? null : bar.state.segments.find((s) => s.key === key)?.tip, event));
  node.addEventListener("pointerleave", () => {
    showTip(bar.tip, null);
    bar.onHover(null);
  });
  return node;
}

function paintHandle(bar, node, { segment, edge, knob }) {
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
  put(edgeHit, { x: edge - 4, y: BAR.top, width: 8, height: BAR.height });
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
  const now = bar.moved?.key === key ? bar.moved.tokens : handle.value;
  const next = {
    ArrowRight: now + step,
    ArrowUp: now + step,
    ArrowLeft: now - step,
    ArrowDown: now - step,
    PageUp: now + handle.page,
    PageDown: now - handle.page,
    Home: handle.min,
    End: handle.max,
  }[event.key];
  if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (!handle.locked) moveLine(bar, key, clampTo(handle, next), `key ${key}`);
}

function startDrag(bar, key, node, event) {
  const { handle, kind } = bar.state.segments.find((s) => s.key === key);
  if (event.button !== 0) return;
  event.preventDefault();
  node.focus({ preventScroll: true });
  if (handle.locked) return;
  const scale = bar.scale * (kind === "reserve" ? -1 : 1);
  const gesture = `drag ${key} ${++bar.serial}`;
  const from = event.clientX;
  // A line without a cap of its own starts from what it holds, not from the end of its range.
  const start = handle.from ?? handle.value;
  const move = (at) => moveLine(bar, key, clampTo(handle, start + (at.clientX - from) / scale), gesture);
  const done = () => {
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", done);
    window.removeEventListener("pointercancel", done);
    bar.svg.classList.remove("bk-dragging");
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", done);
  window.addEventListener("pointercancel", done);
  bar.svg.classList.add("bk-dragging");
}

function moveLine(bar, key, tokens, gesture) {
  const settled = bar.post({ kind: "line", line: key, tokens, gesture });
  bar.moved = { key, tokens, settled };
  bar.movedAt = performance.now();
  paintBar(bar);
}
