// A report: the page of a saved explorer. Its data stand in the page; every text is set as text.

const NEWEST = 30; // messages that are shown of those in the window
const LATELY = 10; // messages that are shown of those that have left

const { film, tables, receipt } = JSON.parse(document.getElementById("bk-data").textContent);

// The line that stands at the chosen turn moves along with it.
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
function messagesAt(lane, request) {
  if (film.spans?.length) {
    const [, sent] = film.spans[request - 1];
    const from = Math.max(0, sent - NEWEST);
    return film.messages.slice(from, sent).map((_, i) => ({ i: from + i, mark: "" }));
  }
  const { track } = lane;
  const entered = film.first.map((first, i) => i).filter((i) => film.first[i] && film.first[i] <= request);
  const isGone = (i) => track.gone[i] && track.gone[i] <= request;
  const gone = entered.filter(isGone).sort((a, b) => track.gone[a] - track.gone[b] || a - b).slice(-LATELY);
  const there = entered.filter((i) => !isGone(i)).slice(-NEWEST);
  return [...gone, ...there].sort((a, b) => a - b).map((i) => ({ i, mark: isGone(i) ? `, out at ${nameOf(film, track.gone[i])}` : "" }));
}

function showMessages(box, lane, request) {
  const blocks = messagesAt(lane, request).map(({ i, mark }) => {
    const [speaker, text] = film.messages[i];
    const size = film.tokens.length ? `${grouped(film.tokens[i])} tokens` : "";
    const label = element("div", { class: "bk-label" }, element("b", {}, `#${grouped(i)} `, element("bdi", {}, speaker)), element("span", {}, size + mark));
    return element("li", { class: `bk-block${mark ? " bk-is-gone" : ""}` }, label, element("div", { class: "bk-text", dir: "auto" }, text));
  });
  say(box.querySelector("h2"), `Messages at ${nameOf(film, request)}`);
  say(box.querySelector("p"), film.spans?.length ? `The last ${grouped(blocks.length)} that it asks for, before the budget cuts.` : "");
  box.querySelector("ol").replaceChildren(...blocks);
  box.querySelector(".bk-scroll").scrollTop = 1e9; // the newest are last
}

// A click anywhere along a figure goes to the turn or request that stands there.
function goByFigure(event, play) {
  const figure = event.target.closest(".bk-figure[data-by=turn], .bk-figure[data-by=request]");
  const svg = figure?.firstElementChild;
  if (!svg?.dataset.along) return;
  const [low, high, start, end] = svg.dataset.along.split(" ").map(Number);
  const { left, width } = svg.getBoundingClientRect();
  const x = ((event.clientX - left) / width) * svg.viewBox.baseVal.width;
  const value = Math.floor(low + ((x - start) / (end - start)) * (high - low) + (figure.dataset.by === "turn" ? 0.5 : 0));
  const at = figure.dataset.by === "turn" ? film.turns.indexOf(value) + 1 : value;
  if (at >= 1 && at <= film.turns.length) play.goTo(at);
}

function createReport() {
  for (const details of document.querySelectorAll("details[data-table]")) {
    const known = tables[details.dataset.table];
    if (!known) details.remove();
    details.addEventListener("toggle", () => {
      if (!details.querySelector("thead")) fillTable(details);
      if (play.film) markTables(play.at, film.turns[play.at - 1]);
    });
  }
  const reader = element("section", { class: "bk-card" }, element("h2"), element("p", { class: "bk-note" }), element("div", { class: "bk-scroll bk-reading", tabindex: 0, role: "region", "aria-label": "Messages" }, element("ol", { class: "bk-blocks" })));
  const moved = (request, isResting) => {
    const turn = film.turns[request - 1];
    markFigures(request, turn);
    if (!isResting) return;
    markTables(request, turn);
    if (film.messages?.length) showMessages(reader, play.lanes[0], request);
  };
  const play = createPlay(moved, null, "h2");
  if (!film.tracks) return;
  document.getElementById("bk-film").append(play.root);
  if (film.messages.length) document.getElementById("bk-messages").append(reader);
  document.addEventListener("click", (event) => goByFigure(event, play));
  play.show(film, film.request);
  play.moved(play.at, true);
}

createReport();
createReceipt(receipt);
