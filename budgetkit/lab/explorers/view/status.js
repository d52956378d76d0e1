// The key figures, the status, the buttons, and the set-up as text.

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

// Make rows of nearly the same length: six key figures are one row or two rows of three, never five and one.
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
    const { fontWeight, fontSize, fontFamily } = getComputedStyle(value); // `font` is empty with digits of equal width
    node.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  }
  for (const node of list.children) sayNumber(node.children[0], node.kpi);
}

// Shorten a number that does not fit (1.05M); never cut off its end.
function sayNumber(value, kpi) {
  const { room, font } = value.parentNode;
  const fits = !room || textWidth(kpi.value, font) <= room;
  say(value, fits ? kpi.value : kpi.short ?? kpi.value);
}

const SIGNS = { fits: "✓", over: "!", cut: "!", error: "✕", busy: "…", note: "i" };

// Draw the status; a sentence about a loss is a button that shows the reason.
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
  const make = ({ of, picks }) => element("p", {}, ...(picks ?? []).map((name) => textButton(name, {}, () => pick(name))), ...(of ? [askButton(ask)] : []));
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
  const button = textButton("", { class: "bk-asks", title: "Show why, and how to keep it" }, () => ask(button.of));
  return button;
}

function createStatus() {
  const sign = element("span", { class: "bk-sign", "aria-hidden": "true" });
  const progress = element("progress", { max: 1, "aria-label": "Progress" });
  return element("div", { class: "bk-status", role: "status", "aria-live": "polite" }, sign, element("div"), progress);
}

function createActions(post) {
  const make = (kind, text, title) => textButton(text, { title }, () => post({ kind }));
  const buttons = {
    undo: make("undo", "Undo", "Undo the last change (Ctrl+Z)"),
    redo: make("redo", "Redo", "Redo the last undone change (Ctrl+Shift+Z)"),
    reset: make("reset", "Reset", "Return to the initial settings; the conversation and locked sizes stay"),
    pin: make("pin", "Pin", "Keep this budget to compare it with later budgets"),
    share: make("share", "Share", "Save a picture and a file in which readers can change the model, the window and the reserve; neither contains texts"),
  };
  const root = element("div", { class: "bk-actions", role: "toolbar", "aria-label": "Changes" }, ...Object.values(buttons));
  const paint = (actions) => {
    for (const name of ["undo", "redo", "reset"]) buttons[name].disabled = !actions[name];
    if (actions.reset_tip) put(buttons.reset, { title: actions.reset_tip });
    buttons.share.hidden = !actions.share;
    buttons.pin.hidden = actions.pinned === undefined; // without pins, there is no such button
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
  const code = element("pre", { class: "bk-code", tabindex: 0, "aria-label": "Settings as text" });
  const tabs = element("div", { class: "bk-tabs", role: "group", "aria-label": "Format" });
  const copy = textButton("Copy", {}, async () => {
    say(answer, await copied(code, FORMATS[format]));
    setTimeout(() => say(answer, ""), ANSWERED);
  });
  let format = "yaml";
  const paint = () => {
    for (const tab of tabs.children) put(tab, { "aria-pressed": tab.dataset.format === format });
    say(code, model.get("texts")[format] ?? "");
  };
  for (const [name, text] of Object.entries(FORMATS)) {
    tabs.append(textButton(text, { "data-format": name }, () => {
      format = name;
      folded.open = true;
      paint();
    }));
  }
  const answer = element("span", { class: "bk-answer", role: "status" });
  const header = element("div", { class: "bk-header" }, element("h3", {}, "Settings as text"), ...load);
  const tools = element("div", { class: "bk-header" }, tabs, element("span", { class: "bk-copying" }, answer, copy));
  const folded = element("details", { class: "bk-text" }, element("summary", {}, "Show the text"), code);
  return { root: element("section", { class: "bk-card bk-takeaway" }, header, tools, folded), paint };
}

async function copied(code, format) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return `Copied as ${format}.`;
  } catch {
    code.closest("details")?.setAttribute("open", ""); // folded text cannot be selected
    window.getSelection().selectAllChildren(code);
    return "The browser blocked access to the clipboard. The text is selected; press Ctrl+C.";
  }
}
