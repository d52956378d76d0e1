// The view of an explorer, in five steps: create the parts, lay them out, connect them, listen, and paint.
//
// The kernel's state is in the traits of the model, and each change of a trait repaints a part. User input goes to the
// kernel as messages, through the courier. `view` holds the parts and is the first argument of each step.

const SETTLING = 100; // milliseconds, until a view is in the page, or until a control rests
// marimo runs dependent cells again after changes by the page, but not after changes by the kernel.
const IS_MARIMO = Boolean(document.querySelector("marimo-filename, marimo-mode"));

function render({ model, el }) {
  const view = createView(model);
  layOut(view, el);
  connect(view);
  const stops = [...listenToKernel(view), ...watchPage(view)];
  paintState(view);
  view.entry.paint(model.get("entry"));
  view.takeaway.paint();
  view.reader.paint();
  view.folds.paint();
  return () => {
    view.isGone = true;
    stops.forEach((stop) => stop());
  };
}

// 1. Create the parts.

function createView(model) {
  const view = { model, isGone: false, stops: [], resting: 0 };
  const { bar, strip, tabs } = model.get("state");
  view.isCard = Boolean(strip);
  view.hasTabs = Boolean(tabs); // the conversation explorer: one figure, and a row of tabs for everything else
  const alive = () => !view.isGone; // a view that is scrolled away leaves the page for a while without being gone
  view.courier = createCourier(model, (isBusy) => put(view.head, { "data-busy": isBusy || null }));
  const { post } = view.courier;
  view.uploads = createUploads(model, (notice) => showStatus(view, notice));
  view.status = createStatus();
  view.kpis = element("ul", { class: "bk-kpis", "aria-label": "Key figures" });
  view.actions = createActions(post);
  view.window = bar ? createWindow(post) : null;
  view.card = createCard(view.isCard);
  view.source = element("summary");
  view.entry = createFileEntry("text" in model.get("entry"), post, fileButtons(view, false));
  view.charts = createCharts(model, alive, post, () => Boolean(view.window?.isMoving()));
  view.tabCharts = createCharts(model, alive, post, () => false);
  view.tabCharts.root.classList.add("bk-folded-figure");
  view.reader = createReader(model);
  view.folds = createFolds(model, alive, (shown) => view.window?.preview(shown, model.get("state").bar));
  view.tabs = view.hasTabs ? createQuestions(model, view.reader, view.tabCharts, view.folds) : null;
  view.takeaway = createTakeaway(model, fileButtons(view, true));
  view.controls = createControls(post, {
    follow: (...moved) => view.window?.follow(...moved),
    steady: (isMoving) => keepHeights(view, isMoving),
  });
  view.controlsBelow = createControls(post); // below the first figure
  return view;
}

function fileButtons(view, isSetup) {
  const wanted = view.model.get("opens").filter(({ purpose }) => (purpose === "setup") === isSetup);
  return wanted.map(({ purpose, label, accept }) => fileButton(label, accept, (file) => view.uploads.send(file, purpose)));
}

// 2. Lay out the parts: controls | head, front, body | dock.

function layOut(view, el) {
  const { isCard, hasTabs, entry, actions, status, kpis, charts, reader, folds } = view;
  const source = element("details", { class: "bk-source" }, view.source);
  const sourceLine = element("div", { class: "bk-header bk-strip" }, source);
  const entryLine = isCard ? element("div", { class: "bk-header bk-strip" }) : sourceLine;
  entryLine.append(entry.line, actions.root);
  const verdict = hasTabs ? [status, kpis] : [kpis, status];
  view.head = element("div", { class: "bk-view bk-head" }, entryLine, entry.facts, ...view.card.above, ...verdict);
  view.front = element("div", { class: "bk-view bk-front" }, ...(view.window?.nodes ?? []), ...view.card.below);
  if (hasTabs) view.front.append(charts.root, view.controlsBelow.root);
  const details = hasTabs ? [view.tabs.root] : [folds.root, charts.root];
  view.body = element("div", { class: "bk-view bk-body" }, ...(isCard ? [sourceLine] : []), ...details, view.takeaway.root);
  const dock = element("div", { class: "bk-view bk-dock" }, ...(hasTabs ? [] : [reader.root]));
  const skip = skipButton(() => view.front.querySelector("[tabindex]") ?? view.body.querySelector("summary"));
  const layout = element("div", { class: "bk-layout" }, view.controls.root, view.head, view.front, view.body, dock);
  view.box = element("div", { class: "bk-explorer" }, skip, layout);
  el.classList.add("bk-host");
  el.append(view.box);
}

// 3. Connect the parts with each other.

function connect(view) {
  const { window: bar, charts, reader, folds } = view;
  const highlight = (section) => {
    bar?.highlight(section);
    charts.highlight(section);
    reader.highlight(section);
  };
  charts.onHover = highlight;
  reader.onHover = highlight;
  bar?.onHover(highlight);
  charts.onClick = reader.expect;
  reader.onAsk = (item) => folds.ask("why", item);
  bar?.onDrag((isMoving) => keepHeights(view, isMoving));
}

// 4. Listen to the kernel and to the page. Both functions return the functions that stop listening.

function listenToKernel(view) {
  const { model, charts, tabCharts, folds } = view;
  const handlers = {
    "change:state": () => paintState(view),
    "change:entry": () => view.entry.paint(model.get("entry")),
    "change:texts": view.takeaway.paint,
    "change:reader": oncePerFrame(view.reader.paint, (paint) => painted().then(paint)),
    "change:opened": () => [charts.drawAll(), view.tabs?.paint(), tabCharts.drawAll(), folds.paint()],
    "change:folds": folds.paint,
    "msg:custom": (message, buffers) => receive(view, message, buffers),
    "comm_live_update": () => showGone(view), // the model reports a stopped kernel; the view of an anywidget does not
  };
  for (const key of model.get("figures")) {
    handlers[`change:figure_${key}`] = () => [charts.draw(key), tabCharts.draw(key)];
  }
  return Object.entries(handlers).map(([name, handle]) => {
    const call = withFullError(handle);
    model.on(name, call);
    return () => model.off(name, call);
  });
}

// ipywidgets keeps only one line of an error in a handler; the page needs the whole error.
function withFullError(handle) {
  return (...values) => {
    try {
      handle(...values);
    } catch (error) {
      reportError(error);
    }
  };
}

function receive(view, message, buffers) {
  if (message.kind === "plotly") unpackPlotly(buffers[0]);
  if (message.kind === "file") view.uploads.arrived(message);
  if (message.kind === "status") showStatus(view, message.status);
  if (message.kind === "shared") message.names.forEach((name, i) => download(name, buffers[i]));
}

function watchPage(view) {
  const { model, box, head, charts, courier } = view;
  const redraw = () => redrawAll(view);
  const sizes = new ResizeObserver(redraw);
  sizes.observe(head);
  sizes.observe(charts.root);
  // A page that is hidden and shown again within a frame, as after a change of theme, does not change its size; an
  // element that is observed anew is reported in any case.
  charts.onHidden = () => {
    sizes.unobserve(charts.root);
    sizes.observe(charts.root);
  };
  const stops = [() => sizes.disconnect(), watchTheme(view.body, redraw), guardKeys(box), undoByKey(box, courier.post)];
  const purpose = model.get("opens").find((opener) => opener.purpose !== "setup")?.purpose;
  if (purpose) stops.push(watchDrops(box, (file) => view.uploads.send(file, purpose)));
  // A view far down a notebook is created before it is put into the page.
  const settle = () => {
    if (view.isGone) return;
    if (!box.isConnected) return void setTimeout(settle, SETTLING);
    view.stops.push(keepInSight(box));
  };
  requestAnimationFrame(settle);
  return [...stops, () => view.stops.forEach((stop) => stop())];
}

// 5. Paint.

function paintState(view) {
  const { model, courier, window: bar, charts } = view;
  const state = model.get("state");
  if (!state.kpis) return;
  courier.landed(state.ack);
  if (IS_MARIMO) runDependentCells(view, state);
  const isBelow = (group) => Boolean(group.under);
  view.controls.paint(state.controls.filter((group) => !isBelow(group)), model.get("choices"));
  view.controlsBelow.paint(state.controls.filter(isBelow), model.get("choices"));
  paintKpis(view.kpis, state.kpis);
  showStatus(view, tellBeside(view.box, state.status));
  bar?.draw(state.bar);
  view.card.paint(state);
  view.actions.paint(state.actions);
  say(put(view.source, { title: state.source }), state.source);
  charts.arrange(view.hasTabs ? state.figures.slice(0, 1) : state.figures);
  view.tabs?.paint();
  view.folds.settle();
  put(view.head, { "data-serial": state.serial });
}

function runDependentCells(view, state) {
  clearTimeout(view.resting);
  const tell = () => {
    view.model.set("rested", state.serial);
    view.model.save_changes();
  };
  if (state.ack) view.resting = setTimeout(tell, SETTLING);
}

function redrawAll(view) {
  fitKpis(view.kpis);
  view.window?.redraw();
  view.charts.drawAll();
  view.tabCharts.drawAll();
  view.folds.redraw();
}

function showStatus(view, notice) {
  const { post } = view.courier;
  const ask = (section) => view.folds.ask("why", section);
  const pick = (name) => post({ kind: "model", name });
  paintStatus(view.status, notice, ask, pick, { folds: view.folds, tell: post });
}

function showGone(view) {
  put(view.box, { inert: "" });
  view.box.classList.add("bk-gone");
  showStatus(view, { level: "note", text: GONE });
}

// Keep the heights of the parts above and below a moving control.
function keepHeights(view, isMoving) {
  for (const node of [view.status, view.kpis, ...view.front.querySelectorAll(".bk-legend")]) {
    node.style.height = isMoving ? `${node.getBoundingClientRect().height}px` : "";
    node.classList.toggle("bk-steady", isMoving);
  }
}

export default { render };
