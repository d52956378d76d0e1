// The design card: a headline over the key figures, and under the bar how far off a cheap count is.

function createCard(isCard, actions) {
  if (!isCard) return { over: [], under: [], paint: () => {} };
  const over = element("p", { class: "bk-over" });
  const title = element("h2", {});
  const text = element("p", { class: "bk-sentence" });
  const top = element("div", { class: "bk-header" }, element("div", {}, over, title), actions.root);
  const strip = createStrip();
  const paint = (state) => {
    say(over, state.headline.over);
    say(title, state.headline.title);
    say(text, state.headline.text);
    strip.paint(state.strip);
  };
  return { over: [element("div", { class: "bk-headline" }, top, text)], under: [strip.root], paint };
}
