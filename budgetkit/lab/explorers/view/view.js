// The design card: a headline over the key figures, and under the bar how far off a cheap count is.

function createCard(isCard, actions) {
  if (!isCard) return { over: [], under: [], paint: () => {} };
  const over = element("p", { class: "bk-over" });
  const title = element("h2", {});
  const text = element("p", { class: "bk-sentence" });
  const top = element("div", { class: "bk-header" }, element("div", {}, over, title), actions.root);
  const strip = createStrip();
  const paint = (state) => {
    say(over, state.headline.over);
    say(title, state.headline.title);
    say(text, state.headline.text);
    strip.paint(state.strip);
  };
  return { over: [element("div", { class: "bk-headline" }, top, text)], under: [strip.root], paint };
}

// An explorer's view: it draws what the kernel says, and sends back what the hand does.

const SETTLING = 100; // milliseconds between two looks whether a view is in the page
// marimo runs dependent cells again for what the page sets, and not for what the kernel does.
const IS_MARIMO = Boolean(document.querySelector("marimo-filename, marimo-mode"));

// ipywidgets catches what fails while a change is shown and keeps one line of it: the page is to get it whole.
function told(call) {
  return (...given) => {
    try {
      call(...given);
    } catch (error) {
      reportError(error);
    }
  };
}

function render({ model, el }) {
  let resting = 0; // the timer that tells that the hand rests
  let gone = false; // a view that is scrolled away is out of the page for a while, and not gone
  const alive = () => !gone;
  const courier = createCourier(model, (isBusy) => put(head, { "data-busy": isBusy || null }));
  const status = createStatus();
  const report = (news) => paintStatus(status, news, (of) => folds.ask("why", of), (name) => courier.post({ kind: "model", name }), { folds, tell: courier.post });
  const uploads = createUploads(model, report);
  const opens = (isSetup) => {
    const wanted = model.get("opens").filter(({ purpose }) => (purpose === "setup") === isSetup);
    return wanted.map(({ purpose, label, accept }) => fileButton(label, accept, (file) => uploads.send(file, purpose)));
  };

  const kpis = element("ul", { class: "bk-kpis", "aria-label": "Key figures" });
  const actions = createActions(courier.post);
  const hasBar = Boolean(model.get("state").bar);
  const pane = hasBar ? createWindow(courier.post) : null;
  const isCard = Boolean(model.get("state").strip);
  const card = createCard(isCard, actions);
  const provenance = element("summary");
  const source = element("details", { class: "bk-source" }, provenance);
  const door = createDoor("text" in model.get("door"), courier.post, opens(false));
  const strip = element("div", { class: "bk-header bk-strip" }, source, ...(isCard ? [] : [door.line, actions.root]));
  const top = isCard ? [element("div", { class: "bk-header bk-strip" }, door.line, actions.root), door.facts, ...card.over] : [strip, door.facts];
  // What a conversation comes to is one sentence, its window and its rules; all else is a row of tabs below.
  const isStory = Boolean(model.get("state").tabs);
  const head = element("div", { class: "bk-view bk-head" }, ...top, ...(isStory ? [status, kpis] : [kpis, status]));
  const front = element("div", { class: "bk-view bk-front" }, ...(pane ? pane.nodes : []), ...card.under);

  const charts = createCharts(model, alive, courier.post, () => Boolean(pane?.isMoving()));
  const reader = createReader(model);
  const folds = createFolds(model, alive, (bar) => pane?.preview(bar, model.get("state").bar));
  const takeaway = createTakeaway(model, opens(true));
  const more = createCharts(model, alive, courier.post, () => false);
  more.root.classList.add("bk-folded-figure");
  const questions = isStory ? createQuestions(model, reader, more, folds) : null;
  const under = createControls(courier.post);
  if (isStory) front.append(charts.root, under.root);
  const below = isStory ? [questions.root] : [folds.root, charts.root];
  const body = element("div", { class: "bk-view bk-body" }, ...(isCard ? [strip] : []), ...below, takeaway.root);
  const dock = element("div", { class: "bk-view bk-dock" }, ...(isStory ? [] : [reader.root]));

  el.classList.add("bk-host");
  const controls = createControls(courier.post, { follow: (...moved) => pane?.follow(...moved), steady: (on) => steady(on) });
  const skip = skipButton(() => front.querySelector("[tabindex]") ?? body.querySelector("summary"));
  const box = element("div", { class: "bk-explorer" }, skip, element("div", { class: "bk-layout" }, controls.root, head, front, body, dock));
  el.append(box);

  const hover = (key) => {
    pane?.highlight(key);
    charts.highlight(key);
    reader.highlight(key);
  };
  charts.onHover = reader.onHover = hover;
  charts.onClick = reader.expect;
  reader.onAsk = (of) => folds.ask("why", of);
  if (pane) pane.onHover(hover);

  const drawState = () => {
    const state = model.get("state");
    if (!state.kpis) return;
    courier.landed(state.ack);
    if (IS_MARIMO) {
      clearTimeout(resting);
      if (state.ack) resting = setTimeout(() => (model.set("rested", state.serial), model.save_changes()), SETTLING);
    }
    controls.paint(state.controls.filter((group) => !group.under), model.get("choices"));
    under.paint(state.controls.filter((group) => group.under), model.get("choices"));
    paintKpis(kpis, state.kpis);
    report(tellBeside(box, state.status));
    pane?.draw(state.bar);
    card.paint(state);
    actions.paint(state.actions);
    say(put(provenance, { title: state.source }), state.source);
    charts.arrange(isStory ? state.figures.slice(0, 1) : state.figures);
    questions?.paint();
    folds.settle();
    put(head, { "data-serial": state.serial });
  };
  // While something is moved, what is above and below it keeps its height.
  const steady = (on) => {
    for (const node of [status, kpis, ...front.querySelectorAll(".bk-legend")]) {
      node.style.height = on ? `${node.getBoundingClientRect().height}px` : "";
      node.classList.toggle("bk-steady", on);
    }
  };
  if (pane) pane.onDrag(steady);
  const redraw = () => {
    fitKpis(kpis);
    pane?.redraw();
    charts.drawAll();
    more.drawAll();
    folds.redraw();
  };
  const receive = (message, buffers) => {
    if (message.kind === "plotly") unpackPlotly(buffers[0]);
    if (message.kind === "file") uploads.arrived(message);
    if (message.kind === "status") report(message.status);
    if (message.kind === "shared") message.names.forEach((name, i) => download(name, buffers[i]));
  };
  const changes = {
    "change:state": drawState,
    "change:door": () => door.paint(model.get("door")),
    "change:texts": takeaway.paint,
    "change:reader": oncePerFrame(reader.paint, (paint) => painted().then(paint)),
    "change:opened": () => [charts.drawAll(), questions?.paint(), more.drawAll(), folds.paint()],
    "change:folds": folds.paint,
    "msg:custom": receive,
    // The view of an anywidget has no sign of a kernel that is gone; its model says so.
    comm_live_update() {
      put(box, { inert: "" });
      box.classList.add("bk-gone");
      report({ level: "note", text: GONE });
    },
  };
  for (const key of model.get("figures")) changes[`change:figure_${key}`] = () => [charts.draw(key), more.draw(key)];
  for (const [name, call] of Object.entries(changes)) model.on(name, (changes[name] = told(call)));

  const sizes = new ResizeObserver(redraw);
  sizes.observe(head);
  sizes.observe(charts.root);
  // Hidden and shown again within a frame, as JupyterLab's page is when a theme has come, nothing seems to have changed
  // its size: whoever is observed anew is told of in any case.
  charts.onHidden = () => {
    sizes.unobserve(charts.root);
    sizes.observe(charts.root);
  };
  const stops = [watchTheme(body, redraw), () => sizes.disconnect()];
  stops.push(guardKeys(box), undoByKey(box, courier.post));
  const purpose = model.get("opens").find((each) => each.purpose !== "setup")?.purpose;
  if (purpose) stops.push(watchDrops(box, (file) => uploads.send(file, purpose)));
  // A view far down a notebook is made before it is put into the page.
  const settle = () => {
    if (gone) return;
    if (!box.isConnected) return void setTimeout(settle, SETTLING);
    stops.push(keepInSight(box));
  };
  requestAnimationFrame(settle);
  drawState();
  door.paint(model.get("door"));
  takeaway.paint();
  reader.paint();
  folds.paint();
  return () => {
    gone = true;
    stops.forEach((stop) => stop());
    for (const [name, call] of Object.entries(changes)) model.off(name, call);
  };
}

export default { render };
