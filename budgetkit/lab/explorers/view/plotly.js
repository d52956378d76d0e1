// plotly's JavaScript, loaded once for all explorers of a page: the first view requests it from its kernel.
//
// The promise belongs to the page, so it outlives the view that made the request. If that view is removed before the
// answer arrives, another waiting view requests it again.

const PLOTLY = Symbol.for("budgetkit.plotly");
const PATIENCE = 400; // milliseconds between two looks
const TIMEOUT = 20000; // milliseconds after which an answer is given up

function sharedLoad() {
  return (globalThis[PLOTLY] ??= { library: null, asker: null, since: 0, transfers: 0, waiting: new Set() });
}

function provide(library) {
  const shared = sharedLoad();
  shared.library = library;
  for (const resolve of shared.waiting) resolve(library);
  shared.waiting.clear();
}

function plotly(model, alive) {
  const shared = sharedLoad();
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
  const shared = sharedLoad();
  shared.transfers += 1;
  if (shared.library) return;
  const stream = new Blob([buffer]).stream().pipeThrough(new DecompressionStream("gzip"));
  const code = await new Response(stream).text();
  if (shared.library) return;
  const module = { exports: {} };
  // A function of its own keeps plotly from looking for AMD or setting a global that another plotly uses.
  new Function("module", "exports", "define", code)(module, module.exports, undefined);
  provide(module.exports);
}
