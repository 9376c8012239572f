// The page of a chat that is made for paper.
document.querySelector("[data-print]").addEventListener("click", () => window.print());
