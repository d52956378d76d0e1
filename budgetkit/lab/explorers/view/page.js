// The page around a view: keys, scrolling, themes, and the sentence beside a box.

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

// Show the error of a typed number under its box, until the next status. The status, a live region, has it too.
function tellBeside(box, status) {
  const { beside, text } = status;
  box?.querySelectorAll(".bk-beside").forEach((node) => node.remove());
  if (!box || !beside) return status;
  const place = box.querySelector(`.bk-controls [data-control="${CSS.escape(beside)}"]`);
  if (place?.clientWidth) place.insertAdjacentElement("afterend", element("p", { class: "bk-beside" }, text));
  return status;
}

// Keep the controls and the reader in sight while the charts scroll. Elements around the explorer must not clip them,
// and their height is that of the scrolling part of the page.
function keepInSight(box) {
  let scroller = box.parentElement;
  const scrolls = (node) => {
    const isBox = node.matches(".jp-Cell-outputArea"); // Notebook 7 would put a high output into a low box
    const isHigh = node.scrollHeight > node.clientHeight + 1 || node.matches(".jp-WindowedPanel-outer");
    return /auto|scroll/.test(getComputedStyle(node).overflowY) && isHigh && !isBox;
  };
  for (; scroller && scroller !== document.body && !scrolls(scroller); scroller = scroller.parentElement) {
    scroller.classList.add("bk-around");
  }
  // Run All Cells goes to the last cell. If the explorer is at the top, the page stays there.
  const cells = [...(box.closest(".jp-Notebook")?.querySelectorAll(".jp-Cell") ?? [])];
  const isFirst = cells.find((cell) => cell.matches(".jp-CodeCell"))?.contains(box);
  if (isFirst && cells.at(-1).matches(".jp-mod-active")) scroller.scrollTop = 0;
  const measure = () => box.style.setProperty("--bk-sight", `${Math.min(scroller?.clientHeight ?? Infinity, window.innerHeight)}px`);
  const observer = new ResizeObserver(measure);
  observer.observe(scroller ?? document.body);
  return () => observer.disconnect();
}

// A button, first in the tab order, that moves the focus past the controls.
function skipButton(goal) {
  return textButton("Skip the controls", { class: "bk-skip" }, () => goal()?.focus());
}

// The status when the kernel has stopped.
const GONE = "The kernel is not running; this is the last saved picture. Run the cell again to start from its code.";

// JupyterLab names the new theme before its style sheet has arrived, so the colours are compared several times.
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
