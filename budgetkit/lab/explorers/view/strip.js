// The strip: a table with a dot and its interval in each row, which a narrow page lays out as three lines a row.

const STRIP_BAR = 2; // the column of the bars
const LONG_BETWEEN = 20; // letters of an interval, as of "765,774 to 1,277,583", beside which two columns leave no room for bars
const STRIP_LAYERS = { safety: "rect", pool: "rect", line: "rect", interval: "path", dot: "path" };

function createStrip(heading = "h3") {
  const title = element(heading);
  const note = element("p", { class: "bk-note" });
  const scale = element("div", { class: "bk-scale" }, element("b"), element("span"));
  const heads = element("tr", { role: "row" });
  const body = element("tbody", { role: "rowgroup" });
  const head = element("thead", { role: "rowgroup" }, heads);
  const table = element("table", { class: "bk-strip-table", role: "table" }, head, body);
  const root = element("section", { class: "bk-card bk-errors" }, title, note, table);
  const makeHead = ({ key }) => element("th", { scope: "col", role: "columnheader" }, key === String(STRIP_BAR) ? scale : element("span"));
  const paint = (strip) => {
    say(title, strip.title);
    say(note, strip.note);
    const longest = (name) => Math.max(...strip.rows.map((row) => row[name].length));
    const isLong = longest("between") >= LONG_BETWEEN;
    put(table, { "aria-label": strip.title, class: isLong ? "bk-strip-table bk-is-long" : "bk-strip-table", style: `--bk-own:${strip.color};--bk-letters:${longest("verdict")}` });
    const columns = strip.columns.map((name, i) => ({ key: String(i), name, meaning: strip.meanings[i] }));
    keep(heads, columns, makeHead, (node, { key, name, meaning }) => {
      if (meaning) put(node, { title: meaning });
      if (key === String(STRIP_BAR)) put(node, { "aria-label": name });
      else say(node.firstChild, name);
    });
    paintScale(scale, strip);
    keep(body, strip.rows, makeRow, (node, row) => paintRow(node, row, strip));
  };
  return { root, paint };
}

function paintScale(scale, strip) {
  const [budget, behind] = scale.children;
  put(scale, { style: `--bk-at:${strip.line}%` });
  put(behind, { title: strip.behind });
  say(budget, strip.line_text);
  say(behind, strip.behind);
}

function makeRow() {
  const svg = shape("svg", { class: "bk-reach", viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const [name, tag] of Object.entries(STRIP_LAYERS)) svg.append(shape(tag, { class: `bk-${name}` }));
  const cell = (...children) => element("td", { role: "cell" }, ...children);
  const cells = [cell(), cell(svg), cell(), cell(element("b"), " ", element("small")), cell(element("b"), " ", element("small")), cell()];
  return element("tr", { role: "row" }, element("th", { scope: "row", role: "rowheader" }), ...cells);
}

function paintRow(node, row, strip) {
  const [kind, where, bar, error, actual, pool, verdict] = node.children;
  const isFirst = strip.rows.find((other) => other.kind === row.kind) === row;
  put(node, { class: `bk-is-${row.level} ${isFirst ? "bk-first" : ""}`.trim(), title: row.tip });
  put(kind, { title: row.means });
  say(kind, row.kind);
  say(where, row.where);
  say(error, row.error);
  say(actual.firstChild, row.actual);
  say(actual.lastChild, row.between);
  say(pool.firstChild, row.pool);
  say(pool.lastChild, row.pool_between);
  say(verdict, row.verdict);
  paintReach(bar.firstChild, row, strip);
}

// A dot at the actual tokens, over the bands that absorb the excess; its line spans 9 of 10 texts.
function paintReach(svg, row, strip) {
  const [safety, pool, line, interval, dot] = svg.children;
  const [low, high] = row.interval;
  strip.bands.forEach((band, i) => put([safety, pool][i], { x: band.x, width: band.width, y: 0, height: 14 }));
  put(line, { x: strip.line - 0.15, width: row.bar ? 0.3 : 0, y: 0, height: 14 });
  put(interval, { d: high > low ? `M${low},7 H${high}` : null });
  put(dot, { d: row.bar ? `M${row.bar},7 h0.01` : null });
}

// The window as one small bar, its lines in their colours.
function makeMiniature(bar) {
  const parts = bar.map(({ tip, width, color, hatch }) => element("span", { class: hatch ? "bk-hatched" : null, title: tip, style: `width:${width}%;background-color:${color}` }));
  return element("div", { class: "bk-miniature", role: "img", "aria-label": bar.map(({ tip }) => tip).join("; ") }, ...parts);
}

// The design card: a headline above the key figures, and the strip below the bar. Other explorers have neither.
function createCard(isCard) {
  if (!isCard) return { above: [], below: [], paint: () => {} };
  const over = element("p", { class: "bk-over" });
  const title = element("h2", {});
  const text = element("p", { class: "bk-sentence" });
  const strip = createStrip();
  const paint = (state) => {
    say(over, state.headline.over);
    say(title, state.headline.title);
    say(text, state.headline.text);
    strip.paint(state.strip);
  };
  const header = element("div", { class: "bk-header" }, element("div", {}, over, title));
  return { above: [element("div", { class: "bk-headline" }, header, text)], below: [strip.root], paint };
}
