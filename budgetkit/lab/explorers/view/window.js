// The window: its bar with handles, what it says, and the legend of its sections.

const RESTING = 90; // milliseconds without a move

function createWindow(post) {
  const bar = createBar(post);
  const legend = element("ul", { class: "bk-legend", "aria-label": "Sections" });
  const title = element("h3", {}, "What fills the window?");
  const hint = element("p", { class: "bk-note" }, "");
  const card = element("section", { class: "bk-card bk-window" }, title, hint, bar.svg, legend);
  let hover = () => {};
  return {
    nodes: [card, bar.tip],
    // Whether a hand is moving a handle at this moment; one that rests on it is not.
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
