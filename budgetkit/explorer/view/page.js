// What the page needs of an explorer: keys that stay here, names for ipywidgets' sliders, and the theme.

// JupyterLab's command mode takes x, b, dd and the arrows from a focused widget and changes the notebook with
// them. Keys stop at the explorer; shortcuts with Ctrl, Alt or Cmd, Escape and Shift+Enter pass.
function guardKeys(box) {
  const stop = (event) => {
    const passes = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape";
    if (!passes && !(event.shiftKey && event.key === "Enter")) event.stopPropagation();
  };
  box.addEventListener("keydown", stop);
  return () => box.removeEventListener("keydown", stop);
}

// ipywidgets gives a slider's handle no name of its own, and a button that stays pressed no state.
function nameControls(box) {
  for (const handle of box.querySelectorAll(".widget-slider .noUi-handle")) {
    const slider = handle.closest(".widget-slider");
    const readout = slider.querySelector(".widget-readout")?.textContent.trim();
    put(handle, { "aria-label": labelOf(slider) });
    if (readout) put(handle, { "aria-valuetext": readout });
  }
  for (const input of box.querySelectorAll(".bk-row input[type=number]")) {
    put(input, { "aria-label": input.title || `${labelOf(input.closest(".bk-row"))}, tokens` });
  }
  for (const list of box.querySelectorAll(".bk-pair select[title]")) put(list, { "aria-label": list.title });
  for (const button of box.querySelectorAll(".widget-toggle-button")) {
    put(button, { "aria-pressed": button.classList.contains("mod-active"), "aria-label": button.title || null });
  }
}

function labelOf(node) {
  const label = node.querySelector(".widget-label")?.textContent.replace(/\u200b/g, "").trim();
  return label || node.title || "slider";
}

function watchControls(box) {
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      nameControls(box);
    });
  };
  const observer = new MutationObserver(later);
  observer.observe(box, { subtree: true, childList: true, characterData: true, attributeFilter: ["class", "title"] });
  nameControls(box);
  return () => observer.disconnect();
}

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
