// Moves on their way to the kernel: one in flight, and of those that wait only the last.

const LOST = 2000; // milliseconds after which an answer is no longer expected

function createCourier(model) {
  const own = Math.random().toString(36).slice(2);
  const courier = { flying: null, waiting: null, since: 0, serial: 0, answered: 0 };
  const fly = (message) => {
    courier.flying = message.id;
    courier.since = performance.now();
    model.send({ ...message, id: `${own} ${message.id}` });
  };
  // Returns a question: is this message answered?
  courier.post = (message) => {
    const posted = { ...message, id: ++courier.serial };
    const lost = performance.now() - courier.since > LOST;
    if (courier.flying === null || lost) fly(posted);
    else courier.waiting = posted;
    return () => courier.answered >= posted.id;
  };
  courier.landed = (acknowledged) => {
    const [sender, id] = String(acknowledged ?? "").split(" ");
    if (sender !== own || Number(id) !== courier.flying) return;
    courier.answered = Number(id);
    courier.flying = null;
    const next = courier.waiting;
    courier.waiting = null;
    if (next) fly(next);
  };
  return courier;
}
