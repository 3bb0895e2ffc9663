// The pages can be read without this: it hides what is not asked for, by the words that are typed.
"use strict";
for (const input of document.querySelectorAll("input[data-filters]")) {
  const list = document.getElementById(input.dataset.filters);
  const items = [...list.querySelectorAll("[data-name]")];
  const groups = [...list.querySelectorAll("[data-group]")];
  const output = input.parentElement.querySelector("output");
  const apply = () => {
    const words = input.value.toLowerCase().split(/[\s/]+/).filter(Boolean);
    let count = 0;
    for (const item of items) {
      const name = item.dataset.name.toLowerCase();
      item.hidden = !words.every((word) => name.includes(word));
      count += !item.hidden;
    }
    for (const group of groups) group.hidden = !group.querySelector("[data-name]:not([hidden])");
    if (output) output.textContent = words.length ? `${count} of ${items.length}` : "";
  };
  input.addEventListener("input", apply);
  apply(); // what a browser has kept of an earlier visit
}
