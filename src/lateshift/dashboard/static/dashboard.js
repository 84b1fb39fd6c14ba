// What pages can do beyond being read: keys, live regions, questions before what cannot be undone. All of it can be left out.

const dialog = document.getElementById("keys");
const rows = () => [...document.querySelectorAll("tr[data-href]")];
let held = false; // live updates
let going = 0; // until when a letter after `g` names a page

function select(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("chosen"));
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
  all.forEach((row) => row.classList.toggle("chosen", row === next));
  next.querySelector("a")?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

// As a hand does: what hangs on a tick hears of it.
const tick = () => document.querySelector("tr.chosen input[type=checkbox]")?.click();

function letGo() {
  for (const row of document.querySelectorAll("tr.chosen")) row.classList.remove("chosen");
  document.activeElement?.blur();
}

function go(letter) {
  const page = [...document.querySelectorAll("nav a")].find((link) => link.dataset.key === letter);
  if (page) page.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  if (Date.now() < going) {
    going = 0;
    go(event.key);
  } else if (event.key === "j") select(1);
  else if (event.key === "k") select(-1);
  else if (event.key === "x") tick();
  else if (event.key === "Enter" && event.target === document.body) document.querySelector("tr.chosen a")?.click();
  else if (event.key === "g") going = Date.now() + 1500;
  else if (event.key === "Escape") letGo();
  else if (event.key === "?") dialog.showModal();
  else if (event.key === ".") hold(!held);
  else if (event.key === "/" && document.querySelector("[data-search]")) {
    event.preventDefault();
    document.querySelector("[data-search]").focus();
  }
});

function hold(is) {
  held = is;
  document.body.classList.toggle("held", held);
}

// What stands beside a live region and follows with it, such as a form: not while somebody has put something into it, nor while it says
// why it was refused.
const parts = () => [...document.querySelectorAll("[data-part]")];

function changed(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (!field.options) return field.value !== field.defaultValue;
  const first = [...field.options].findIndex((option) => option.defaultSelected);
  return field.selectedIndex !== Math.max(0, first);
}

function inUse(part) {
  const fields = [...part.querySelectorAll("input:not([type=hidden]), textarea, select")];
  return part.querySelector("#wrong") || fields.some((field) => field === document.activeElement || changed(field));
}

// A live region looks again only while somebody can see it, and not under a hand that is at work in it.
function look() {
  if (document.hidden || held) return;
  for (const region of document.querySelectorAll("[data-live]")) {
    const typing = region.contains(document.activeElement) && document.activeElement.matches("input, textarea, select");
    const busy = typing || region.querySelector(window.htmx ? "input:checked, tr.chosen" : "input:checked, tr.chosen, details[open]");
    const due = Date.now() - Number(region.dataset.looked || 0) >= Number(region.dataset.live) * 1000 - 100;
    if (busy || !due) continue;
    region.dataset.looked = Date.now();
    region.setAttribute("hx-select-oob", parts().map((part) => `#${part.id}:morph`).join());
    if (window.htmx) htmx.trigger(region, "look");
    else lookPlainly(region);
  }
}

// Where the package was built without the libraries: the region as a whole, as the server has it now.
async function lookPlainly(region) {
  try {
    const answer = await fetch(region.dataset.here ?? location.href, { headers: { "HX-Request": "true" } });
    if (new URL(answer.url).pathname === "/sign-in") return location.reload();
    document.body.classList.toggle("gone", !answer.ok);
    if (!answer.ok) return;
    const chosen = region.querySelector("tr.chosen")?.dataset.href;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const free = parts().filter((part) => !inUse(part) && !part.querySelector("details[open]"));
    for (const each of [region, ...free]) each.replaceChildren(...(page.getElementById(each.id)?.childNodes ?? []));
    rows().find((row) => row.dataset.href === chosen)?.classList.add("chosen");
  } catch {
    document.body.classList.add("gone");
  }
}

// What somebody has opened stays open, what is being typed stays, and a row that was walked to while the page looked again stays the one.
if (window.Idiomorph) {
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
    !(name === "open" && node.matches("details")) && !(name === "class" && node.matches("tr.chosen"));
  Idiomorph.defaults.callbacks.beforeNodeMorphed = (node) => !(node.matches?.("[data-part]") && inUse(node));
}

// Who is not signed in any more is shown the door, which knows the way back here.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (new URL(event.detail.xhr.responseURL).pathname !== "/sign-in") return;
  event.detail.shouldSwap = false;
  location.reload();
});

// A page that cannot look again says so: what stands there may be old.
document.addEventListener("htmx:afterRequest", (event) => document.body.classList.toggle("gone", !event.detail.successful));

for (const region of document.querySelectorAll("[data-live]")) region.dataset.looked = Date.now();
setInterval(look, 1000);
document.addEventListener("visibilitychange", look);

// A form that is sent with its question is asked by the server. What was asked here is sent without, this time.
document.addEventListener("submit", (event) => {
  const question = event.target.elements.namedItem("question");
  if (!question) return;
  if (!confirm(question.value)) return event.preventDefault();
  question.disabled = true;
  setTimeout(() => (question.disabled = false));
});

document.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-href]");
  if (row && !event.target.closest("a, button, input, label, summary") && !getSelection().toString()) row.querySelector("a").click();
});

// On a phone the menu is longer than the screen is wide.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

const theme = document.getElementById("theme");
theme.hidden = document.getElementById("keys-open").hidden = false;
document.getElementById("keys-open").addEventListener("click", () => dialog.showModal());
theme.addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
});
