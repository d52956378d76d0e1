// The controls: the kernel sends the list with values; each change by the user is one message, "set". A page without a
// kernel answers the same message from its stored results.

function createControls(post, { follow = () => {}, steady = () => {} } = {}) {
  const root = element("div", { class: "bk-controls", role: "group", "aria-label": "Controls" });
  const sent = new Map(); // key -> a function that tells whether its last change has been answered
  const panel = {
    choices: {},
    moves: freshName(),
    post,
    follow,
    steady,
    put(key, value, gesture) {
      sent.set(key, post({ kind: "set", key, value, ...(gesture && { gesture }) }));
    },
    // Keep the user's value until the kernel has answered.
    rests: (key) => sent.get(key)?.() !== false,
  };
  const paint = (groups, choices) => {
    panel.choices = choices;
    const digits = groups.flatMap(({ controls }) => controls).map(({ is, value = "" }) => (is === "line" ? value.length : 0));
    root.style.setProperty("--bk-digits", Math.max(7, ...digits));
    keep(root, groups, makeGroup, (node, { heading, controls }) => {
      const title = node.querySelector("h3");
      title.hidden = !heading;
      say(title, heading);
      const entries = controls.map((control) => ({ key: `${control.is} ${control.key}`, control, kind: CONTROLS[control.is] }));
      const make = ({ kind, control }) => put(kind.make(control, panel), { "data-control": control.key });
      keep(node.lastElementChild, entries, make, (child, { kind, control }) => kind.paint(child, control, panel));
    });
  };
  return { root, paint };
}

function makeGroup({ folds }) {
  const heading = element("h3", {});
  const inside = element("div", { class: "bk-fields" });
  if (folds) return element("details", { class: "bk-group" }, element("summary", {}, heading), inside);
  return element("section", { class: "bk-group" }, heading, inside);
}

const CONTROLS = {
  text: { make: makeText, paint: paintText },
  choice: { make: makeChoice, paint: paintChoice },
  rules: { make: makeRules, paint: paintRules },
  line: { make: makeLine, paint: paintLine },
};

// Send the typed text when the box loses the focus or Enter is pressed, not while typing.
function typedBox(key, panel, attributes) {
  const input = element("input", { type: "text", spellcheck: "false", autocomplete: "off", ...attributes });
  input.addEventListener("input", () => (input.typing = true));
  input.addEventListener("blur", () => (input.typing = false)); // a text that was typed and undone is no change
  input.addEventListener("change", () => {
    input.typing = false;
    panel.put(key, input.value);
  });
  return input;
}

function writeBox(input, key, text, panel) {
  if (!input.typing && panel.rests(key) && input.value !== text) input.value = text;
}

function makeText({ key, among, hint, digits, half }, panel) {
  const list = among && element("datalist", { id: `bk-${freshName()}` });
  const input = typedBox(key, panel, { placeholder: hint, list: list?.id, class: digits && "bk-digits", inputmode: digits && "decimal" });
  return element("label", { class: half ? "bk-field bk-half" : "bk-field" }, element("span"), input, ...(list ? [list] : []));
}

function paintText(node, { key, label, tip, value, among, locked, half }, panel) {
  const [name, input, list] = node.children;
  say(name, label);
  // A field of half width has a short name, so its label for screen readers includes the tip.
  put(input, { title: tip, "aria-label": half && tip !== label ? `${label}: ${tip}` : null });
  input.disabled = Boolean(locked);
  writeBox(input, key, value, panel);
  relist(list, panel.choices[among], (text) => element("option", { value: text }));
}

function relist(list, choices, make) {
  if (!list || list.listed === choices) return;
  list.listed = choices;
  list.replaceChildren(...choices.map(make));
}

function makeChoice({ key, among, rows, half }, panel) {
  const select = element("select", { multiple: rows && "", size: rows });
  select.addEventListener("change", () => {
    const values = [...select.selectedOptions].map(({ index }) => panel.choices[among][index][0]);
    panel.put(key, rows ? values : values[0]);
  });
  return element("label", { class: half ? "bk-field bk-half" : "bk-field" }, element("span"), select);
}

function paintChoice(node, { key, label, tip, value, among, rows }, panel) {
  const [name, select] = node.children;
  const choices = panel.choices[among];
  say(name, label);
  put(select, { title: tip });
  relist(select, choices, ([, text]) => element("option", {}, text));
  if (!panel.rests(key)) return;
  const chosen = new Set((rows ? value : [value]).map((each) => JSON.stringify(each)));
  choices.forEach(([each], i) => {
    const isChosen = chosen.has(JSON.stringify(each));
    if (select.options[i].selected !== isChosen) select.options[i].selected = isChosen;
  });
}

// The compared rules: a row for each, the cheapest first, whose name is pressed to show it in detail; the others are
// added from a list. A row has the rule's prompts as a small chart, and its totals.
const LANE = { width: 240, height: 26 };
const COLUMNS = ["rule", "prompts", "cost", "cuts", "cached", "kept"];

function makeRules({ key }, panel) {
  const head = element("tr", {}, ...COLUMNS.map((name) => element("th", { scope: "col" }, name)), element("td"));
  const lanes = element("tbody");
  const list = element("div", { class: "bk-rules" });
  const node = element("section", { class: "bk-card bk-picker" }, element("h3"), element("table", { class: "bk-lanes" }, element("thead", {}, head), lanes), element("details", {}, element("summary", {}, "Add a rule"), list));
  node.value = [];
  node.toggle = (name) => {
    const isIn = node.value.includes(name);
    node.value = isIn ? node.value.filter((each) => each !== name) : [...node.value, name];
    panel.put(key, node.value);
  };
  return node;
}

function paintRules(node, { key, label, value, among, lanes }, panel) {
  const [title, table, add] = node.children;
  const known = new Map(panel.choices[among].map(([name, text, says, isProduct]) => [name, { key: name, text, says, isProduct }]));
  if (panel.rests(key)) node.value = [...value];
  say(title, label);
  const entries = lanes.map((lane) => ({ ...known.get(lane.key), ...lane, isLast: lanes.length === 1 }));
  keep(table.lastChild, entries, ({ key: name }) => makeLane(name, node, panel), paintLane);
  const groups = { "General rules": false, "Products as they ship": true };
  keep(add.lastChild, Object.keys(groups).map((name) => ({ key: name })), (group) => element("div", { role: "group", "aria-label": group.key }, element("h4", {}, group.key), element("div")), (group, { key: name }) => {
    const rules = [...known.values()].filter(({ isProduct }) => isProduct === groups[name]);
    keep(group.lastChild, rules, (rule) => makeRule(rule, node), (button, rule) => put(button, { "aria-pressed": String(node.value.includes(rule.key)) }));
  });
}

function makeRule({ key, text, says }, node) {
  const button = element("button", { type: "button", class: "bk-rule" }, element("b", {}, text), element("span", {}, says));
  button.addEventListener("click", () => node.toggle(key));
  return button;
}

function makeLane(name, node, panel) {
  const choose = element("button", { type: "button", class: "bk-choose" }, element("span", { class: "bk-swatch" }), element("span"));
  choose.addEventListener("click", () => panel.put("main", name));
  const remove = textButton("×", { class: "bk-button bk-unpin" }, () => node.toggle(name));
  const chart = shape("svg", { viewBox: `0 0 ${LANE.width} ${LANE.height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, shape("path", { class: "bk-area" }), shape("path", { class: "bk-limit" }), shape("path", { class: "bk-here" }));
  const cells = [chart, "", "", "", "", remove].map((child) => element("td", {}, child));
  return element("tr", {}, element("th", { scope: "row" }, choose), ...cells);
}

function paintLane(row, { text, says, color, main, sizes, usable, here, cost, cuts, cached, kept, isLast }) {
  const [name, chart, ...numbers] = row.children;
  const [choose] = name.children;
  put(choose, { title: says, "aria-pressed": String(main), style: `--bk-color:${color}` });
  say(choose.lastChild, text);
  const top = Math.max(usable, ...sizes);
  const at = (size) => (LANE.height * (1 - size / top)).toFixed(1);
  const step = LANE.width / sizes.length;
  const [area, limit, line] = chart.firstChild.children;
  put(area, { d: `M0,${LANE.height} ${sizes.map((size, i) => `V${at(size)} H${((i + 1) * step).toFixed(1)}`).join(" ")} V${LANE.height} z`, fill: color });
  put(limit, { d: `M0,${at(usable)} H${LANE.width}` });
  put(line, { d: `M${here * LANE.width},0 V${LANE.height}` });
  [cost, cuts, cached, kept].forEach((number, i) => say(numbers[i], number));
  const [remove] = numbers.at(-1).children;
  remove.hidden = isLast;
  put(remove, { "aria-label": `Remove ${text}`, title: `Remove ${text}` });
}

// A slider with its share, a box for its number and a lock; pressing a section's share switches it off and on.
function makeLine({ key, slide, lock }, panel) {
  const range = element("input", { type: "range" });
  const box = typedBox(key, panel, { class: "bk-digits", inputmode: "decimal" });
  const locker = element("button", { type: "button", class: "bk-lock" });
  const part = element("span", { class: "bk-share" });
  const node = element("div", { class: "bk-slide" }, element("span", { class: "bk-name" }), part, box, locker, range);
  let gesture = "";
  range.addEventListener("pointerdown", ({ button }) => {
    if (button) return;
    gesture = `drag ${key} ${freshName()}`;
    node.isHeld = true;
    panel.steady(true);
    untilLetGo(() => {
      panel.post({ kind: "rest" });
      gesture = "";
      node.isHeld = false;
      panel.steady(false);
    });
  });
  range.addEventListener("input", () => {
    const { of, line } = node.slide;
    const value = node.stops ? node.stops[range.value][0] : Number(range.value);
    panel.put(key, of ? `${value}%` : value, gesture || `key ${key}`);
    if (line) panel.follow(line, Math.floor((value / 100) * of), () => panel.rests(key));
  });
  locker.addEventListener("click", () => panel.put(lock, locker.getAttribute("aria-pressed") !== "true"));
  const flip = () => node.toggle && panel.put(node.toggle, part.getAttribute("aria-checked") !== "true");
  part.addEventListener("click", flip);
  part.addEventListener("keydown", (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    flip();
  });
  return node;
}

function paintLine(node, { key, label, tip, slide, value, box_tip, share, color, hint, locked, lock, off, switch: toggle }, panel) {
  const [name, part, box, button, range] = node.children;
  node.slide = slide;
  // Keep the stops while the slider is being dragged.
  if (!node.isHeld) node.stops = panel.choices[slide.among];
  const { stops } = node;
  const place = stops ? stops.findIndex(([stop]) => stop === slide.value) : slide.value;
  say(name, label);
  say(part, share ?? "");
  part.hidden = share === undefined;
  node.toggle = locked ? undefined : toggle;
  const next = `Switch ${slide.line} ${off ? "on" : "off"}`;
  put(part, node.toggle
    ? { role: "switch", tabindex: 0, "aria-checked": String(!off), "aria-label": slide.line, title: next }
    : { role: null, tabindex: null, "aria-checked": null, "aria-label": null, title: null });
  const style = color && `--bk-color:${color}`;
  const reach = stops ? { min: 0, max: stops.length - 1, step: 1 } : { min: slide.min ?? 0, max: slide.max, step: slide.step };
  put(range, { ...reach, style, title: tip, "aria-label": label, "aria-valuetext": share ?? value ?? stops?.[place]?.[1] });
  if (panel.rests(key)) range.value = place;
  const about = box_tip ?? `${label}, in tokens`;
  put(box, { placeholder: hint, title: about, "aria-label": about });
  box.hidden = value === undefined; // a stored page has only the slider's own values
  writeBox(box, key, value ?? "", panel);
  range.disabled = box.disabled = Boolean(locked);
  button.hidden = !lock;
  put(button, { "aria-pressed": String(Boolean(locked)), "aria-label": `Lock ${slide.line}`, title: `Lock ${slide.line}` });
}
