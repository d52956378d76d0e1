// A file on its way to the kernel, in pieces: a server closes a connection over one large message.

const LARGEST = 20 * 1024 * 1024; // bytes
const PIECE = 2 * 1024 * 1024; // bytes

function createUploads(model, report) {
  const waiting = new Map(); // serial -> called with the bytes that have arrived
  const own = freshName();
  let count = 0;
  const piece = (serial, content, buffer) =>
    new Promise((resolve) => {
      waiting.set(serial, resolve);
      model.send({ kind: "file", serial, ...content }, undefined, [buffer]);
    });
  return {
    arrived: ({ serial }) => waiting.get(serial)?.(),
    async send(file, purpose) {
      if (file.size > LARGEST) return report(tooLarge(file));
      const serial = `${own} ${++count}`;
      let offset = 0;
      do {
        const part = await file.slice(offset, offset + PIECE).arrayBuffer();
        await piece(serial, { purpose, name: file.name, size: file.size, offset }, part);
        offset += part.byteLength;
        report({ level: "busy", text: `Sending ${file.name}`, progress: offset / Math.max(1, file.size) });
      } while (offset < file.size);
      waiting.delete(serial);
    },
  };
}

function tooLarge(file) {
  const size = (file.size / 1024 / 1024).toFixed(1);
  const text = `${file.name} has ${size} MB; an upload takes up to 20 MB; type the file's path into "File" instead.`;
  return { level: "error", text };
}

// A file that the kernel made, saved by the browser.
function download(name, content) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([content])) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function fileButton(text, accept, chosen) {
  const input = element("input", { type: "file", accept, class: "bk-file", tabindex: -1, "aria-hidden": "true" });
  const button = element("button", { type: "button", class: "bk-button" }, text);
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files[0]) chosen(input.files[0]);
    input.value = "";
  });
  return element("span", { class: "bk-filebutton" }, button, input);
}

// A file dropped on an explorer is opened; so is text or a file pasted where nothing is typed.
function watchDrops(box, open) {
  const over = (isOver) => box.classList.toggle("bk-dropping", isOver);
  const isFile = (event) => event.dataTransfer?.types.includes("Files");
  const taken = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  const listeners = {
    dragover: (event) => isFile(event) && (taken(event), over(true)),
    dragleave: (event) => box.contains(event.relatedTarget) || over(false),
    drop: (event) => {
      if (!isFile(event)) return;
      taken(event);
      over(false);
      if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
    },
    paste: (event) => {
      if (event.target.closest("input, textarea, select, [contenteditable]")) return;
      const text = event.clipboardData.getData("text/plain");
      const file = event.clipboardData.files[0] ?? (text.trim() && new File([text], "pasted text"));
      if (!file) return;
      taken(event);
      open(file);
    },
  };
  for (const [name, call] of Object.entries(listeners)) box.addEventListener(name, call, true);
  return () => Object.entries(listeners).forEach(([name, call]) => box.removeEventListener(name, call, true));
}
