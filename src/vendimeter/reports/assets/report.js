// The page around tables and charts: colours, contents, copying, printing.

const root = document.documentElement;
root.classList.add("scripted");

// Dark or light, at first as the reader's system has it.
const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = document.querySelector("button.theme");
function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
}
function nameTheme() {
  theme.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
}
theme.hidden = false;
nameTheme();
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
dark.addEventListener("change", nameTheme);

const legend = document.querySelector(".orders legend");
if (legend) explain(legend, legend.title);

// The contents show where the reader is: the last section that begins above the upper third of the window.
const links = new Map();
for (const link of document.querySelectorAll("nav.contents a")) {
  links.set(document.getElementById(link.hash.slice(1)), link);
}
function markSection() {
  let current = null;
  for (const section of links.keys()) {
    if (section.getBoundingClientRect().top < window.innerHeight / 3) current = section;
  }
  links.forEach((link, section) => {
    if (section === current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
}
let waiting = false;
window.addEventListener(
  "scroll",
  () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      markSection();
    });
  },
  { passive: true },
);
markSection();
document.querySelectorAll("details.contents-folded a").forEach((link) => {
  link.addEventListener("click", () => (link.closest("details").open = false));
});

for (const block of document.querySelectorAll(".code")) {
  const button = element("button", "copy", "Copy");
  button.type = "button";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
    } catch {
      getSelection().selectAllChildren(block.querySelector("code"));
      said = "Selected";
    }
    button.textContent = said;
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  block.prepend(button);
}

// On paper nothing can be unfolded.
let unfolded = [];
window.addEventListener("beforeprint", () => {
  hideTip();
  unfolded = [...document.querySelectorAll("main details.group:not([open]), main details.long:not([open])")];
  unfolded.forEach((details) => (details.open = true));
});
window.addEventListener("afterprint", () => {
  unfolded.forEach((details) => (details.open = false));
});

// A link to a part that is folded opens what it is in.
function unfold() {
  let part = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  for (; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
}
window.addEventListener("hashchange", unfold);
unfold();

// The observer of charts has spoken after two frames; then all that are in sight are in line.
requestAnimationFrame(() =>
  requestAnimationFrame(() => drawing.then(() => (root.dataset.ready = "true"))),
);
