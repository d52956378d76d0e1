// The charts: cards of plotly figures that the kernel sends as plain specifications, each with its table.

const CHART_SETTINGS = { displayModeBar: false, displaylogo: false, responsive: false };

// After the next frame is painted: the bar goes first.
const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

function createCharts(model, alive, post, moving) {
  const root = element("div", { class: "bk-charts" });
  const charts = { root, model, post, alive, moving, dirty: new Set(), running: false, hover: null, cards: new Map(), onHover: () => {}, onClick: () => {}, onHidden: () => {} };
  charts.arrange = (keys) => arrangeCards(charts, keys);
  charts.draw = (key) => {
    if (!charts.cards.has(key)) return;
    charts.dirty.add(key);
    runCharts(charts);
  };
  charts.drawAll = () => [...charts.cards.keys()].forEach(charts.draw);
  charts.highlight = (key) => {
    charts.hover = key;
    charts.cards.forEach((card) => fadePoints(card, key));
  };
  return charts;
}

function arrangeCards(charts, keys) {
  const entries = keys.map((key) => ({ key }));
  keep(charts.root, entries, ({ key }) => makeCard(charts, key), () => {});
  const left = [...charts.cards.values()].filter((card) => !keys.includes(card.key));
  left.forEach((card) => (card.gone = true)); // one that is being drawn clears itself when it is done
  left.filter((card) => !card.busy).forEach((card) => clearCard(card));
  charts.cards = new Map(entries.map(({ key }, i) => [key, charts.root.children[i].card]));
  keys.filter((key) => !charts.cards.get(key).drawn).forEach(charts.draw);
}

function makeCard(charts, key) {
  const card = { key, title: element("h3"), note: element("p", { class: "bk-note" }), plot: element("div", { class: "bk-plot" }) };
  card.plot.setAttribute("role", "img");
  card.table = element("table", { class: "bk-table" });
  const scroll = element("div", { class: "bk-scroll", tabindex: 0, role: "region" }, card.table);
  card.details = element("details", {}, element("summary", {}, "Table"), scroll);
  card.scroll = scroll;
  card.details.addEventListener("toggle", () => tellOpened(charts.model, key, card.details.open));
  // Report the click before the table opens, or a figure that is being drawn would close it again.
  card.details.firstChild.addEventListener("click", () => tellOpened(charts.model, key, !card.details.open));
  card.root = element("section", { class: "bk-card" }, card.title, card.note, card.plot, card.details);
  card.root.card = card;
  return card.root;
}

// Which tables are open is the kernel's to know: it sends the rows of those alone.
function tellOpened(model, key, isOpen) {
  const opened = new Set(model.get("opened"));
  if (opened.has(key) === isOpen) return;
  if (isOpen) opened.add(key);
  else opened.delete(key);
  model.set("opened", [...opened].sort());
  model.save_changes();
}

async function runCharts(charts) {
  if (charts.running) return;
  charts.running = true;
  charts.root.setAttribute("aria-busy", "true");
  await painted();
  const library = await plotly(charts.model, charts.alive);
  if (charts.moving()) await rest(charts);
  while (charts.dirty.size && charts.alive()) {
    const key = nextKey(charts);
    charts.dirty.delete(key);
    const card = charts.cards.get(key);
    if (card) await paintCard(charts, card, library).catch((error) => refuseCard(card, error));
    await rest(charts);
  }
  charts.running = false;
  charts.root.removeAttribute("aria-busy");
}

// Show an error in place of a figure that cannot be drawn; the others and its next state are drawn.
function refuseCard(card, error) {
  card.busy = false;
  say(card.note, `This figure could not be drawn (${error.message}); its table is complete.`);
  reportError(error);
}

// Drawing a chart takes longer than a frame, so charts are drawn rarely while a handle moves, and after the bar.
const SELDOM = 400; // milliseconds

async function rest(charts) {
  const since = performance.now();
  do {
    await (charts.moving() ? painted() : new Promise((resolve) => setTimeout(resolve)));
  } while (charts.moving() && performance.now() - since < SELDOM);
}

// The first figure is to be seen without scrolling, under key figures and bar.
function firstHeight(node) {
  const sight = parseFloat(getComputedStyle(node).getPropertyValue("--bk-sight")) || 900;
  const least = node.closest(".bk-front") ? 250 : 140; // a scrubber and the rules are all that is below it
  return Math.round(Math.max(least, Math.min(232, 0.22 * sight)));
}

// Draw the visible charts first.
function nextKey(charts) {
  const isSeen = (key) => {
    const box = charts.cards.get(key)?.root.getBoundingClientRect();
    return box && box.bottom > 0 && box.top < window.innerHeight;
  };
  const keys = [...charts.dirty];
  return keys.find(isSeen) ?? keys[0];
}

async function paintCard(charts, card, library) {
  const figure = charts.model.get(`figure_${card.key}`);
  if (!figure?.spec) return;
  say(card.title, figure.title);
  say(card.note, figure.note);
  put(card.plot, { "aria-label": `${figure.title} ${figure.note}` });
  put(card.scroll, { "aria-label": `Table: ${figure.title}` });
  card.details.open = charts.model.get("opened").includes(card.key);
  if (card.details.open && figure.table) fillTable(card.table, figure.table);
  const isFirst = !charts.root.matches(".bk-folded-figure") && charts.root.firstChild === card.root && figure.click !== "document";
  const height = Math.min(figure.spec.layout.height, isFirst ? firstHeight(card.root) : Infinity);
  card.plot.style.height = `${height}px`;
  if (!card.plot.clientWidth) return void (charts.root.clientWidth || charts.onHidden()); // drawn once it is shown
  card.busy = true;
  await library.react(card.plot, fitted(card.plot, figure.spec.data), themed(card.plot, { ...figure.spec.layout, height }), CHART_SETTINGS);
  card.busy = false;
  card.library = library;
  if (card.gone) return clearCard(card);
  if (!card.drawn) listen(charts, card);
  card.drawn = true;
  put(card.root, { "data-drawn": figure.serial });
  if (charts.hover) fadePoints(card, charts.hover);
}

function clearCard(card) {
  card.library?.purge(card.plot);
}

// In a narrow figure, use the short texts, and leave space on the axis for the numbers beside the bars.
const NARROW = 330; // pixels
const LETTER = 6.6; // pixels of one at 12 px

function fitted(plot, data) {
  if (plot.clientWidth >= NARROW) return data;
  return data.map((trace) => (trace.meta?.short ? { ...trace, text: trace.meta.short } : trace));
}

function shortened(text, longest) {
  const plain = text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  const cut = plain.length > longest ? `${plain.slice(0, longest - 1)}…` : plain;
  return cut.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function roomFor(plot, layout, axes) {
  const { beside, reach } = layout.meta ?? {};
  if (!beside) return;
  const { xaxis, yaxis } = axes;
  const names = yaxis.ticktext ?? [];
  if (plot.clientWidth < NARROW) yaxis.ticktext = names.map((name) => shortened(name, 12));
  const labels = Math.max(0, ...(yaxis.ticktext ?? []).map((name) => name.length)) * LETTER + 14;
  const inside = Math.max(60, plot.clientWidth - labels - layout.margin.l - layout.margin.r);
  const texts = Math.min(inside * 0.6, beside * LETTER + 10);
  const low = layout.xaxis.range[0];
  xaxis.range = [low, low + ((reach - low) * inside) / (inside - texts)];
}

// Keep the names at the ends of lines apart in a figure that is lower than planned.
const AROUND = 66; // pixels over and under the lines
const LINE = 14; // pixels of a name

function spreadNotes({ annotations, height, yaxis }) {
  const isName = (note) => note.xanchor === "right" && note.yanchor === "bottom" && typeof note.y === "number";
  if (!yaxis?.range || !annotations) return annotations;
  const [low, high] = yaxis.range;
  let least = -Infinity;
  const moved = new Map();
  for (const note of annotations.filter(isName).sort((a, b) => a.y - b.y)) {
    const at = ((note.y - low) / (high - low)) * (height - AROUND) + (note.yshift ?? 0);
    least = Math.max(at, least + LINE);
    moved.set(note, { ...note, yshift: (note.yshift ?? 0) + least - at });
  }
  return annotations.map((note) => moved.get(note) ?? note);
}

function themed(plot, layout) {
  const style = getComputedStyle(plot);
  const ink = style.getPropertyValue("--bk-ink").trim() || "#222";
  const line = style.getPropertyValue("--bk-line").trim() || "#ddd";
  const themedLayout = {
    ...layout,
    width: plot.clientWidth,
    font: { ...layout.font, color: ink, family: style.fontFamily, size: 12 },
    hoverlabel: { ...layout.hoverlabel, font: { family: style.fontFamily, size: 12 } },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
  };
  delete themedLayout.title; // the card has it as a heading
  themedLayout.margin = { ...layout.margin, t: layout.meta?.top ?? 12 };
  for (const [name, axis] of Object.entries(layout)) {
    if (!/^[xy]axis/.test(name)) continue;
    const title = axis.title && { ...axis.title, font: { size: 12 } };
    themedLayout[name] = { ...axis, title, gridcolor: line, zerolinecolor: line, linecolor: line };
  }
  roomFor(plot, layout, themedLayout);
  themedLayout.annotations = spreadNotes(layout);
  return themedLayout;
}

function listen(charts, card) {
  const keyOf = (event) => event.points[0]?.customdata?.key ?? event.points[0]?.customdata;
  card.plot.on("plotly_hover", (event) => {
    const key = keyOf(event);
    if (typeof key === "string") charts.onHover(key);
  });
  card.plot.on("plotly_unhover", () => charts.onHover(null));
  const choose = (value) => {
    const { click } = charts.model.get(`figure_${card.key}`);
    if (click) charts.onClick(click);
    if (click) charts.post({ kind: click, [click]: value, gesture: click });
  };
  const alongAxis = () => ["turn", "request"].includes(charts.model.get(`figure_${card.key}`).click);
  card.plot.on("plotly_click", (event) => alongAxis() || choose(keyOf(event) ?? event.points[0].x));
  // Where the axis is made of turns or requests, every place in it is one, not only where something is drawn.
  card.plot.addEventListener("click", (event) => {
    const area = card.plot.querySelector(".nsewdrag")?.getBoundingClientRect();
    if (!alongAxis() || !area || event.clientX < area.left || event.clientX > area.right) return;
    if (event.clientY < area.top || event.clientY > area.bottom) return;
    const { xaxis } = card.plot._fullLayout;
    const steps = card.plot._fullData.some((trace) => trace.line?.shape === "hv");
    const at = xaxis.p2d(event.clientX - area.left);
    const ends = Math.max(...card.plot._fullData.flatMap((trace) => (trace.x ?? []).filter(Number.isFinite))) - (steps ? 1 : 0);
    choose(Math.max(1, Math.min(ends, steps ? Math.floor(at) : Math.round(at))));
  });
}

// The linked hover fades other sections in the page; plotly's figure is unchanged.
function fadePoints(card, key) {
  for (const trace of card.plot.querySelectorAll(".trace.bars")) {
    const keys = trace.__data__?.[0]?.trace?.customdata;
    if (!keys) continue;
    trace.querySelectorAll(".point").forEach((point, i) => {
      const own = keys[point.__data__?.i ?? i];
      point.style.opacity = key && own !== key && own !== "window" ? 0.25 : "";
    });
  }
}

function fillTable(table, { columns, rows }) {
  const cell = (tag, text, number) => element(tag, number ? { class: "bk-number-cell" } : {}, String(text));
  const header = columns.map(({ name, number }) => put(cell("th", name, number), { scope: "col" }));
  const body = rows.map((row) => element("tr", {}, ...row.map((text, i) => cell("td", text, columns[i].number))));
  table.replaceChildren(element("thead", {}, element("tr", {}, ...header)), element("tbody", {}, ...body));
}
