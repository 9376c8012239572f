// Keep: a button beside the code and the tables of an answer, and what is kept opens where the memories are.

const template = () => document.getElementById("keep-button");

function addKeepButtons() {
  for (const message of document.querySelectorAll("[data-keep]")) {
    const prose = message.querySelector(".prose");
    if (!prose || !template() || prose.querySelector(".prose__plain")) continue;
    prose.querySelectorAll(".code-block, table").forEach((piece, number) => {
      if (piece.dataset.withKeep !== undefined) return;
      piece.dataset.withKeep = "";
      const bar = template().content.cloneNode(true).firstElementChild;
      bar.querySelector("button").dataset.block = String(number);
      piece.after(bar);
    });
  }
}

addKeepButtons();
document.addEventListener("htmx:afterSettle", addKeepButtons);

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-keep-block]");
  if (!button) return;
  const values = button.dataset.block === undefined ? {} : { block: button.dataset.block };
  const address = button.closest("[data-keep]").dataset.keep;
  // Not from the button: the message may be shown anew meanwhile, and what is gone gets no answer.
  htmx.ajax("POST", address, { event, source: document.body, target: "#panel", swap: "innerHTML", values });
});

// The panel asks for the memories when it first comes into view. An artifact that is there already stays.
document.addEventListener("htmx:beforeSwap", (event) => {
  const asked = event.detail.requestConfig.elt;
  if (asked.id === "panel" && asked.querySelector("[data-artifact-panel]")) event.detail.shouldSwap = false;
});
