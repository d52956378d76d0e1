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
