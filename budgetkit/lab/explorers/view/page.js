// plotly's own JavaScript, once a page: however many explorers there are, the first one asks the kernel for it.
//
// The promise lives on the page, not in a view, so it outlives the explorer that asked. A view that goes away
// before its answer came leaves the others waiting; each looks again after a moment and asks for itself.

const PLOTLY = Symbol.for("budgetkit.plotly");
const PATIENCE = 400; // milliseconds between two looks
const TIMEOUT = 20000; // milliseconds after which an answer is given up

function shelf() {
  return (globalThis[PLOTLY] ??= { library: null, asker: null, since: 0, transfers: 0, waiting: new Set() });
}

function onShelf(library) {
  const shared = shelf();
  shared.library = library;
  for (const resolve of shared.waiting) resolve(library);
  shared.waiting.clear();
}

function plotly(model, alive) {
  const shared = shelf();
  if (shared.library) return Promise.resolve(shared.library);
  return new Promise((resolve) => {
    shared.waiting.add(resolve);
    const look = () => {
      if (shared.library) return;
      if (!alive()) return void shared.waiting.delete(resolve);
      if (!shared.asker?.() || performance.now() - shared.since > TIMEOUT) {
        shared.asker = alive;
        shared.since = performance.now();
        model.send({ kind: "plotly" });
      }
      setTimeout(look, PATIENCE);
    };
    look();
  });
}

async function unpackPlotly(buffer) {
  const shared = shelf();
  shared.transfers += 1;
  if (shared.library) return;
  const stream = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("gzip"));
  const code = await new Response(stream).text();
  if (shared.library) return;
  const module = { exports: {} };
  // A function of its own keeps plotly from looking for AMD or setting a global that another plotly uses.
  new Function("module", "exports", "define", code)(module, module.exports, undefined);
  onShelf(module.exports);
}

// What the page needs of an explorer: keys that stay here, what stays in sight, and the theme.

// JupyterLab's command mode takes x, b, dd and the arrows from a focused widget and changes the notebook with
// them. Keys stop at the explorer; shortcuts with Ctrl, Alt or Cmd, Escape and Shift+Enter pass.
//
// JupyterLab hears a key on its way up, Notebook 7 on its way down, before it has come here. Both leave a key alone
// whose target has this mark; only the window hears it earlier.
const SUPPRESSED = "data-lm-suppress-shortcuts";

function guardKeys(box) {
  const isOurs = (event) => {
    const passes = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape";
    return !passes && !(event.shiftKey && event.key === "Enter");
  };
  const mark = (event) => {
    if (box.contains(event.target)) event.target.toggleAttribute(SUPPRESSED, isOurs(event));
  };
  const stop = (event) => {
    if (isOurs(event)) event.stopPropagation();
  };
  window.addEventListener("keydown", mark, true);
  box.addEventListener("keydown", stop);
  return () => {
    window.removeEventListener("keydown", mark, true);
    box.removeEventListener("keydown", stop);
  };
}

// Why a typed number was refused stands under its box, until something else is said. The status above, which is the
// live region, says it as well.
function tellBeside(box, status) {
  const { beside, text } = status;
  box?.querySelectorAll(".bk-beside").forEach((node) => node.remove());
  if (!box || !beside) return status;
  const place = box.querySelector(`.bk-controls [data-control="${CSS.escape(beside)}"]`);
  if (place?.clientWidth) place.insertAdjacentElement("afterend", element("p", { class: "bk-beside" }, text));
  return status;
}

// What stands beside the charts stays in sight while they scroll: what lies around the explorer is not to hold it,
// and its height is that of the part of the page that scrolls.
function keepInSight(box) {
  let scroller = box.parentElement;
  const scrolls = (node) => {
    const isBox = node.matches(".jp-Cell-outputArea"); // Notebook 7 puts what is high into a low box: not this
    const isHigh = node.scrollHeight > node.clientHeight + 1 || node.matches(".jp-WindowedPanel-outer");
    return /auto|scroll/.test(getComputedStyle(node).overflowY) && isHigh && !isBox;
  };
  for (; scroller && scroller !== document.body && !scrolls(scroller); scroller = scroller.parentElement) {
    scroller.classList.add("bk-around");
  }
  // Run All Cells goes to the last cell. Who opened the notebook for the explorer at its top stays there.
  const cells = [...(box.closest(".jp-Notebook")?.querySelectorAll(".jp-Cell") ?? [])];
  const isFirst = cells.find((cell) => cell.matches(".jp-CodeCell"))?.contains(box);
  if (isFirst && cells.at(-1).matches(".jp-mod-active")) scroller.scrollTop = 0;
  const measure = () => box.style.setProperty("--bk-sight", `${Math.min(scroller?.clientHeight ?? Infinity, window.innerHeight)}px`);
  const observer = new ResizeObserver(measure);
  observer.observe(scroller ?? document.body);
  return () => observer.disconnect();
}

// The controls can be passed over: the first stop of the keyboard goes to the bar, or to the first figure.
function skipButton(goal) {
  const button = element("button", { type: "button", class: "bk-skip" }, "Skip the controls");
  button.addEventListener("click", () => goal()?.focus());
  return button;
}

// A kernel that is gone: the last picture stays, and one sentence says what to do.
const GONE = "The kernel is not running; this is the last saved picture. Run the cell again to start from its code.";

// JupyterLab names the new theme before its style sheet has arrived, so the colours are looked at a few times.
const THEME_LOOKS = [0, 60, 250, 1000, 3000]; // milliseconds after a change

function watchTheme(node, changed) {
  const colours = () => ["--bk-ink", "--bk-line", "--bk-card"].map((name) => getComputedStyle(node).getPropertyValue(name)).join();
  let last = colours();
  const look = () => {
    const now = colours();
    if (now !== last && node.isConnected) {
      last = now;
      changed();
    }
  };
  const observer = new MutationObserver(() => THEME_LOOKS.forEach((wait) => setTimeout(look, wait)));
  const attributeFilter = ["data-jp-theme-name", "data-jp-theme-light", "data-theme", "class"];
  observer.observe(document.body, { attributes: true, attributeFilter });
  return () => observer.disconnect();
}

// Moves on their way to the kernel: one in flight, and the others wait in their order; of one gesture only the last.

const LOST = 2000; // milliseconds after which an answer is no longer expected

function createCourier(model, onBusy) {
  const own = freshName();
  const courier = { flying: null, waiting: [], since: 0, serial: 0, answered: 0 };
  const fly = (message) => {
    courier.flying = message.id;
    courier.since = performance.now();
    onBusy(true);
    model.send({ ...message, id: `${own} ${message.id}` });
  };
  const wait = (posted) => {
    const last = courier.waiting.at(-1);
    if (last?.gesture && last.gesture === posted.gesture) courier.waiting.pop();
    courier.waiting.push(posted);
  };
  // Returns a question: is this message answered?
  courier.post = (message) => {
    const posted = { ...message, id: ++courier.serial };
    const lost = performance.now() - courier.since > LOST;
    if (courier.flying !== null && !lost) wait(posted);
    else [...courier.waiting.splice(0), posted].forEach(fly);
    return () => courier.answered >= posted.id;
  };
  courier.landed = (acknowledged) => {
    const [sender, id] = String(acknowledged ?? "").split(" ");
    if (sender !== own || Number(id) !== courier.flying) return;
    courier.answered = Number(id);
    courier.flying = null;
    if (courier.waiting.length) fly(courier.waiting.shift());
    else onBusy(false);
  };
  return courier;
}
