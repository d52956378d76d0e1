// The door: how to give an explorer a file, what was read of the one that it shows, and which columns a table has.

function createDoor(isShown, post, buttons) {
  if (!isShown) return { line: element("span", { class: "bk-door" }, ...buttons), facts: element("div", { hidden: true }), paint: () => {} };
  const text = element("span", { class: "bk-long" });
  const short = element("span", { class: "bk-short" });
  const line = element("span", { class: "bk-door" }, text, short, ...buttons);
  const read = createFacts(post);
  const columns = createColumns(post);
  const facts = element("section", { class: "bk-intake", "aria-label": "What was read of the file" }, read.root, columns.root);
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
  const which = element("select", { "aria-label": "Which conversation of the file" });
  const use = element("button", { type: "button", class: "bk-button" });
  const notes = element("ul", { class: "bk-notes" });
  const line = element("p", { class: "bk-facts" }, format, which, many, messages, model, use);
  const root = element("div", {}, line, notes);
  let listed = "";
  which.addEventListener("change", () => post({ kind: "conversation", number: Number(which.value) }));
  use.addEventListener("click", () => post({ kind: "model", name: use.dataset.name }));
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
