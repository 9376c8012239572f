// Files that are brought: chosen, pasted or dropped. On the page of documents each is the workspace's at once, and the
// list follows. Beside a message each is a draft of its person's until that is sent: the answer draws on these alone,
// and what is sent waits until they are read.

const POLL = 800; // milliseconds between two looks at a document that is being read
const form = () => document.querySelector("form[data-documents]");
const list = () => form()?.querySelector("[data-attached]");
const texts = document.getElementById("texts").dataset;
const busy = new Set();
let waiting = null; // a send that goes on when nothing is on its way any more

function settle() {
  const shown = list();
  if (shown) shown.hidden = !shown.children.length;
  if (busy.size || !waiting) return;
  const send = waiting;
  waiting = null;
  if (send.form.isConnected) send.go();
}

const isPrivate = () => document.querySelector("#readers[data-private], #readers [name=private]:checked");

function bring(files) {
  const refusal = form().querySelector("[data-no-files]"); // of a temporary chat
  if (refusal) refusal.hidden = false;
  if (refusal) return;
  for (const file of files) add(file);
}

function add(file) {
  const shown = list();
  if (!shown) return;
  const item = form().querySelector("[data-attached-file]").content.firstElementChild.cloneNode(true);
  item.querySelector("[data-name]").textContent = file.name;
  shown.append(item);
  item.querySelector("[data-again]").addEventListener("click", () => upload(item, file));
  item.querySelector("[data-leave-out]").addEventListener("click", () => {
    item.stop?.();
    busy.delete(item);
    item.remove();
    takeBack(item);
    settle();
    focusBack();
  });
  upload(item, file);
}

const isMessage = () => form()?.matches("#composer");

// A draft that is left out is deleted.
async function takeBack(item) {
  if (!item.made || !isMessage()) return;
  const headers = { "X-CSRFToken": form().querySelector("[name=csrfmiddlewaretoken]").value };
  try {
    const answer = await fetch(item.made, { method: "DELETE", headers, keepalive: true });
    if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status));
  } catch {
    item.querySelector("input")?.remove();
    list()?.append(item); // it is still there, and may be left out again
    fail(item);
  }
}

function focusBack() {
  (form()?.querySelector("[data-composer]") ?? form()?.querySelector("[data-attach-files]"))?.focus();
}

function say(item, text, { progress = null, failed = false } = {}) {
  item.querySelector("[data-state]").textContent = text;
  item.classList.toggle("attached__file--failed", failed);
  const bar = item.querySelector("[data-progress]");
  bar.hidden = progress === null;
  if (progress !== null) bar.value = progress;
  item.querySelector("[data-again]").hidden = !failed || Boolean(item.querySelector("input"));
}

function fail(item, text, { isRefused = false } = {}) {
  busy.delete(item);
  say(item, text || texts.fileFailed, { failed: true });
  if (isRefused) item.querySelector("[data-again]").hidden = true; // it would be again
  settle();
}

function upload(item, file) {
  const request = new XMLHttpRequest();
  const body = new FormData();
  body.append("file", file);
  if (isPrivate() || form().querySelector("select[name=personal]")?.value) body.append("personal", "true");
  if (isMessage()) body.append("draft", "true");
  busy.add(item);
  say(item, texts.fileSending, { progress: 0 });
  settle();
  request.upload.addEventListener("progress", (event) => {
    if (event.lengthComputable) item.querySelector("[data-progress]").value = (100 * event.loaded) / event.total;
  });
  request.addEventListener("load", () => {
    const answer = parsed(request.responseText);
    if (request.status !== 200 && request.status !== 201) {
      const error = answer?.error;
      const isRefused = [413, 415, 422].includes(request.status);
      fail(item, error?.fields?.file ?? error?.message, { isRefused }); // the message would repeat it after the field's name
      return;
    }
    if (request.status === 201) item.made = `${address}/${answer.id}`;
    if (!item.isConnected) {
      takeBack(item); // left out while the server had it already
      return;
    }
    const chosen = document.createElement("input");
    Object.assign(chosen, { type: "hidden", name: "documents", value: answer.id });
    item.append(chosen);
    form()?.dispatchEvent(new CustomEvent("brought", { bubbles: true }));
    follow(item, answer);
  });
  request.upload.addEventListener("load", () => (item.stop = null)); // it is the server's: what it answers counts
  request.addEventListener("error", () => fail(item));
  const address = form().dataset.documents;
  request.open("POST", address);
  request.setRequestHeader("X-CSRFToken", form().querySelector("[name=csrfmiddlewaretoken]").value);
  request.setRequestHeader("accept", "application/json");
  request.send(body);
  item.stop = () => request.abort();
}

// Until it is read. Where that fails its text is not used, and it says why; a picture without a text says so, too.
function follow(item, found) {
  if (!item.isConnected) return;
  item.known ??= found.duplicate;
  if (found.status === "ready" || found.status === "indexing") {
    busy.delete(item);
    say(item, found.error || (item.known ? texts.fileKnown : texts.fileReady));
    settle();
  } else if (found.status === "failed") {
    item.querySelector("input").remove();
    item.querySelector("[data-again]").remove();
    busy.delete(item);
    item.classList.add("attached__file--failed");
    item.querySelector("[data-state]").textContent = found.error;
    item.querySelector("[data-progress]").hidden = true;
    settle();
  } else {
    say(item, texts.fileReading);
    setTimeout(async () => {
      try {
        const answer = await fetch(`${form().dataset.documents}/${found.id}`, { headers: { accept: "application/json" } });
        if (!answer.ok) throw new Error(String(answer.status));
        follow(item, await answer.json());
      } catch {
        item.querySelector("input")?.remove();
        fail(item);
      }
    }, POLL);
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-attach]")) form().querySelector("[data-attach-files]").click();
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-attach-files]")) return;
  bring(event.target.files);
  event.target.value = "";
  const more = event.target.closest("details");
  if (more) more.open = false;
  focusBack();
});

document.addEventListener("paste", (event) => {
  if (!form() || !event.clipboardData?.files.length) return;
  if (event.target.closest?.("input, textarea:not([data-composer])")) return; // a table is copied as text and picture
  event.preventDefault();
  bring(event.clipboardData.files);
});

const hasFiles = (event) => form() && [...(event.dataTransfer?.items ?? [])].some((item) => item.kind === "file");

document.addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  form().classList.add("composer--drop");
});

document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) form()?.classList.remove("composer--drop");
});

document.addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  form().classList.remove("composer--drop");
  bring(event.dataTransfer.files);
});

// What is sent while a file is on its way waits for it.
document.addEventListener("htmx:confirm", (event) => {
  if (event.detail.elt !== form() || !busy.size) return;
  event.preventDefault();
  waiting = { form: form(), go: () => event.detail.issueRequest(true) };
});

// What another chat was being sent goes no further, as when its page is left.
document.addEventListener("memoryhub:chat-opened", () => {
  for (const item of busy) item.stop?.();
  busy.clear();
  waiting = null;
});

// What was chosen held for that message.
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.elt !== form() || !event.detail.successful) return;
  for (const item of [...(list()?.children ?? [])]) item.remove();
  const choice = document.querySelector("select[name=documents][form=composer]");
  if (choice) {
    choice.value = "";
    choice.dispatchEvent(new Event("change", { bubbles: true }));
  }
  settle();
});
