// A file on its way to the kernel, in pieces: a server closes a connection over one large message.

const LARGEST = 20 * 1024 * 1024; // bytes
const PIECE = 2 * 1024 * 1024; // bytes

function createUploads(model, report) {
  const waiting = new Map(); // serial -> called with the bytes that have arrived
  const own = freshName();
  let count = 0;
  const piece = (serial, content, buffer) =>
    new Promise((resolve) => {
      waiting.set(serial, resolve);
      model.send({ kind: "file", serial, ...content }, undefined, [buffer]);
    });
  return {
    arrived: ({ serial }) => waiting.get(serial)?.(),
    async send(file, purpose) {
      if (file.size > LARGEST) return report(tooLarge(file));
      const serial = `${own} ${++count}`;
      let offset = 0;
      do {
        const part = await file.slice(offset, offset + PIECE).arrayBuffer();
        await piece(serial, { purpose, name: file.name, size: file.size, offset }, part);
        offset += part.byteLength;
        report({ level: "busy", text: `Sending ${file.name}`, progress: offset / Math.max(1, file.size) });
      } while (offset < file.size);
      waiting.delete(serial);
    },
  };
}

function tooLarge(file) {
  const size = (file.size / 1024 / 1024).toFixed(1);
  const text = `${file.name} is ${size} MB, above the upload limit of 20 MB. Type its path into "File" instead.`;
  return { level: "error", text };
}

// A file that the kernel made, saved by the browser.
function download(name, content) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([content])) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function fileButton(text, accept, chosen) {
  const input = element("input", { type: "file", accept, class: "bk-file", tabindex: -1, "aria-hidden": "true" });
  const button = element("button", { type: "button", class: "bk-button" }, text);
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files[0]) chosen(input.files[0]);
    input.value = "";
  });
  return element("span", { class: "bk-filebutton" }, button, input);
}

// A file dropped on an explorer is opened; so is text or a file pasted where nothing is typed.
function watchDrops(box, open) {
  const over = (isOver) => box.classList.toggle("bk-dropping", isOver);
  const isFile = (event) => event.dataTransfer?.types.includes("Files");
  const taken = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  const listeners = {
    dragover: (event) => isFile(event) && (taken(event), over(true)),
    dragleave: (event) => box.contains(event.relatedTarget) || over(false),
    drop: (event) => {
      if (!isFile(event)) return;
      taken(event);
      over(false);
      if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
    },
    paste: (event) => {
      if (event.target.closest("input, textarea, select, [contenteditable]")) return;
      const text = event.clipboardData.getData("text/plain");
      const file = event.clipboardData.files[0] ?? (text.trim() && new File([text], "pasted text"));
      if (!file) return;
      taken(event);
      open(file);
    },
  };
  for (const [name, call] of Object.entries(listeners)) box.addEventListener(name, call, true);
  return () => Object.entries(listeners).forEach(([name, call]) => box.removeEventListener(name, call, true));
}

// What stands around the bar: the key figures, the status, the buttons, and the set-up as text.

function paintKpis(list, kpis) {
  const make = () => element("li", { class: "bk-kpi" }, element("b"), element("span"), element("i"));
  keep(list, kpis, make, (node, kpi) => {
    put(node, { class: ["bk-kpi", kpi.level && `bk-${kpi.level}`, kpi.color && "bk-hero"].filter(Boolean).join(" "), title: kpi.tip, style: kpi.color ? `--bk-own:${kpi.color}` : null });
    const [value, label, change] = node.children;
    node.kpi = kpi;
    say(label, kpi.label);
    say(change, kpi.change ?? "");
    sayNumber(value, kpi);
  });
  if (list.many !== kpis.length) fitKpis(list);
}

const NARROWEST = 104; // pixels of a key figure
const BETWEEN = 8; // pixels

// Rows of the same length, or nearly: six are one row or two of three, never five and one.
function fitKpis(list) {
  const shown = [...list.children].filter((node) => node.clientWidth);
  list.many = list.children.length;
  if (!shown.length || !list.clientWidth) return;
  const fit = Math.max(1, Math.floor((list.clientWidth + BETWEEN) / (NARROWEST + BETWEEN)));
  const rows = Math.ceil(shown.length / fit);
  list.style.setProperty("--bk-in-row", Math.ceil(shown.length / rows));
  for (const node of shown) {
    const [value] = node.children;
    node.room = value.clientWidth;
    const { fontWeight, fontSize, fontFamily } = getComputedStyle(value); // as one they are empty: digits are of one width
    node.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  }
  for (const node of list.children) sayNumber(node.children[0], node.kpi);
}

// A number that has no room is shortened (1.05M); it never loses its end.
function sayNumber(value, kpi) {
  const { room, font } = value.parentNode;
  const fits = !room || textWidth(kpi.value, font) <= room;
  say(value, fits ? kpi.value : kpi.short ?? kpi.value);
}

const SIGNS = { fits: "✓", over: "!", cut: "!", error: "✕", busy: "…", note: "i" };

// A sentence about a loss can be pressed: it is asked why.
function paintStatus(node, status, ask, pick, pressing) {
  const [sign, body, progress] = node.children;
  put(node, { class: `bk-status bk-is-${status.level}` });
  say(sign, SIGNS[status.level] ?? "");
  const sentences = [status.text, ...(status.more ?? [])].map((text, i) => {
    const of = status.asks?.[i];
    return { key: `${i}${of ? " asks" : ""}`, text, of };
  });
  const picks = status.picks ?? [];
  if (picks.length) sentences.push({ key: `picks ${picks}`, picks });
  const { remedies = [] } = status;
  if (remedies.length) sentences.push({ key: "remedies", remedies: remedies.map((remedy) => ({ ...remedy, key: remedy.tells.key ?? remedy.tells.kind })) });
  const make = ({ of, picks }) => element("p", {}, ...(picks ?? []).map((name) => pickButton(name, pick)), ...(of ? [askButton(ask)] : []));
  keep(body, sentences, make, (paragraph, { text, of, picks, remedies }) => {
    if (picks) return;
    if (remedies) return void keep(put(paragraph, { class: "bk-remedies" }), remedies, () => makeButton(pressing), paintButton);
    if (of) paragraph.firstChild.of = of;
    say(of ? paragraph.firstChild : paragraph, text);
  });
  progress.hidden = status.progress === undefined;
  if (!progress.hidden) progress.value = status.progress;
}

function askButton(ask) {
  const button = element("button", { type: "button", class: "bk-asks", title: "Show why, and how to keep it" });
  button.addEventListener("click", () => ask(button.of));
  return button;
}

// A name that can be chosen in place of the one that was refused.
function pickButton(name, pick) {
  const button = element("button", { type: "button", class: "bk-button" }, name);
  button.addEventListener("click", () => pick(name));
  return button;
}

function createStatus() {
  const sign = element("span", { class: "bk-sign", "aria-hidden": "true" });
  const progress = element("progress", { max: 1, "aria-label": "Progress" });
  return element("div", { class: "bk-status", role: "status", "aria-live": "polite" }, sign, element("div"), progress);
}

function createActions(post) {
  const make = (kind, text, title) => {
    const button = element("button", { type: "button", class: "bk-button", title }, text);
    button.addEventListener("click", () => post({ kind }));
    return button;
  };
  const buttons = {
    undo: make("undo", "Undo", "Undo the last change (Ctrl+Z)"),
    redo: make("redo", "Redo", "Redo the last undone change (Ctrl+Shift+Z)"),
    reset: make("reset", "Reset", "Return to the initial settings; the conversation and locked lines stay"),
    pin: make("pin", "Pin", "Keep this budget to compare it with later budgets"),
    share: make("share", "Share", "A picture, and a file in which readers can change model, window and reserve; it contains numbers but no texts"),
  };
  const root = element("div", { class: "bk-actions", role: "toolbar", "aria-label": "Changes" }, ...Object.values(buttons));
  const paint = (actions) => {
    for (const name of ["undo", "redo", "reset"]) buttons[name].disabled = !actions[name];
    if (actions.reset_tip) put(buttons.reset, { title: actions.reset_tip });
    buttons.share.hidden = !actions.share;
    buttons.pin.hidden = actions.pinned === undefined; // what has nothing to compare has no such button
    say(buttons.pin, actions.pinned ? "Unpin" : "Pin");
    put(buttons.pin, { "aria-pressed": actions.pinned });
  };
  return { root, paint };
}

function undoByKey(box, post) {
  const listen = (event) => {
    const typing = event.target.closest("input:not([type=number], [type=range], [type=checkbox], .bk-digits), textarea, pre");
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || typing) return;
    event.preventDefault();
    event.stopPropagation();
    post({ kind: event.shiftKey ? "redo" : "undo" });
  };
  box.addEventListener("keydown", listen);
  return () => box.removeEventListener("keydown", listen);
}

const ANSWERED = 6000; // milliseconds that an answer stays beside its button
const FORMATS = { python: "Python", yaml: "YAML", json: "JSON" };

function createTakeaway(model, load) {
  const code = element("pre", { class: "bk-code", tabindex: 0, "aria-label": "This set-up as text" });
  const tabs = element("div", { class: "bk-tabs", role: "group", "aria-label": "Format" });
  const copy = element("button", { type: "button", class: "bk-button" }, "Copy");
  let format = "yaml";
  const paint = () => {
    for (const tab of tabs.children) put(tab, { "aria-pressed": tab.dataset.format === format });
    say(code, model.get("texts")[format] ?? "");
  };
  for (const [name, text] of Object.entries(FORMATS)) {
    const tab = element("button", { type: "button", class: "bk-button", "data-format": name }, text);
    tab.addEventListener("click", () => {
      format = name;
      folded.open = true;
      paint();
    });
    tabs.append(tab);
  }
  const answer = element("span", { class: "bk-answer", role: "status" });
  copy.addEventListener("click", async () => {
    say(answer, await copied(code, FORMATS[format]));
    setTimeout(() => say(answer, ""), ANSWERED);
  });
  const header = element("div", { class: "bk-header" }, element("h3", {}, "Copy this set-up"), ...load);
  const tools = element("div", { class: "bk-header" }, tabs, element("span", { class: "bk-copying" }, answer, copy));
  const folded = element("details", { class: "bk-text" }, element("summary", {}, "Show the text"), code);
  return { root: element("section", { class: "bk-card bk-takeaway" }, header, tools, folded), paint };
}

async function copied(code, format) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return `Copied as ${format}.`;
  } catch {
    code.closest("details")?.setAttribute("open", ""); // what is folded away cannot be selected
    window.getSelection().selectAllChildren(code);
    return "The browser blocked access to the clipboard. The text is selected; press Ctrl+C.";
  }
}

// The reader: a text in blocks, each a heading and pieces: messages of a turn, what became of each, lines of tokens.

function createReader(model) {
  const title = element("h3");
  const note = element("p", { class: "bk-note" });
  const list = element("ol", { class: "bk-blocks" });
  const scroll = element("div", { class: "bk-scroll bk-reading", tabindex: 0, role: "region" }, list);
  const root = element("section", { class: "bk-card bk-reader" }, title, note, scroll);
  const reader = { root, onHover: () => {}, onAsk: () => {} };
  let expected = null; // a click on a point of a chart asked for this text: it comes into sight
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
    const { title: heading, note: said, blocks, follows } = model.get("reader");
    root.hidden = !heading;
    if (!heading) return;
    if (title.textContent !== heading) scroll.scrollTop = 0;
    say(title, heading);
    say(note, said ?? "");
    put(scroll, { "aria-label": heading });
    keep(list, blocks.map((block, i) => ({ key: `at ${i}`, ...block })), (block) => makeBlock(reader, block), paintBlock);
    if (lit) light();
    // In a tab it is as long as the page: its heading comes into sight, under the figure that was clicked.
    if (follows && follows === expected) (root.closest(".bk-questions") ? title : root).scrollIntoView({ block: "nearest" });
    expected = null;
  };
  reader.expect = (click) => (expected = click);
  scroll.addEventListener("keydown", walkBlocks);
  return reader;
}

// A block: {key, label, mark, level, why, section, color, pieces}; one with a why tells it when it is clicked.
// A piece: {text, tone, tip, struck}, its tone a number from 0 to 4 or none; what is struck was cut away.
// One that was lost can be asked what would keep it.
function makeBlock(reader, { why }) {
  const header = element(why ? "button" : "div", { class: "bk-label", tabindex: why && -1, type: why && "button" }, element("b"), element("span"));
  const told = element("p", { class: "bk-why", hidden: "" });
  const ask = element("button", { type: "button", class: "bk-button bk-ask", hidden: "" }, "What would keep it?");
  const node = element("li", {}, header, told, element("div", { class: "bk-text" }), ...(why ? [ask] : []));
  const open = () => {
    told.hidden = node.classList.contains("bk-is-open");
    node.classList.toggle("bk-is-open");
    put(header, { "aria-expanded": String(!told.hidden) });
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
  const [header, told, text, ask] = node.children;
  node.asks = asks;
  if (ask) ask.hidden = asks === undefined;
  const isOpen = node.classList.contains("bk-is-open");
  node.section = section;
  put(node, { class: ["bk-block", level && `bk-is-${level}`, isOpen && "bk-is-open"].filter(Boolean).join(" "), style: color && `--bk-own:${color}` });
  if (why) put(header, { "aria-expanded": String(isOpen) });
  say(header.firstChild, label);
  say(header.lastChild, mark ?? "");
  say(told, why ?? "");
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

// The door: how to give an explorer a file, what was read of the one that it shows, and which columns a table has.

function createDoor(isShown, post, buttons) {
  if (!isShown) return { line: element("span", { class: "bk-door" }, ...buttons), facts: element("div", { hidden: true }), paint: () => {} };
  const text = element("span", { class: "bk-long" });
  const short = element("span", { class: "bk-short" });
  const line = element("span", { class: "bk-door" }, text, short, ...buttons);
  const read = createFacts(post);
  const columns = createColumns(post);
  const facts = element("section", { class: "bk-intake", "aria-label": "Facts about the file" }, read.root, columns.root);
  const paint = (door) => {
    say(text, door.text);
    say(short, door.short);
    read.paint(door.facts);
    columns.paint(door.columns);
    facts.hidden = !door.facts && !door.columns;
  };
  return { line, facts, paint };
}

function createFacts(post) {
  const [format, many, messages, model] = ["b", "span", "span", "span"].map((tag) => element(tag, {}));
  const which = element("select", { "aria-label": "Conversation in the file" });
  const use = element("button", { type: "button", class: "bk-button" });
  const notes = element("ul", { class: "bk-notes" });
  const line = element("p", { class: "bk-facts" }, format, which, many, messages, model, use);
  const root = element("div", {}, line, notes);
  let listed = "";
  which.addEventListener("change", () => post({ kind: "conversation", number: Number(which.value) }));
  use.addEventListener("click", () => post({ kind: "model", name: use.dataset.name, whole: true }));
  const paint = (facts) => {
    root.hidden = !facts;
    if (!facts) return;
    say(format, facts.format);
    put(format, { title: facts.file });
    say(many, facts.conversations.length ? "" : facts.many);
    say(messages, facts.messages);
    which.hidden = !facts.conversations.length;
    const written = JSON.stringify(facts.conversations);
    if (written !== listed) {
      listed = written;
      which.replaceChildren(...facts.conversations.map(({ value, label }) => element("option", { value }, label)));
    }
    which.value = facts.conversation;
    say(model, facts.model?.text ?? "");
    use.hidden = !facts.model?.button;
    put(use, { "data-name": facts.model?.name });
    say(use, facts.model?.button ?? "");
    keep(notes, facts.notes.map((note) => ({ key: note, note })), () => element("li", {}), (node, { note }) => say(node, note));
  };
  return { root, paint };
}

function createColumns(post) {
  const text = element("span", {});
  const choices = element("span", { class: "bk-columns" });
  const read = element("button", { type: "button", class: "bk-button" }, "Read the table");
  const root = element("p", { class: "bk-facts" }, text, choices, read);
  let asked = "";
  const chosen = () => Object.fromEntries([...choices.querySelectorAll("select")].map((select) => [select.name, select.value]));
  read.addEventListener("click", () => post({ kind: "columns", ...chosen() }));
  const paint = (columns) => {
    root.hidden = !columns;
    if (!columns) return;
    say(text, columns.text);
    const written = JSON.stringify(columns);
    if (written === asked) return;
    asked = written;
    choices.replaceChildren(...columns.choices.map(({ name, label, guess }, place) => {
      const names = columns.names.map((column) => element("option", { value: column }, column));
      const isLast = place === columns.choices.length - 1;
      const select = element("select", { name }, ...(isLast ? [element("option", { value: "" }, columns.none)] : []), ...names);
      if (guess || isLast) select.value = guess;
      return element("label", {}, element("span", {}, label), select);
    }));
  };
  return { root, paint };
}
