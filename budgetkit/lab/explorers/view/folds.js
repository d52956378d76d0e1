// The folds: panels that open beside the figures. The kernel sends their contents as parts; the page lays them out.
//
// The page requests an outdated fold once the user pauses, so no move waits for one.

const AT_REST = 300; // milliseconds without a change before a fold is requested

function createFolds(model, alive, preview) {
  const root = element("div", { class: "bk-folds" });
  const tell = (told) => model.send({ kind: "fold", ...told });
  const folds = { root, model, alive, preview, tell, waiting: 0 };
  folds.paint = () => {
    const isOpen = ({ name }) => model.get("opened").includes(name);
    const entries = model.get("folds").map((fold) => ({ ...fold, key: fold.name, open: isOpen(fold) }));
    keep(root, entries, (fold) => makeFold(folds, fold), (node, fold) => paintFold(folds, node, fold));
    folds.settle();
  };
  folds.settle = () => {
    clearTimeout(folds.waiting);
    const stale = () => model.get("folds").filter(({ stale, open }) => stale && open);
    if (!stale().length) return;
    folds.waiting = setTimeout(() => alive() && stale().forEach(({ name }) => tell({ fold: name })), AT_REST);
  };
  // A sentence was pressed: open its fold and show the sentence's subject there.
  folds.ask = (name, of) => {
    tell({ fold: name, of });
    tellOpened(folds.model, name, true);
    folds.paint();
    [...root.children].find((node) => node.dataset.key === name)?.scrollIntoView({ block: "nearest", behavior: "smooth" });
  };
  folds.redraw = () => root.querySelectorAll(".bk-folded-figure").forEach((node) => node.charts?.drawAll());
  return folds;
}

// The reader, the other figures and the folds as one row of tabs, one of them open.
function createQuestions(model, reader, charts, folds) {
  const panel = element("div", { class: "bk-card", role: "tabpanel" }, reader.root, charts.root, folds.root);
  const keys = () => Object.keys(model.get("state").tabs);
  const names = () => model.get("folds").map(({ name }) => name);
  const shown = () => {
    const opened = model.get("opened");
    return keys().find((key) => opened.includes(names().includes(key) ? key : `tab ${key}`)) ?? keys()[0];
  };
  const open = (key) => {
    const others = model.get("opened").filter((name) => !names().includes(name) && !name.startsWith("tab "));
    model.set("opened", [...others, names().includes(key) ? key : `tab ${key}`].sort());
    model.save_changes();
    questions.paint();
  };
  const bar = createTabs("Questions", open);
  const root = element("div", { class: "bk-questions" }, bar.root, panel);
  const questions = { root };
  questions.paint = () => {
    const key = shown();
    const { tabs, figures } = model.get("state");
    bar.paint(Object.entries(tabs).map(([name, text]) => ({ key: name, text })), key);
    put(panel, { "aria-label": tabs[key] });
    reader.root.classList.toggle("bk-away", key !== keys()[0]);
    charts.arrange(figures.includes(key) ? [key] : []);
  };
  return questions;
}

function makeFold(folds, { key }) {
  const parts = element("div", { class: "bk-parts" });
  const node = element("details", { class: "bk-card bk-fold" }, element("summary", {}, element("h3")), parts);
  node.addEventListener("toggle", (event) => event.target === node && tellOpened(folds.model, key, node.open));
  node.firstChild.addEventListener("click", (event) => {
    event.preventDefault(); // the kernel's list of open folds changes first and is then painted
    tellOpened(folds.model, key, !node.open);
  });
  return node;
}

function paintFold(folds, node, fold) {
  const [summary, parts] = node.children;
  say(summary.firstChild, fold.title);
  if (node.open !== fold.open) node.open = fold.open;
  node.classList.toggle("bk-stale", Boolean(fold.stale && fold.parts.length));
  const first = { is: "text", text: "Calculating…" };
  const listed = fold.open && fold.stale && !fold.parts.length ? [first] : fold.parts;
  const entries = listed.map((part, i) => ({ ...part, key: `${i} ${part.is} ${part.name ?? ""}` }));
  const tell = (told) => folds.tell({ fold: fold.name, ...told });
  keep(parts, entries, (part) => PARTS[part.is].make({ folds, tell, fold }, part), (made, part) => {
    const written = JSON.stringify(part);
    if (made.written === written) return;
    made.written = written;
    PARTS[part.is].paint(made, part);
  });
}

const level = (part) => (part.level ? `bk-is-${part.level}` : "");

// A button that previews its effect while it has the pointer or the focus.
function makeButton({ folds, tell }) {
  const node = textButton("");
  const look = (on) => () => {
    if (node.entry?.bar) folds.preview(on ? node.entry.bar : null);
  };
  for (const [name, on] of Object.entries({ pointerenter: true, focus: true, pointerleave: false, blur: false })) {
    node.addEventListener(name, look(on));
  }
  node.addEventListener("click", () => {
    look(false)();
    tell(node.entry.tells);
  });
  return node;
}

function paintButton(node, entry) {
  node.entry = entry;
  put(node, { title: entry.tip });
  say(node, entry.text);
}

function makeEntry(context) {
  const said = element("div", {}, element("span"), element("em"));
  return Object.assign(element("li", {}, said), { context });
}

function paintEntry(node, row) {
  const [said, ...old] = node.children;
  const [text, note] = said.children;
  put(node, { class: level(row) });
  say(text, row.text);
  say(note, row.note ?? "");
  if (!row.button) return void old.forEach(letGo);
  const pressed = old[0] ?? makeButton(node.context);
  paintButton(pressed, row.button);
  if (!old.length) node.append(pressed);
}

// Columns of models or budgets: the bar of each window, then a row for each figure.
function paintSides(table, { columns, rows, differ }, tell) {
  const head = columns.map(({ title, unpin }) => {
    const cell = element("th", { scope: "col" }, title);
    if (!unpin) return cell;
    const button = textButton("×", { class: "bk-button bk-unpin", "aria-label": `Unpin ${title}`, title: `Unpin ${title}` }, () => tell(unpin));
    cell.append(button);
    return cell;
  });
  const bars = columns.map(({ bar }) => element("td", {}, makeMiniature(bar)));
  const lines = rows.map(({ name, cells }) => {
    const texts = cells.map((cell) => element("td", { class: differ && cell !== cells[0] ? "bk-differs" : null }, cell));
    return element("tr", {}, element("th", { scope: "row" }, name), ...texts);
  });
  const first = element("tr", {}, element("th", { scope: "row" }, "contents"), ...bars);
  table.replaceChildren(element("thead", {}, element("tr", {}, element("td"), ...head)), element("tbody", {}, first, ...lines));
}

const PARTS = {
  text: {
    make: () => element("p"),
    paint: (node, part) => say(put(node, { class: `bk-said ${level(part)}`.trim() }), part.text),
  },
  list: {
    make: () => element("ol", { class: "bk-reasons" }),
    paint: (node, { items }) => node.replaceChildren(...items.map((item) => element("li", {}, item))),
  },
  rows: {
    make: (context) => Object.assign(element("ul", { class: "bk-rows", tabindex: 0 }), { context }),
    paint: (node, { rows }) => keep(node, rows, () => makeEntry(node.context), paintEntry),
  },
  button: { make: makeButton, paint: paintButton },
  choice: {
    make({ tell }, { name }) {
      const select = element("select");
      select.addEventListener("change", () => tell({ [name]: select.value }));
      return element("label", { class: "bk-choice" }, element("span"), select);
    },
    paint(node, { label, options, value }) {
      const [said, select] = node.children;
      say(said, label);
      select.replaceChildren(...options.map((each) => element("option", { value: each.value }, each.label)));
      select.value = value;
    },
  },
  progress: {
    make: () => element("div", { class: "bk-choice" }, element("progress", { max: 1 }), element("span", { role: "status" })),
    paint(node, { value, text }) {
      put(node.firstChild, { value, "aria-label": text });
      say(node.lastChild, text);
    },
  },
  figure: {
    make({ folds, tell }, { name }) {
      const figures = {};
      const get = (trait) => figures[trait] ?? folds.model.get(trait);
      const own = Object.assign(Object.create(folds.model), { get });
      const post = (message) => tell({ [message.kind]: message[message.kind] });
      const charts = createCharts(own, folds.alive, post, () => false);
      charts.root.classList.add("bk-folded-figure");
      charts.arrange([name]);
      return Object.assign(charts.root, { charts, figures });
    },
    paint(node, { name, figure }) {
      node.figures[`figure_${name}`] = { serial: 0, ...figure };
      node.charts.draw(name);
    },
  },
  sides: {
    make({ tell }) {
      const table = element("table", { class: "bk-table" });
      return Object.assign(element("div", { class: "bk-scroll bk-sides", tabindex: 0, role: "region", "aria-label": "Side by side" }, table), { tell });
    },
    paint: (node, part) => paintSides(node.firstChild, part, node.tell),
  },
  copy: {
    make() {
      const code = element("pre", { class: "bk-code", tabindex: 0 });
      const copy = textButton("Copy");
      const answer = element("span", { class: "bk-answer", role: "status" });
      copy.addEventListener("click", async () => say(answer, await copied(code, "Markdown")));
      return element("div", { class: "bk-takeaway" }, element("div", { class: "bk-header" }, element("h3"), element("span", { class: "bk-copying" }, answer, copy)), code);
    },
    paint(node, { title, text }) {
      say(node.firstChild.firstChild, title);
      put(node.lastChild, { "aria-label": title });
      say(node.lastChild, text);
    },
  },
};
