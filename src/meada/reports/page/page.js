"use strict";
// Sorts tables and writes CSV files.
(() => {
  const worth = (cell) => {
    const value = cell.dataset.value ?? cell.textContent;
    const number = value === "" ? NaN : Number(value);
    return Number.isNaN(number) ? parseFloat(value) : number;
  };
  const order = (a, b) => {
    const [x, y] = [worth(a), worth(b)];
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  };
  const sort = (button) => {
    const head = button.closest("th");
    const table = button.closest("table");
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const empty = (row) => row.cells[head.cellIndex].dataset.value === "";
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      if (empty(a) !== empty(b)) return empty(a) ? 1 : -1; // what is not known comes last
      const sign = order(a.cells[head.cellIndex], b.cells[head.cellIndex]);
      return up ? sign : -sign;
    });
    table.tBodies[0].append(...rows);
  };

  // A cell of text that begins like a formula would be run by a spreadsheet.
  const quoted = (text, number) => {
    const safe = !number && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const csv = (table) =>
    [...table.rows].map((row) => [...row.cells].map((cell) => {
      const value = cell.dataset.value;
      return value === undefined ? quoted(cell.textContent, false) : quoted(value, true);
    }).join(",")).join("\r\n") + "\r\n";
  const save = (button) => {
    const table = button.closest("figure").querySelector("table");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
    link.download = button.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.classList.contains("csv")) save(button);
    else if (button.closest("th")) sort(button);
  });
})();
