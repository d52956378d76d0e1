// Nodes of the page. Text is always set as text: no name of a section, model or file can become markup.

const SVG = "http://www.w3.org/2000/svg";

function put(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
  return node;
}

function element(tag, attributes = {}, ...children) {
  const node = put(document.createElement(tag), attributes);
  node.append(...children);
  return node;
}

function textButton(text, attributes = {}, click = null) {
  const button = element("button", { type: "button", class: "bk-button", ...attributes }, text);
  if (click) button.addEventListener("click", click);
  return button;
}

function shape(tag, attributes = {}, ...children) {
  const node = put(document.createElementNS(SVG, tag), attributes);
  node.append(...children);
  return node;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

// Keeps one child for each entry, in order, and reuses those that stay: the focus survives a redraw.
function keep(parent, entries, make, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  entries.forEach((entry, i) => {
    let child = old.get(entry.key);
    if (!child) {
      child = make(entry);
      child.dataset.key = entry.key;
    }
    old.delete(entry.key);
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
    update(child, entry);
  });
  for (const child of old.values()) letGo(child);
}

// A node that is left by the focus while it is being removed may be gone before the browser is done with it.
function letGo(child) {
  if (child.contains(document.activeElement)) document.activeElement.blur();
  child.remove();
}

// A name that no other view has.
const freshName = () => Math.random().toString(36).slice(2);

// Calls once the pointer is let go, and `move` for each of its moves until then.
function untilLetGo(done, move) {
  const ended = new AbortController();
  const listen = (name, call) => window.addEventListener(name, call, { capture: true, signal: ended.signal });
  for (const name of ["pointerup", "pointercancel"]) listen(name, () => (ended.abort(), done()));
  if (move) listen("pointermove", move);
}

// Calls once a frame, however often it is asked to.
function oncePerFrame(call, frame = requestAnimationFrame) {
  let isWaiting = false;
  return () => {
    if (!isWaiting) frame(() => ((isWaiting = false), call()));
    isWaiting = true;
  };
}

// A row of tabs, { key, text } each: the arrows go from one to the next.
function createTabs(label, open) {
  const root = element("div", { class: "bk-tabbar", role: "tablist", "aria-label": label });
  root.addEventListener("keydown", (event) => {
    const tabs = [...root.children];
    const now = tabs.indexOf(document.activeElement);
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const tab = tabs[next % tabs.length];
    open(tab.dataset.key);
    tab.focus();
  });
  const make = ({ key }) => {
    const tab = element("button", { type: "button", role: "tab" });
    tab.addEventListener("click", () => open(key));
    return tab;
  };
  const paint = (entries, shown) => keep(root, entries, make, (tab, { key, text }) => {
    say(tab, text);
    put(tab, { "aria-selected": String(key === shown), tabindex: key === shown ? 0 : -1 });
  });
  return { root, paint };
}

const widths = new Map();
let ruler = null;

function textWidth(text, font) {
  const key = font + "|" + text;
  if (!widths.has(key)) {
    if (widths.size > 2000) widths.clear();
    ruler ??= document.createElement("canvas").getContext("2d");
    ruler.font = font;
    widths.set(key, ruler.measureText(text).width);
  }
  return widths.get(key);
}
