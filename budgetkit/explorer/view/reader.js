// The reader: a text in blocks, each a heading and pieces that may be coloured: messages of a turn, lines of tokens.

function createReader(model) {
  const title = element("h3");
  const note = element("p", { class: "bk-note" });
  const list = element("ol", { class: "bk-blocks" });
  const scroll = element("div", { class: "bk-scroll bk-reading", tabindex: 0, role: "region" }, list);
  const root = element("section", { class: "bk-card bk-reader" }, title, note, scroll);
  let expected = null; // a click on a point of a chart asked for this text: it comes into sight
  const paint = () => {
    const { title: heading, note: said, blocks, follows } = model.get("reader");
    root.hidden = !heading;
    if (!heading) return;
    say(title, heading);
    say(note, said ?? "");
    put(scroll, { "aria-label": heading });
    list.replaceChildren(...blocks.map(makeBlock));
    scroll.scrollTop = 0;
    if (follows && follows === expected) root.scrollIntoView({ block: "nearest" });
    expected = null;
  };
  return { root, paint, expect: (click) => (expected = click) };
}

// A block: {label, mark, level, pieces}; a piece: {text, tone, tip}, its tone a number from 0 to 4 or none.
function makeBlock({ label, mark, level, pieces }) {
  const text = element("div", { class: "bk-text" });
  for (const { text: content, tone, tip } of pieces) {
    const piece = element("span", { class: tone === undefined ? null : `bk-tone bk-tone-${tone}`, title: tip }, content);
    text.append(piece);
  }
  const header = element("div", { class: "bk-label" }, element("b", {}, label), element("span", {}, mark ?? ""));
  return element("li", { class: `bk-block ${level ? `bk-is-${level}` : ""}`.trim() }, header, text);
}
