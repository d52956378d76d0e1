"""States of a page that tests wait for, as JupyterLab and the explorers show them: questions in JavaScript."""

# The splash covers the page, and the page is out of the keyboard's reach, whenever a theme is loaded.
SPLASH_IS_GONE = "!document.getElementById('jupyterlab-splash')"
# By then JupyterLab has put the focus into the notebook: it will not take it from a control later.
IS_READY = f"""() => {{
    const panel = window.jupyterapp?.shell.currentWidget;
    return panel?.context?.sessionContext?.session?.kernel?.status === "idle"
        && document.body.dataset.jpThemeName && {SPLASH_IS_GONE} && panel.node.contains(document.activeElement);
}}"""
HAS_THEME = f"name => document.body.dataset.jpThemeName === name && {SPLASH_IS_GONE}"
ALL_HAVE_RUN = """() => {
    const panel = jupyterapp.shell.currentWidget;
    const code = [...panel.content.model.cells].filter(cell => cell.type === "code");
    return panel.context.sessionContext.session?.kernel?.status === "idle"
        && code.every(cell => cell.executionCount || !cell.sharedModel.getSource().trim());
}"""
# So many charts at least, each drawn as wide as its place and in the ink of its theme, and none to be drawn again.
CHARTS_REST = """least => {
    const ink = node => getComputedStyle(node)[node.closest("svg") ? "fill" : "color"].match(/\\d+, \\d+, \\d+/)?.[0];
    const isDrawn = card => {
        const plot = card.querySelector(".bk-plot"), drawn = plot.querySelector(".main-svg");
        const letters = [...plot.querySelectorAll(".xtick text")];
        return card.dataset.drawn && drawn?.width.baseVal.value === plot.clientWidth
            && letters.every(letter => ink(letter) === ink(card.querySelector("h3")));
    };
    const cards = [...document.querySelectorAll(".bk-charts > .bk-card")];
    return cards.length >= least && cards.every(isDrawn) && !document.querySelector(".bk-charts[aria-busy]");
}"""
HAND_RESTS = "!document.querySelector('.bk-head[data-busy]')"
CELL_ERRORS = """() => [...jupyterapp.shell.currentWidget.content.model.cells]
    .filter(cell => cell.type === "code")
    .flatMap(cell => cell.outputs.toJSON())
    .filter(output => output.output_type === "error")
    .map(output => `${output.ename}: ${output.evalue}`)"""
