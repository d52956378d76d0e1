// A receipt: model, window and reserve choose among stored answers; between two stored points they snap.

function createReceipt(receipt) {
  const place = document.getElementById("bk-receipt");
  if (!receipt || !place) return;
  const [over, title, text] = [element("p", { class: "bk-over" }), element("h2"), element("p", { class: "bk-sentence" })];
  const kpis = element("ul", { class: "bk-kpis", "aria-label": "Key figures" });
  const status = element("div", { class: "bk-status", role: "status" }, element("div"));
  const bar = element("div", { class: "bk-card bk-receipt-bar" });
  const strip = createStrip();
  const model = element("select", {}, ...receipt.models.map((name) => element("option", { value: name }, name)));
  const slider = (values) => element("input", { type: "range", min: 0, max: values.length - 1, step: 1 });
  const [window_, reserve] = [slider(receipt.windows), slider(receipt.reserves)];
  const [windowText, reserveText] = [element("output"), element("output")];
  const label = (name, ...parts) => element("label", {}, element("span", {}, name), ...parts);
  const controls = element("form", { class: "bk-card bk-receipt-controls" }, label("Model", model), label("Window", window_, windowText), label("Output reserve", reserve, reserveText));
  place.append(controls, element("div", { class: "bk-headline" }, over, title, text), kpis, status, bar, strip.root);

  // The window of the model that is nearest from below; the shortest where all are longer.
  const nearest = (name, size, part) => {
    const has = receipt.windows.filter((each) => receipt.points[`${name}|${each}|${part}`]);
    return has.filter((each) => each <= size).at(-1) ?? has[0];
  };
  const paint = () => {
    const part = receipt.reserves[reserve.value];
    const wanted = receipt.windows[window_.value];
    const size = nearest(model.value, wanted, part);
    const point = receipt.points[`${model.value}|${size}|${part}`];
    say(windowText, size === wanted ? grouped(size) : `${grouped(size)}: ${model.value} has no ${grouped(wanted)}`);
    say(reserveText, part);
    put(place, { "data-point": `${model.value}|${size}|${part}` });
    for (const node of [kpis, bar, strip.root]) node.hidden = Boolean(point.refused);
    put(status, { class: `bk-status bk-is-${point.refused ? "over" : point.level}` });
    status.firstChild.replaceChildren(...(point.refused ? [point.refused] : point.status).map((each) => element("p", {}, each)));
    say(over, point.over ?? "");
    say(title, point.title ?? "");
    say(text, point.text ?? "");
    if (point.refused) return;
    const makeKpi = () => element("li", { class: "bk-kpi" }, element("b"), element("span"), element("i"));
    keep(kpis, point.kpis, makeKpi, (node, kpi) => {
      put(node, { class: ["bk-kpi", kpi.level && `bk-${kpi.level}`, kpi.color && "bk-hero"].filter(Boolean).join(" "), style: kpi.color ? `--bk-own:${kpi.color}` : null });
      [kpi.value, kpi.label, kpi.change].forEach((said, i) => say(node.children[i], said));
    });
    bar.replaceChildren(makeMiniature(point.bar), makeKey(point.bar));
    strip.paint(point.strip);
  };
  const [name, size, part] = receipt.now;
  model.value = name;
  window_.value = receipt.windows.indexOf(size);
  reserve.value = receipt.reserves.indexOf(part);
  for (const node of [model, window_, reserve]) node.addEventListener("input", paint);
  controls.addEventListener("submit", (event) => event.preventDefault());
  paint();
}

function makeKey(bar) {
  const entry = ({ tip, color, hatch }) => element("li", {}, element("span", { class: `bk-swatch ${hatch ? "bk-hatched" : ""}`.trim(), style: `--bk-color:${color}` }), element("b", {}, tip));
  return element("ul", { class: "bk-legend", "aria-label": "Sections" }, ...bar.map(entry));
}
