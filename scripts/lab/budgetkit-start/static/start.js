// Runs the first notebook when `make lab` opens it. JupyterLab runs no cell by itself, so without this the page
// that somebody sees first is a text that asks for a menu. No other notebook is ever run.
(() => {
  const FIRST = "notebooks/00-start.ipynb";
  const NARROW = 1300; // pixels; beside the list of files too little would be left for the explorer
  const isFresh = (panel) => [...panel.content.model.cells].every((cell) => !cell.executionCount);

  async function run(app, panel) {
    await panel.context.ready;
    await panel.sessionContext.ready;
    if (panel.isDisposed || app.shell.currentWidget !== panel || !isFresh(panel)) return;
    if (window.innerWidth < NARROW) app.shell.collapseLeft();
    await app.commands.execute("notebook:run-all-cells");
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
