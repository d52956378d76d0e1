// A receipt: model, window and reserve choose among stored answers; between two stored points they snap.

function createReceipt(receipt) {
  const place = document.getElementById("bk-receipt");
  if (!receipt || !place) return;
  const [over, title, text] = [element("p", { class: "bk-over" }), element("h2"), element("p", { class: "bk-sentence" })];
  const kpis = element("ul", { class: "bk-kpis", "aria-label": "Key figures" });
  const status = element("div", { class: "bk-status", role: "status" }, element("div"));
  const bar = element("div", { class: "bk-card bk-receipt-bar" });
  const strip = createStrip();
  const now = Object.fromEntries(["model", "window", "output"].map((key, i) => [key, receipt.now[i]]));
  // Answer each change at once from the stored results.
  const controls = createControls(({ key, value }) => {
    if (key) now[key] = value;
    paint();
  });
  controls.root.classList.add("bk-card", "bk-receipt-controls");
  const listed = (values) => values.map((value) => [value, String(value)]);
  const choices = { models: listed(receipt.models), windows: listed(receipt.windows), reserves: listed(receipt.reserves) };
  const line = (key, label, among, share) => ({ is: "line", key, label, share, slide: { among, value: now[key] } });
  place.append(controls.root, element("div", { class: "bk-headline" }, over, title, text), kpis, status, bar, strip.root);

  // The model's longest window up to the wanted one, or else its shortest.
  const nearest = (name, size, part) => {
    const has = receipt.windows.filter((each) => receipt.points[`${name}|${each}|${part}`]);
    return has.filter((each) => each <= size).at(-1) ?? has[0];
  };
  const paint = () => {
    const { model, window: wanted, output: part } = now;
    const size = nearest(model, wanted, part);
    const point = receipt.points[`${model}|${size}|${part}`];
    const sized = size === wanted ? grouped(size) : `${grouped(size)} (${model} has no ${grouped(wanted)})`;
    const chosen = { is: "choice", key: "model", label: "Model", value: model, among: "models" };
    const lines = [line("window", "Window", "windows", sized), line("output", "Output reserve", "reserves", part)];
    controls.paint([{ key: "receipt", heading: "", controls: [chosen, ...lines] }], choices);
    put(place, { "data-point": `${model}|${size}|${part}` });
    for (const node of [kpis, bar, strip.root]) node.hidden = Boolean(point.refused);
    put(status, { class: `bk-status bk-is-${point.refused ? "over" : point.level}` });
    status.firstChild.replaceChildren(...(point.refused ? [point.refused] : point.status).map((each) => element("p", {}, each)));
    say(over, point.over ?? "");
    say(title, point.title ?? "");
    say(text, point.text ?? "");
    if (point.refused) return;
    const makeKpi = () => element("li", { class: "bk-kpi" }, element("b"), element("span"), element("i"));
    keep(kpis, point.kpis, makeKpi, (node, kpi) => {
      put(node, { class: ["bk-kpi", kpi.level && `bk-${kpi.level}`, kpi.color && "bk-hero"].filter(Boolean).join(" "), style: kpi.color ? `--bk-own:${kpi.color}` : null });
      [kpi.value, kpi.label, kpi.change].forEach((said, i) => say(node.children[i], said));
    });
    bar.replaceChildren(makeMiniature(point.bar), makeKey(point.bar));
    strip.paint(point.strip);
  };
  paint();
}

function makeKey(bar) {
  const entry = ({ tip, color, hatch }) => element("li", {}, element("span", { class: `bk-swatch ${hatch ? "bk-hatched" : ""}`.trim(), style: `--bk-color:${color}` }), element("b", {}, tip));
  return element("ul", { class: "bk-legend", "aria-label": "Sections" }, ...bar.map(entry));
}

// A report: the page of a saved explorer. Its data are in the page; every text is set as text.

const NEWEST = 30; // messages that are shown of those in the window
const LATELY = 10; // messages that are shown of those that have left

const { requests, tables, bar, strip, receipt } = JSON.parse(document.getElementById("bk-data").textContent);

const grouped = (number) => number.toLocaleString("en-US");

function nameOf(request) {
  const turn = grouped(requests.turns[request - 1]);
  return requests.by === "turn" ? `turn ${turn}` : `request ${grouped(request)} (turn ${turn})`;
}

// Move the line that marks the chosen turn.
function markFigures(request, turn) {
  for (const figure of document.querySelectorAll(".bk-figure[data-by=turn], .bk-figure[data-by=request]")) {
    const svg = figure.firstElementChild;
    if (!svg.dataset.along) continue;
    const [low, high, start, end] = svg.dataset.along.split(" ").map(Number);
    const value = figure.dataset.by === "turn" ? turn : request;
    const x = start + ((value - low) / (high - low)) * (end - start);
    let line = svg.querySelector(".here");
    if (!line) svg.append((line = shape("line", { class: "here", y1: 14, y2: Number(svg.getAttribute("height")) - 60, stroke: "#8b8b8b", "stroke-width": 1.5 })));
    put(line, { x1: x, x2: x });
  }
}

function markTables(request, turn) {
  for (const details of document.querySelectorAll("details[data-table][open]")) {
    const { columns } = tables[details.dataset.table];
    const by = ["request", "turn"].find((name) => columns.some((column) => column.name === name));
    const column = columns.findIndex(({ name }) => name === by);
    if (column < 0) continue;
    const value = (by === "turn" ? turn : request).toLocaleString("en-US");
    const rows = [...details.querySelectorAll("tbody tr")];
    rows.forEach((row) => row.classList.toggle("bk-now", row.children[column].textContent === value));
    const box = details.querySelector(".bk-scroll");
    const now = rows.find((row) => row.classList.contains("bk-now"));
    if (now) box.scrollTop = now.offsetTop - box.clientHeight / 2;
  }
}

function fillTable(details) {
  const { columns, rows, all } = tables[details.dataset.table];
  const table = details.querySelector("table");
  const cell = (tag, text, i) => element(tag, { class: columns[i].number ? "bk-number-cell" : null, scope: tag === "th" ? "col" : null }, text);
  const line = (tag, texts) => element("tr", {}, ...texts.map((text, i) => cell(tag, text, i)));
  table.append(element("thead", {}, line("th", columns.map(({ name }) => name))), element("tbody", {}, ...rows.map((row) => line("td", row))));
  if (all > rows.length) details.append(element("p", { class: "bk-note" }, `The first ${grouped(rows.length)} of ${grouped(all)} rows.`));
}

// The messages around a request: the newest that are in it, and those that left last.
function messagesAt(request) {
  const { first, gone: left } = requests;
  const entered = first.map((_, i) => i).filter((i) => first[i] <= request);
  const isGone = (i) => left[i] && left[i] <= request;
  const gone = entered.filter(isGone).sort((a, b) => left[a] - left[b] || a - b).slice(-LATELY);
  const there = entered.filter((i) => !isGone(i)).slice(-NEWEST);
  return [...gone, ...there].sort((a, b) => a - b).map((i) => ({ i, mark: isGone(i) ? `, gone from ${nameOf(left[i])} on` : "" }));
}

function showMessages(box, request) {
  const blocks = messagesAt(request).map(({ i, mark }) => {
    const [speaker, text] = requests.messages[i];
    const size = requests.tokens.length ? `${grouped(requests.tokens[i])} tokens` : "";
    const label = element("div", { class: "bk-label" }, element("b", {}, `#${grouped(i)} `, element("bdi", {}, speaker)), element("span", {}, size + mark));
    return element("li", { class: `bk-block${mark ? " bk-is-gone" : ""}` }, label, element("div", { class: "bk-text", dir: "auto" }, text));
  });
  say(box.querySelector("h2"), `Messages at ${nameOf(request)}`);
  say(box.querySelector("p"), requests.note);
  box.querySelector("ol").replaceChildren(...blocks);
  box.querySelector(".bk-scroll").scrollTop = 1e9; // the newest are last
}

// A click anywhere along a figure goes to the turn or request at that place.
function goByFigure(event, goTo) {
  const figure = event.target.closest(".bk-figure[data-by=turn], .bk-figure[data-by=request]");
  const svg = figure?.firstElementChild;
  if (!svg?.dataset.along) return;
  const [low, high, start, end] = svg.dataset.along.split(" ").map(Number);
  const { left, width } = svg.getBoundingClientRect();
  const x = ((event.clientX - left) / width) * svg.viewBox.baseVal.width;
  const value = Math.floor(low + ((x - start) / (end - start)) * (high - low) + (figure.dataset.by === "turn" ? 0.5 : 0));
  const at = figure.dataset.by === "turn" ? requests.turns.indexOf(value) + 1 : value;
  if (at >= 1 && at <= requests.turns.length) goTo(at);
}

// The whole window in one bar, as it was when the report was saved.
function showBar() {
  const segments = bar.segments.filter(({ tokens }) => tokens > 0);
  const whole = segments.reduce((sum, { tokens }) => sum + tokens, 0);
  const parts = segments.map((segment) => ({ ...segment, tip: `${segment.name} ${segment.text}`, width: (100 * segment.tokens) / whole }));
  document.getElementById("bk-window").append(element("section", { class: "bk-card bk-receipt-bar" }, makeMiniature(parts), makeKey(parts)));
}

function showStrip() {
  const card = createStrip("h2");
  document.querySelector(".bk-figures").append(card.root);
  card.paint(strip);
}

function createReport() {
  let now = requests.request;
  for (const details of document.querySelectorAll("details[data-table]")) {
    const known = tables[details.dataset.table];
    if (!known) details.remove();
    details.addEventListener("toggle", () => {
      if (!details.querySelector("thead")) fillTable(details);
      if (requests.turns) markTables(now, requests.turns[now - 1]);
    });
  }
  if (bar) showBar();
  if (strip) showStrip();
  if (!requests.turns) return;
  const reader = element("section", { class: "bk-card" }, element("h2"), element("p", { class: "bk-note" }), element("div", { class: "bk-scroll bk-reading", tabindex: 0, role: "region", "aria-label": "Messages" }, element("ol", { class: "bk-blocks" })));
  const range = element("input", { type: "range", min: 1, max: requests.turns.length, step: 1 });
  const where = element("output");
  const label = element("label", { class: "bk-card bk-scrub" }, element("b", {}, requests.by === "turn" ? "Turn" : "Request"), range, where);
  const goTo = (request) => {
    now = request;
    range.value = request;
    const turn = requests.turns[request - 1];
    put(range, { "aria-valuetext": nameOf(request) });
    say(where, `${nameOf(request)} of ${grouped(requests.turns.at(-1))}${requests.by === "turn" ? "" : " turns"}`);
    markFigures(request, turn);
    markTables(request, turn);
    showMessages(reader, request);
  };
  range.addEventListener("input", () => goTo(Number(range.value)));
  document.addEventListener("click", (event) => goByFigure(event, goTo));
  document.getElementById("bk-requests").append(label);
  document.getElementById("bk-messages").append(reader);
  goTo(now);
}

createReport();
createReceipt(receipt);
