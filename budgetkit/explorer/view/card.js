// The design card: a headline over the key figures, and under the bar how far off a cheap count is.

const COLUMNS = ["kind", "text", "what the budget takes in truth", "error", "in truth", "that is"];

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

function createStrip() {
  const title = element("h3", {});
  const note = element("p", { class: "bk-note" });
  const scale = element("div", { class: "bk-scale" }, element("b"), element("span"));
  const heads = COLUMNS.map((name) => element("th", { scope: "col" }, name === COLUMNS[2] ? scale : element("span", {}, name)));
  const body = element("tbody");
  const table = element("table", { class: "bk-strip-table" }, element("thead", {}, element("tr", {}, ...heads)), body);
  const root = element("section", { class: "bk-card bk-errors" }, title, note, table);
  const paint = (strip) => {
    say(title, strip.title);
    say(note, strip.note);
    put(table, { "aria-label": strip.title, style: `--bk-own:${strip.color}` });
    paintScale(scale, strip);
    keep(body, strip.rows, makeRow, (node, row) => paintRow(node, row, strip));
  };
  return { root, paint };
}

function paintScale(scale, strip) {
  const [budget, behind] = scale.children;
  put(budget, { style: `right:${100 - strip.line}%` });
  put(behind, { style: `left:${strip.line}%` });
  say(budget, strip.line_text);
  say(behind, strip.behind);
  put(behind, { title: strip.behind });
}

function makeRow(row) {
  const svg = shape("svg", { class: "bk-reach", viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const name of ["safety", "pool", "unused", "within", "beyond", "line"]) svg.append(shape("rect", { class: `bk-${name}` }));
  const cells = [element("td", {}), element("td", {}, svg), element("td"), element("td"), element("td")];
  return element("tr", {}, element("th", { scope: "row" }), ...cells);
}

function paintRow(node, row, strip) {
  const [kind, where, bar, error, really, verdict] = node.children;
  const isFirst = strip.rows.find((other) => other.kind === row.kind) === row;
  put(node, { class: `bk-is-${row.level} ${isFirst ? "bk-first" : ""}`.trim(), title: row.tip });
  put(kind, { title: row.means });
  say(kind, row.kind);
  say(where, row.where);
  say(error, row.error);
  say(really, row.really);
  say(verdict, row.verdict);
  const [safety, pool, unused, within, beyond, line] = bar.firstChild.children;
  strip.bands.forEach((band, i) => put([safety, pool][i], { x: band.x, width: band.width, y: 0, height: 14 }));
  put(unused, { x: row.bar, width: row.bar ? Math.max(0, strip.line - row.bar) : 0, y: 3, height: 8 });
  put(within, { x: 0, width: Math.min(row.bar, strip.line), y: 3, height: 8 });
  put(beyond, { x: strip.line, width: Math.max(0, row.bar - strip.line), y: 3, height: 8 });
  put(line, { x: strip.line - 0.15, width: 0.3, y: 0, height: 14 });
}
