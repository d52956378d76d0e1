// The tabs of the app: a name for each, and below them the view of the one that is open.

function render({ model, el, host }) {
  const panel = element("div", { role: "tabpanel" });
  const open = (place) => {
    model.set("shown", Number(place));
    model.save_changes();
  };
  const bar = createTabs("Explorers", open);
  const root = element("div", { class: "bk-app" }, bar.root, panel);
  const places = new Map(); // reference of a view -> where it is shown
  const paint = () => {
    const shown = model.get("shown");
    bar.paint(model.get("titles").map((text, i) => ({ key: String(i), text })), String(shown));
    put(panel, { "aria-label": model.get("titles")[shown] });
    const view = model.get("views")[shown];
    if (view && !places.has(view)) {
      const place = element("div", {});
      places.set(view, place);
      panel.append(place);
      host.getWidget(view).then((widget) => widget.render({ el: place }), reportError);
    }
    for (const [name, place] of places) place.hidden = name !== view;
  };
  el.classList.add("bk-host");
  el.append(root);
  model.on("change:shown", paint);
  model.on("change:views", paint);
  const stop = guardKeys(root);
  paint();
  return () => {
    stop();
    model.off("change:shown", paint);
    model.off("change:views", paint);
  };
}

export default { render };
