// The tabs of the app: a name for each, and below them the view of the one that is open.

function render({ model, el, host }) {
  const panel = element("div", { role: "tabpanel" });
  const tabs = model.get("titles").map((title, i) => {
    const tab = element("button", { type: "button", role: "tab" }, title);
    tab.addEventListener("click", () => open(i));
    return tab;
  });
  const bar = element("div", { class: "bk-tabbar", role: "tablist", "aria-label": "Explorers" }, ...tabs);
  const root = element("div", { class: "bk-app" }, bar, panel);
  const places = new Map(); // reference of a view -> where it is shown
  const open = (i) => {
    model.set("shown", i);
    model.save_changes();
  };
  bar.addEventListener("keydown", (event) => {
    const now = model.get("shown");
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    open(next % tabs.length);
    tabs[next % tabs.length].focus();
  });
  const paint = () => {
    const shown = model.get("shown");
    tabs.forEach((tab, i) => put(tab, { "aria-selected": String(i === shown), tabindex: i === shown ? 0 : -1 }));
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
