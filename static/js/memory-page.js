// The page of all memories: what is selected is counted, and all that is shown is selected at once.

const boxes = () => [...document.querySelectorAll('#memory-rows [name="memory"]')];
const count = document.querySelector("[data-selected]");

function show() {
  const selected = boxes().filter((each) => each.checked).length;
  count.textContent = selected || "";
  const all = document.querySelector("[data-check-all]");
  if (!all) return;
  all.checked = selected > 0 && selected === boxes().length;
  all.indeterminate = selected > 0 && !all.checked;
}

document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-check-all]")) for (const box of boxes()) box.checked = target.checked;
  if (target.closest("#memory-rows")) show();
});
document.addEventListener("htmx:afterSettle", show);

// A row in somebody's hands is not redrawn under them.
document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt } = event.detail;
  if (elt.id === "memory-rows" && elt.querySelector("[data-editing], .forgotten")) event.preventDefault();
});
