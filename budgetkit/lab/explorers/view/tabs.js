// The tabs of the app: its purpose, buttons with examples, the tab names, and the view of the open tab.

const EXAMPLES = {
  "Support chat in 8k": { trace: "support-chat", preset: "chat", window: 8192 },
  "Coding agent in 16k": { trace: "coding-agent", preset: "working_memory", window: 16384 },
  "Mixed languages in 8k": { trace: "mixed-language", preset: "chat", window: 8192 },
  "Recorded session in 64k": { trace: "made-up-session", preset: "working_memory", window: 65536 },
};

function render({ model, el, host }) {
  const panel = element("div", { role: "tabpanel" });
  const open = (place) => {
    model.set("shown", Number(place));
    model.save_changes();
  };
  const bar = createTabs("Explorers", open);
  const examples = Object.entries(EXAMPLES).map(([name, values]) => {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => model.send(values));
    return button;
  });
  const title = element("h1", {}, "budgetkit");
  const sentence = element("p", {}, "Split a model's context window among the parts of a conversation, and see what fits.");
  const list = element("div", { role: "group", "aria-label": "Examples" }, ...examples);
  const root = element("div", { class: "bk-app" }, element("div", { class: "bk-title" }, title, sentence, list), bar.root, panel);
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
