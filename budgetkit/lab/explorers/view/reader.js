// The reader: a text in blocks with headings, such as the messages of a turn with their outcomes, or lines of tokens.

function createReader(model) {
  const title = element("h3");
  const note = element("p", { class: "bk-note" });
  const list = element("ol", { class: "bk-blocks" });
  const scroll = element("div", { class: "bk-scroll bk-reading", tabindex: 0, role: "region" }, list);
  const root = element("section", { class: "bk-card bk-reader" }, title, note, scroll);
  const reader = { root, onHover: () => {}, onAsk: () => {} };
  let expected = null; // the text that a click on a chart requested, to scroll to
  let lit = null; // the section that the pointer is on
  const light = () => {
    const blocks = [...list.children];
    for (const node of blocks) node.classList.toggle("bk-faded", Boolean(lit && node.section) && node.section !== lit);
    const own = blocks.filter((node) => lit && node.section === lit);
    const first = own.find((node) => node.matches(".bk-is-cut")) ?? own.findLast((node) => node.matches(".bk-is-gone")) ?? own[0];
    if (first && !list.matches(":hover")) scroll.scrollTop += first.getBoundingClientRect().top - scroll.getBoundingClientRect().top;
  };
  reader.highlight = (key) => {
    if (key !== lit && root.isConnected) light((lit = key));
  };
  reader.paint = () => {
    const { title: heading, note: noteText, blocks, follows } = model.get("reader");
    root.hidden = !heading;
    if (!heading) return;
    if (title.textContent !== heading) scroll.scrollTop = 0;
    say(title, heading);
    say(note, noteText ?? "");
    put(scroll, { "aria-label": heading });
    keep(list, blocks.map((block, i) => ({ key: `at ${i}`, ...block })), (block) => makeBlock(reader, block), paintBlock);
    if (lit) light();
    // In a tab, the reader is as long as the page, so scroll only to its heading, under the clicked figure.
    if (follows && follows === expected) (root.closest(".bk-questions") ? title : root).scrollIntoView({ block: "nearest" });
    expected = null;
  };
  reader.expect = (click) => (expected = click);
  scroll.addEventListener("keydown", walkBlocks);
  return reader;
}

// A block is {key, label, mark, level, why, section, color, pieces}; a click on it shows its why. A block with `asks` was
// lost, and has a button for the changes that would keep it. A piece is {text, tone, tip, struck}: its tone is a number
// from 0 to 4 or undefined, and struck text was cut.
function makeBlock(reader, { why }) {
  const header = element(why ? "button" : "div", { class: "bk-label", tabindex: why && -1, type: why && "button" }, element("b"), element("span"));
  const reason = element("p", { class: "bk-why", hidden: "" });
  const ask = textButton("What would keep it?", { class: "bk-button bk-ask", hidden: "" });
  const node = element("li", {}, header, reason, element("div", { class: "bk-text" }), ...(why ? [ask] : []));
  const open = () => {
    reason.hidden = node.classList.contains("bk-is-open");
    node.classList.toggle("bk-is-open");
    put(header, { "aria-expanded": String(!reason.hidden) });
  };
  if (why) node.addEventListener("click", open);
  ask.addEventListener("click", (event) => {
    event.stopPropagation();
    reader.onAsk(node.asks);
  });
  node.addEventListener("pointerenter", () => node.section && reader.onHover(node.section));
  node.addEventListener("pointerleave", () => node.section && reader.onHover(null));
  return node;
}

function paintBlock(node, { label, mark, level, why, asks, section, color, pieces }) {
  const [header, reason, text, ask] = node.children;
  node.asks = asks;
  if (ask) ask.hidden = asks === undefined;
  const isOpen = node.classList.contains("bk-is-open");
  node.section = section;
  put(node, { class: ["bk-block", level && `bk-is-${level}`, isOpen && "bk-is-open"].filter(Boolean).join(" "), style: color && `--bk-own:${color}` });
  if (why) put(header, { "aria-expanded": String(isOpen) });
  say(header.firstChild, label);
  say(header.lastChild, mark ?? "");
  say(reason, why ?? "");
  const made = pieces.map(({ text: content, tone, tip, struck }) =>
    element(struck ? "del" : "span", { class: tone === undefined ? null : `bk-tone bk-tone-${tone}`, title: tip }, content),
  );
  if (made.length !== text.children.length || made.some((piece, i) => !piece.isEqualNode(text.children[i]))) text.replaceChildren(...made);
}

function walkBlocks(event) {
  const labels = [...event.currentTarget.querySelectorAll("button.bk-label")];
  const now = labels.indexOf(document.activeElement);
  const next = { ArrowDown: now + 1, ArrowUp: Math.max(0, now - 1), Home: 0, End: labels.length - 1 }[event.key];
  if (next === undefined || !labels[next]) return;
  event.preventDefault();
  labels[next].focus();
}
