// Runs the first notebook when `make lab` opens it. JupyterLab runs no cell by itself, so without this the page
// that somebody sees first is a text that asks for a menu. No other notebook is ever run.
(() => {
  const FIRST = "notebooks/00-start.ipynb";
  const NARROW = 1300; // pixels; beside the list of files too little would be left for the explorer
  const [LOOKS, WAIT] = [100, 30]; // how often, and with how many milliseconds between
  const VIEW = "application/vnd.jupyter.widget-view+json";
  // The notebook is shipped with numbers and pictures; only what was saved beside a kernel has a view of it.
  const isFresh = (panel) => ![...panel.content.model.cells].some((cell) => cell.outputs?.toJSON().some((output) => output.data?.[VIEW]));

  const later = (wait) => new Promise((resolve) => setTimeout(resolve, wait));

  // What lives in the kernel is put back into a page that was reloaded. A cell that runs meanwhile stops both for good.
  async function widgetsAreBack(panel) {
    for (let i = 0; i < LOOKS; i++) {
      const renderer = panel.content.rendermime.createRenderer(VIEW);
      const manager = await Promise.race([renderer._manager?.promise, later(WAIT)]);
      renderer.dispose();
      if (manager?.restoredStatus) return;
      await later(WAIT);
    }
  }

  async function run(app, panel) {
    await panel.context.ready;
    await panel.sessionContext.ready;
    await widgetsAreBack(panel);
    const { comms } = (await panel.sessionContext.session.kernel.requestCommInfo({ target_name: "jupyter.widget" })).content;
    const isLiving = Object.keys(comms ?? {}).length > 0 && !isFresh(panel); // a reloaded page shows it by itself
    if (isLiving || panel.isDisposed || app.shell.currentWidget !== panel) return;
    if (window.innerWidth < NARROW) app.shell.collapseLeft();
    await app.commands.execute("notebook:run-all-cells");
    // Until it is saved, a page that is reloaded does not know which explorer of the kernel it showed.
    if (panel.context.contentsModel?.writable) await panel.context.save();
  }

  function activate(app) {
    app.restored.then(() => {
      const panel = app.shell.currentWidget;
      if (panel?.context?.path === FIRST) run(app, panel);
      else app.shell.currentChanged?.connect(function opened(shell, { newValue }) {
        if (newValue?.context?.path !== FIRST) return;
        app.shell.currentChanged.disconnect(opened);
        run(app, newValue);
      });
    });
  }

  const plugin = { id: "budgetkit-start:plugin", autoStart: true, activate };
  const container = { init: () => {}, get: async () => () => ({ __esModule: true, default: plugin }) };
  (window._JUPYTERLAB ??= {})["budgetkit-start"] = container;
})();
