// The pages can be read without this: it filters the rows of a table by what is typed.
"use strict";
for (const input of document.querySelectorAll("input[data-filters]")) {
  const rows = document.getElementById(input.dataset.filters).tBodies[0].rows;
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const name = row.dataset.name.toLowerCase();
      row.hidden = !words.every((word) => name.includes(word));
    }
  };
  input.addEventListener("input", apply);
}
