// Looks at an explorer in the page and names what is wrong with its layout: text outside its card, text that is cut off,
// and texts that lie over each other. Text that ends with an ellipsis, and what scrolls, is meant so.
() => {
  const faults = [];
  const root = document.querySelector(".bk-explorer");
  const seen = (node) => {
    const style = getComputedStyle(node);
    return style.visibility !== "hidden" && style.display !== "none" && Number(style.opacity) > 0.05;
  };
  const hiddenTo = (node) => { // clipped to nothing for screen readers alone
    for (let n = node; n && n !== root; n = n.parentElement) {
      const s = getComputedStyle(n);
      if (s.clipPath !== "none" || !seen(n)) return true;
    }
    return false;
  };
  const withinEllipsis = (node, rect) => { // as much of a line as is seen of a text that ends with an ellipsis
    let { left, right, top, bottom } = rect;
    for (let n = node; n && n !== root; n = n.parentElement) {
      const s = getComputedStyle(n);
      if (s.textOverflow !== "ellipsis" && s.webkitLineClamp === "none") continue;
      const b = n.getBoundingClientRect();
      [left, right, top, bottom] = [Math.max(left, b.left), Math.min(right, b.right), Math.max(top, b.top), Math.min(bottom, b.bottom)];
    }
    return { left, right, top, bottom, width: right - left, height: bottom - top };
  };
  const isUnseen = (node, rect) => { // pushed out of a box whose text is there whole or not at all
    const box = node.closest(".bk-scale > *")?.getBoundingClientRect();
    return box && (rect.top >= box.bottom - 1 || rect.left >= box.right - 1);
  };
  const texts = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    const words = node.textContent.trim();
    if (!words || !parent.getClientRects().length || parent.closest("option, select, style, script, textarea, .bk-still, details:not([open]) > :not(summary), .bk-scroll, .bk-code, .bk-plot, .bk-tip") || hiddenTo(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((r) => !isUnseen(parent, r)).map((r) => withinEllipsis(parent, r)).filter((r) => r.width > 0.5 && r.height > 0.5);
    if (rects.length) texts.push({ node, parent, words: words.slice(0, 40), rects });
  }
  const inside = (r, b, gap) => r.left >= b.left - gap && r.right <= b.right + gap && r.top >= b.top - gap && r.bottom <= b.bottom + gap;
  for (const { parent, words, rects } of texts) {
    for (let box = parent; box && box !== root.parentElement; box = box.parentElement) {
      const style = getComputedStyle(box);
      const isCard = box.matches(".bk-card, .bk-kpi, .bk-status, .bk-explorer, .bk-fields > *");
      const isCut = !(box instanceof SVGElement) && /hidden|clip/.test(style.overflowX + style.overflowY) && style.textOverflow !== "ellipsis" && style.webkitLineClamp === "none";
      if (/auto|scroll/.test(style.overflowX + style.overflowY)) break;
      if (!isCard && !isCut) continue;
      const b = box.getBoundingClientRect();
      const out = rects.find((r) => !inside(r, b, isCut ? 2 : 1));
      if (out) { faults.push(`${isCut ? "cut" : "outside"} ${box.className.baseVal ?? box.className}: ${words}`); break; }
    }
  }
  for (const input of root.querySelectorAll("input[type=text], input[type=number]")) {
    if (input.offsetParent && input.scrollWidth > input.clientWidth + 1) faults.push(`cut input: ${input.value || input.placeholder}`);
  }
  for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
    for (const a of texts[i].rects) for (const b of texts[j].rects) {
      const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (w > 2 && h > 4) faults.push(`overlap: ${texts[i].words} / ${texts[j].words}`);
    }
  }
  return [...new Set(faults)];
}
