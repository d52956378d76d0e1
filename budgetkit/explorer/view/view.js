// The explorer's view: it draws what the kernel says, and sends back what the hand does.

function render({ model, el }) {
  let gone = false; // a view that is scrolled away is out of the page for a while, and not gone
  const alive = () => !gone;
  const courier = createCourier(model);
  const post = courier.post;
  const status = createStatus();
  const report = (news) => paintStatus(status, news);
  const uploads = createUploads(model, report);

  const kpis = element("ul", { class: "bk-kpis", "aria-label": "Key figures" });
  const bar = createBar(post);
  const legend = element("ul", { class: "bk-legend", "aria-label": "Sections" });
  const actions = createActions(post);
  const title = element("h3", {}, "What fills the window?");
  const hint = element("p", { class: "bk-note" }, "");
  const barCard = element("section", { class: "bk-card" }, element("div", { class: "bk-header" }, title, actions.root), hint, bar.svg, legend);
  const head = element("div", { class: "bk-view bk-head" }, kpis, status, barCard, bar.tip);

  const source = element("p", { class: "bk-source" });
  const open = fileButton("Open a conversation…", ".jsonl,.json,.ndjson,.txt", (file) => uploads.send(file, "trace"));
  const charts = createCharts(model, alive, post, () => bar.svg.classList.contains("bk-dragging"));
  const takeaway = createTakeaway(model, (file) => uploads.send(file, "setup"), report);
  const strip = element("div", { class: "bk-header bk-strip" }, source, open);
  const body = element("div", { class: "bk-view bk-body" }, strip, charts.root, takeaway.root);

  el.classList.add("bk-host");
  el.append(head, body);

  const hover = (key) => {
    for (const node of [...bar.layers.segments.children, ...legend.children]) {
      node.classList.toggle("bk-faded", Boolean(key) && node.dataset.key !== key);
    }
    charts.highlight(key);
  };
  bar.onHover = charts.onHover = hover;

  const drawState = () => {
    const state = model.get("state");
    if (!state.bar) return;
    courier.landed(state.ack);
    paintKpis(kpis, state.kpis);
    report(state.status);
    bar.draw(state.bar);
    say(hint, state.bar.hint);
    paintLegend(legend, state.bar.segments, hover);
    actions.paint(state.actions);
    say(source, state.source);
    charts.arrange(state.figures);
    put(head, { "data-serial": state.serial });
  };
  const redraw = () => {
    if (model.get("state").bar) bar.draw(model.get("state").bar);
    charts.drawAll();
  };
  const receive = (message, buffers) => {
    if (message.kind === "plotly") unpackPlotly(buffers[0]);
    if (message.kind === "file") uploads.arrived(message);
    if (message.kind === "status") report(message.status);
  };
  const changes = { "change:state": drawState, "change:texts": takeaway.paint, "change:opened": charts.drawAll, "msg:custom": receive };
  for (const key of model.get("figures")) changes[`change:figure_${key}`] = () => charts.draw(key);
  for (const [name, call] of Object.entries(changes)) model.on(name, call);

  const sizes = new ResizeObserver(redraw);
  sizes.observe(bar.svg);
  sizes.observe(charts.root);
  const stops = [watchTheme(body, redraw), () => sizes.disconnect()];
  requestAnimationFrame(() => {
    const box = el.closest(".bk-explorer") ?? el;
    stops.push(guardKeys(box), watchControls(box), undoByKey(box, post));
  });
  drawState();
  takeaway.paint();
  return () => {
    gone = true;
    stops.forEach((stop) => stop());
    for (const [name, call] of Object.entries(changes)) model.off(name, call);
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

export default { render };
