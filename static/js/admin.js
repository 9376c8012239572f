// What Django's admin leaves unsaid for screen readers and keyboards.
"use strict";

const texts = document.currentScript.dataset;

// The search boxes over long lists (select2) give the part that shows the choice no name: one hears "text box".
function nameSearchBoxes() {
  for (const select of document.querySelectorAll("select.admin-autocomplete")) {
    const name = select.getAttribute("aria-label") || select.labels?.[0]?.textContent.trim();
    const shown = select.nextElementSibling?.querySelector(".select2-selection__rendered");
    if (name && shown) shown.setAttribute("aria-label", name);
  }
}

// A list wider than a phone scrolls in its own box, which the arrow keys reach only if it can be focused.
function letListsScroll() {
  for (const box of document.querySelectorAll("#changelist .results")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", texts.list);
    }
  }
}

globalThis.django?.jQuery?.(nameSearchBoxes); // after Django's own, which makes them
addEventListener("load", letListsScroll);
