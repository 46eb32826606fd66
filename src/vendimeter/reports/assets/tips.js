// What is shown beside the pointer or the focused control: text only, never markup.

const tip = document.getElementById("tip");
let tipAt = 0; // how far the page was scrolled when it was shown

// Show rows, each [name, text] with a name that may be empty, near a point of the window.
function showTip(rows, x, y) {
  tip.replaceChildren();
  for (const [name, text] of rows) {
    if (name) tip.append(element("span", "tip-name", name));
    tip.append(element("span", name ? "tip-value" : "tip-text", text));
  }
  tip.hidden = false;
  tipAt = window.scrollY;
  const box = tip.getBoundingClientRect();
  const across = document.documentElement.clientWidth;
  const left = x + 14 + box.width > across - 8 ? x - 14 - box.width : x + 14;
  const top = y + 16 + box.height > window.innerHeight - 8 ? y - 12 - box.height : y + 16;
  tip.style.left = Math.max(8, Math.min(left, across - box.width - 8)) + "px";
  tip.style.top = Math.max(8, top) + "px";
}

function hideTip() {
  tip.hidden = true;
}

// An element with a class and a text.
function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) {
    made.textContent = text;
    made.dir = "auto";
  }
  return made;
}

// Explanations that a browser would show for the pointer only, for the keyboard too.
function explain(target, text) {
  target.removeAttribute("title");
  target.setAttribute("aria-description", text);
  const show = () => {
    const box = target.getBoundingClientRect();
    showTip([["", text]], box.left, box.bottom - 10);
  };
  target.addEventListener("pointerenter", show);
  target.addEventListener("pointerleave", hideTip);
  target.addEventListener("focus", () => target.matches(":focus-visible") && show());
  target.addEventListener("blur", hideTip);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});
// What was pointed at moves away; an event about an earlier movement does not count.
window.addEventListener("scroll", () => Math.abs(window.scrollY - tipAt) > 4 && hideTip(), { passive: true });
