// Files: uploads, downloads, and the form for opening a file.
//
// A file is sent to the kernel in pieces, because a server closes a connection over one large message.

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
  const text = `${file.name} is ${size} MB, above the upload limit of 20 MB. Type its path instead.`;
  return { level: "error", text };
}

// Save a file that the kernel sent.
function download(name, content) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([content])) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function fileButton(text, accept, chosen) {
  const input = element("input", { type: "file", accept, class: "bk-file", tabindex: -1, "aria-hidden": "true" });
  const button = textButton(text, {}, () => input.click());
  input.addEventListener("change", () => {
    if (input.files[0]) chosen(input.files[0]);
    input.value = "";
  });
  return element("span", { class: "bk-filebutton" }, button, input);
}

// Open a file that is dropped on the explorer, and text or a file that is pasted outside a text box.
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

// The file entry: the form for opening a file, facts about the shown file, and the choice of a table's columns.

function createFileEntry(isShown, post, buttons) {
  if (!isShown) return { line: element("span", { class: "bk-file-entry" }, ...buttons), facts: element("div", { hidden: true }), paint: () => {} };
  const text = element("span", { class: "bk-long" });
  const short = element("span", { class: "bk-short" });
  const line = element("span", { class: "bk-file-entry" }, text, short, ...buttons);
  const read = createFacts(post);
  const columns = createColumns(post);
  const facts = element("section", { class: "bk-intake", "aria-label": "Facts about the file" }, read.root, columns.root);
  const paint = (entry) => {
    say(text, entry.text);
    say(short, entry.short);
    read.paint(entry.facts);
    columns.paint(entry.columns);
    facts.hidden = !entry.facts && !entry.columns;
  };
  return { line, facts, paint };
}

function createFacts(post) {
  const [format, many, messages, model] = ["b", "span", "span", "span"].map((tag) => element(tag, {}));
  const which = element("select", { "aria-label": "Conversation in the file" });
  const use = textButton("");
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
  const read = textButton("Read the table");
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
