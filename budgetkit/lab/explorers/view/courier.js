// The courier: sends messages to the kernel, one at a time and in order; of one gesture only the last one waits.

const LOST = 2000; // milliseconds after which an answer is no longer expected

function createCourier(model, onBusy) {
  const own = freshName();
  const courier = { flying: null, waiting: [], since: 0, serial: 0, answered: 0 };
  const fly = (message) => {
    courier.flying = message.id;
    courier.since = performance.now();
    onBusy(true);
    model.send({ ...message, id: `${own} ${message.id}` });
  };
  const wait = (posted) => {
    const last = courier.waiting.at(-1);
    if (last?.gesture && last.gesture === posted.gesture) courier.waiting.pop();
    courier.waiting.push(posted);
  };
  // Returns a function that tells whether the message has been answered.
  courier.post = (message) => {
    const posted = { ...message, id: ++courier.serial };
    const lost = performance.now() - courier.since > LOST;
    if (courier.flying !== null && !lost) wait(posted);
    else [...courier.waiting.splice(0), posted].forEach(fly);
    return () => courier.answered >= posted.id;
  };
  courier.landed = (acknowledged) => {
    const [sender, id] = String(acknowledged ?? "").split(" ");
    if (sender !== own || Number(id) !== courier.flying) return;
    courier.answered = Number(id);
    courier.flying = null;
    if (courier.waiting.length) fly(courier.waiting.shift());
    else onBusy(false);
  };
  return courier;
}
