// Tables that can be sorted by every column and filtered by a text.

const inWords = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

// What a cell is sorted by: a number, a text, or null where it is missing.
function sortValue(row, column) {
  const cell = row.cells[column];
  if (cell.classList.contains("missing")) return null;
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}

// Sort rows in place; what is missing comes last in either direction, and equals keep their order.
function sortRows(rows, column, descending) {
  const keyed = rows.map((row) => [sortValue(row, column), row]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "number" ? a - b : inWords.compare(a, b);
    return descending ? -order : order;
  });
  return keyed.map(([, row]) => row);
}

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = element("button", "sort");
    button.type = "button";
    button.append(...head.childNodes);
    // Browsers do not repeat a head with buttons on every sheet of paper.
    head.append(button, element("bdi", "on-paper", button.textContent));
    if (head.title) {
      explain(button, head.title);
      head.removeAttribute("title");
    }
    button.addEventListener("click", () => {
      // Numbers begin with the greatest, which is what one looks for; texts with the first.
      const first = head.classList.contains("text") ? "ascending" : "descending";
      const other = first === "ascending" ? "descending" : "ascending";
      const chosen = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", chosen);
      body.append(...sortRows([...body.rows], column, chosen === "descending"));
    });
  });
}

function filterable(block, table) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const tools = element("div", "tools");
  const label = element("label");
  const input = element("input");
  input.type = "search";
  input.autocomplete = "off";
  input.spellcheck = false;
  label.append("Filter ", input);
  const said = element("output");
  said.setAttribute("aria-live", "polite");
  const count = (some) => `${some.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
  said.textContent = count(rows.length);
  tools.append(label, said);
  block.insertBefore(tools, block.querySelector(".scroll"));
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let kept = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      kept += !row.hidden;
    });
    said.textContent = count(kept);
  });
}

for (const block of document.querySelectorAll("div.table")) {
  const table = block.querySelector("table");
  if (block.dataset.filterable !== undefined) filterable(block, table);
  if (block.dataset.sortable !== undefined) sortable(table);
}

// A box takes the focus only while there is something to scroll.
const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scrolls = target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight;
    if (scrolls) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
document.querySelectorAll(".scroll, .code pre").forEach((box) => boxes.observe(box));
