// What every page may use. Everything works without it; it only moves the focus, keeps times true, and says what failed.
"use strict";

// ---- htmx: where the focus goes when the pressed button is gone, and what is said when no answer came

document.addEventListener("htmx:afterSettle", () => {
  reveal(document);
  const lost = document.activeElement === document.body || document.activeElement === null;
  const target = lost ? document.querySelector("#main [data-focus]") : null;
  if (target) target.focus({ preventScroll: false });
  document.querySelectorAll("[data-focus]").forEach((element) => element.removeAttribute("data-focus"));
});

document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  if (status === 404) say("This is gone, or no longer yours to see. Reload the page to see how it stands.");
  else if (status === 503) say("The database cannot be reached at the moment. Press again in a few seconds.");
  else if (status !== 401 && status !== 400) say("Something broke on our side. Nothing was half done; press again.");
});
document.addEventListener("htmx:sendError", () => say("There is no connection to the server. Press again when it is back."));
document.addEventListener("htmx:timeout", () => say("The server did not answer in time. Press again; a repeated press is counted once."));

function say(sentence) {
  const status = document.getElementById("status");
  if (status) status.textContent = sentence;
  let notice = document.getElementById("notice-said");
  if (!notice) {
    notice = document.createElement("div");
    notice.id = "notice-said";
    notice.className = "notice warn";
    document.getElementById("main").prepend(notice);
  }
  notice.textContent = sentence;
}

// ---- dismissing a sentence in a row: the row stays in its new state

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-dismiss]");
  if (!button) return;
  const row = button.closest("tbody");
  button.closest("tr").remove();
  row.classList.remove("lost");
  const link = row.querySelector("a");
  if (link) link.focus();
});

function reveal(root) {
  root.querySelectorAll(":is([data-dismiss], [data-copy])[hidden]").forEach((button) => button.removeAttribute("hidden"));
}

// ---- copying what a field holds; where a browser forbids it, the text is selected for the keyboard

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const field = document.getElementById(button.dataset.copy);
  let words = "Copied";
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    field.focus();
    field.select();
    words = "Selected: copy it with the keyboard";
  }
  button.querySelector("span").textContent = words;
  const status = document.getElementById("status");
  if (status) status.textContent = words;
});

// ---- menus: Escape and a press elsewhere close them

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
document.addEventListener("click", (event) => {
  document.querySelectorAll("details.menu[open]").forEach((menu) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
});

// ---- relative times stay true while the page stands

function span(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"} ago`;
}

function ago(seconds) {
  if (seconds < 1) return "just now";
  if (seconds < 60) return plural(seconds, "second");
  if (seconds < 3600) return plural(Math.floor(seconds / 60), "minute");
  if (seconds < 86400) return plural(Math.floor(seconds / 3600), "hour");
  return seconds < 604800 ? plural(Math.floor(seconds / 86400), "day") : null;
}

// The server's clock counts: what it wrote is the truth when the page came, from there on this browser only adds.
const opened = performance.now();
const seen = new WeakMap();

function passed(time) {
  if (!seen.has(time)) {
    const server = Number(document.body.dataset.now) * 1000;
    seen.set(time, server ? { at: Date.parse(time.dateTime), base: server } : null);
  }
  const known = seen.get(time);
  return known ? Math.floor((known.base + performance.now() - opened - known.at) / 1000) : null;
}

function tick() {
  document.querySelectorAll("time[data-live]").forEach((time) => {
    const seconds = passed(time);
    if (seconds === null) return;
    let words = null;
    if (time.dataset.live === "ago") words = ago(Math.max(seconds, 0));
    else if (time.dataset.live === "age") words = span(Math.max(seconds, 0));
    else if (seconds >= 0) words = `${span(seconds)} overdue`;
    else if (seconds > -7200) words = `in ${span(-seconds)}`;
    if (time.dataset.live === "due") time.className = seconds >= 0 ? "late" : "soon";
    if (words !== null && time.textContent !== words) time.textContent = words;
  });
}

reveal(document);
setInterval(tick, 10000);

// A page that comes back from the browser's memory may tell an old truth: ask again how it stands.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) window.location.reload();
});
