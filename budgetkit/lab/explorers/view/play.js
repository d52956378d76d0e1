// Playing: a conversation through one or two policies, or a budget over its turns, drawn by the page alone, from columns
// of numbers that were sent once.

const PACE = 1.4; // requests a second
const STEP = 260; // milliseconds of one step that a key or a click takes

function createPlay(moved, asked = null, heading = "h3") {
  const button = element("button", { type: "button", class: "bk-button bk-play-button" }, "\u25b6 Play");
  const range = element("input", { type: "range", min: 1, max: 1, step: 1, class: "bk-play-range" });
  const where = element("output", { class: "bk-play-where" });
  const chosen = [0, 1].map((i) => element("select", { "aria-label": ["Policy", "Policy beside it"][i] }));
  const choice = element("span", { class: "bk-play-choice" }, chosen[0], element("span", {}, " beside "), chosen[1]);
  const lanes = element("div", { class: "bk-lanes" });
  const legend = element("ul", { class: "bk-legend", "aria-label": "Colours" });
  const header = element("div", { class: "bk-header" }, element(heading, {}, "Watch it happen"), choice);
  const bar = element("div", { class: "bk-play-bar" }, button, range, where);
  const root = element("section", { class: "bk-card bk-play", "data-state": "empty" }, header, bar, lanes, legend);
  const play = { root, film: null, lanes: [], time: 1, at: 0, goal: null, last: 0, running: false, moved };
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  const tell = (isResting) => {
    const request = Math.max(1, Math.min(play.film.turns.length, Math.round(play.time)));
    if (request !== play.at) {
      play.at = request;
      range.value = request;
      const name = nameOf(play.film, request);
      put(range, { "aria-valuetext": name });
      say(where, `${name} of ${grouped(play.film.turns.at(-1))}${play.film.by === "turn" ? "" : " turns"}`);
      for (const lane of play.lanes) {
        const told = toldAt(play.film, lane, request);
        say(lane.told, told);
        put(lane.canvas, { "aria-label": `${lane.track.name}, ${name}: ${told}` });
      }
      play.moved(request, isResting);
    } else if (isResting) play.moved(request, true);
  };
  const paint = () => {
    if (!play.film) return;
    const style = getComputedStyle(root);
    const theme = { soft: style.getPropertyValue("--bk-soft").trim(), alarm: style.getPropertyValue("--bk-alarm").trim(), font: style.fontFamily };
    for (const lane of play.lanes) drawLane(lane, play.film, play.time, theme);
  };
  const frame = (now) => {
    const passed = Math.min(100, now - play.last);
    play.last = now;
    const end = play.film.turns.length;
    if (play.running) play.time = Math.min(end, play.time + (passed * PACE) / 1000);
    else if (play.goal !== null) {
      const way = play.goal - play.time;
      play.time += Math.sign(way) * Math.min(Math.abs(way), passed / STEP);
    }
    const isThere = play.running ? play.time >= end : play.time === play.goal;
    if (isThere) stop();
    if (!calm.matches || Math.floor(play.time) !== play.drawn || isThere) {
      play.drawn = Math.floor(play.time);
      const whole = play.time;
      if (calm.matches) play.time = play.drawn;
      paint();
      play.time = whole;
    }
    tell(isThere);
    if (!isThere) requestAnimationFrame(frame);
    else play.moving = false;
  };
  const move = () => {
    if (play.moving) return;
    play.moving = true;
    play.last = performance.now();
    requestAnimationFrame(frame);
  };
  const stop = () => {
    play.running = false;
    play.goal = null;
    say(button, "\u25b6 Play");
    lanes.removeAttribute("aria-busy");
    lanes.setAttribute("aria-live", "polite");
  };
  play.start = () => {
    if (play.time >= play.film.turns.length) play.time = 1;
    play.running = true;
    play.goal = null;
    say(button, "\u23f8 Pause");
    lanes.setAttribute("aria-live", "off"); // what changes with every frame is not read out
    move();
  };
  play.goTo = (request) => {
    play.running = false;
    const isNear = Math.abs(request - play.time) <= 1.01 && !calm.matches;
    if (!isNear) play.time = request;
    play.goal = request;
    say(button, "\u25b6 Play");
    move();
  };
  play.toggle = () => {
    if (!play.film) return void asked?.();
    if (!play.running) return play.start();
    play.goTo(Math.round(play.time));
  };
  const cast = () => {
    const { film } = play;
    const names = [...new Set([Number(chosen[0].value), Number(chosen[1].value)])].filter((i) => film.tracks[i]);
    play.lanes = names.map((i) => makeLane(film, film.tracks[i]));
    const most = Math.max(...play.lanes.map((lane) => lane.most));
    for (const lane of play.lanes) lane.most = most;
    lanes.replaceChildren(...play.lanes.map((lane) => lane.root));
    play.at = 0;
    tell(false);
    paint();
  };
  play.show = (film, request) => {
    play.film = film;
    put(root, { "data-state": "ready" });
    put(range, { max: film.turns.length, "aria-label": film.by === "turn" ? "Turn" : "Request" });
    bar.hidden = film.turns.length < 2;
    choice.hidden = film.tracks.length < 2;
    chosen.forEach((list, i) => {
      const options = film.tracks.map((track, at) => element("option", { value: at }, track.name));
      if (i) options.unshift(element("option", { value: -1 }, "none"));
      list.replaceChildren(...options);
      list.value = i ? (film.tracks.length > 1 ? (film.main ? 0 : 1) : -1) : film.main ?? 0;
    });
    play.time = Math.max(1, Math.min(film.turns.length, request ?? film.turns.length));
    paintPlayLegend(legend, film);
    cast();
  };
  button.addEventListener("click", play.toggle);
  range.addEventListener("input", () => play.goTo(Number(range.value)));
  range.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    play.toggle();
  });
  chosen.forEach((list) => list.addEventListener("change", cast));
  new ResizeObserver(paint).observe(lanes);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  play.paint = paint;
  return play;
}

function paintPlayLegend(list, film) {
  const fixed = film.tracks.flatMap((track) => [...track.before, ...track.after].filter(([, sizes]) => sizes.some(Boolean)).map(([kind]) => kind));
  const summed = film.tracks.filter((track) => track.summaries.length).map((track) => track.kind_of_summary);
  const used = [...new Set([...film.kind, ...fixed, ...summed])].sort((a, b) => a - b);
  const entries = used.map((kind) => ({ key: film.kinds[kind][0], color: film.kinds[kind][1] }));
  if (film.tracks[0].cached) {
    entries.push({ key: "read from the cache", color: CACHE.cached }, { key: "written to it", color: CACHE.written }, { key: "gone cold", color: CACHE.cold });
  }
  const isOver = film.tracks.some((track) => track.sent?.some((sent) => sent > film.room));
  if (film.tracks.some((track) => track.cuts?.flat().some(Boolean))) entries.push({ key: "limit that cuts", color: "var(--bk-alarm)" });
  if (isOver) entries.push({ key: film.room_text, color: "var(--bk-alarm)" });
  keep(list, entries, () => element("li", {}, element("span", { class: "bk-swatch", "aria-hidden": "true" }), element("span")), (item, entry) => {
    put(item.children[0], { style: `--bk-color:${entry.color}` });
    say(item.children[1], entry.key);
  });
}

// In an explorer the numbers are sent when they are first asked for, and again when a replay has changed.
function createKeptPlay(model, post) {
  if (!model.get("state").plays) return { nodes: [], draw: () => {}, paint: () => {} };
  let isWaiting = false;
  const told = (request, isResting) => isResting && post({ kind: "request", request, gesture: "play" });
  const play = createPlay(told, () => {
    isWaiting = true;
    tellOpened(model, "play", true);
  });
  const draw = () => {
    const film = model.get("play");
    if (!film.turns) return;
    play.show(film, isWaiting ? 1 : play.time);
    if (isWaiting) play.start();
    isWaiting = false;
  };
  return { nodes: [play.root], draw, paint: play.paint };
}
