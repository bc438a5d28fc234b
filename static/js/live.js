// Live parts: hints come by one event stream, each part is fetched again by an ordinary GET with its ETag.
//
// A part is an element with `data-live-get` (its address) and `data-live-topic`. It is morphed in place, and left alone
// while somebody types in it, has a menu of it open, or has paused. Hidden tabs close their stream. A stream that is
// refused or breaks makes the page poll; htmx's extension does not do that by itself.
"use strict";

(() => {
  const url = document.body.dataset.liveUrl;
  if (!url || !window.EventSource) return;

  const POLL_MS = 5000;
  const RETRY_MS = 15000;
  const tags = new Map();
  const waiting = new Set();
  let stream = null;
  let poll = null;
  let retry = null;
  let paused = false;

  const state = document.querySelector("[data-live-state]");
  const button = document.querySelector("[data-live-pause]");
  if (state) state.hidden = false;
  if (button) button.addEventListener("click", () => (paused ? resume() : pause()));

  // ---- the stream

  function open() {
    if (stream || document.hidden) return;
    stream = new EventSource(url);
    stream.addEventListener("open", () => {
      stopPolling();
      show();
    });
    stream.addEventListener("changed", (event) => changed(event.data));
    stream.addEventListener("error", () => {
      // CLOSED: refused (no room, signed out). CONNECTING: broken, the browser tries again by itself. Poll meanwhile.
      if (stream && stream.readyState === EventSource.CLOSED) {
        stream = null;
        clearTimeout(retry);
        retry = setTimeout(open, RETRY_MS);
      }
      startPolling();
    });
  }

  function close() {
    clearTimeout(retry);
    if (stream) stream.close();
    stream = null;
    stopPolling();
  }

  function startPolling() {
    if (!poll) poll = setInterval(everything, POLL_MS);
    show();
  }

  function stopPolling() {
    clearInterval(poll);
    poll = null;
  }

  // ---- what changed

  function parts(topic) {
    return [...document.querySelectorAll("[data-live-get]")].filter((part) => !topic || part.dataset.liveTopic === topic);
  }

  function changed(topic) {
    parts(topic).forEach((part) => waiting.add(part.id));
    later();
  }

  function everything() {
    parts().forEach((part) => waiting.add(part.id));
    if (!paused) later();
  }

  let timer = null;
  function later() {
    if (paused) return count();
    if (timer) return;
    timer = setTimeout(() => {
      timer = null;
      const ids = [...waiting];
      waiting.clear();
      ids.forEach((id) => refresh(id));
    }, 150);
  }

  async function refresh(id) {
    const part = document.getElementById(id);
    if (!part) return;
    if (busy(part)) {
      waiting.add(id);
      return;
    }
    const headers = { "HX-Request": "true" };
    const address = part.dataset.liveGet;
    if (tags.has(address)) headers["If-None-Match"] = tags.get(address);
    let answer;
    try {
      answer = await fetch(address, { headers, credentials: "same-origin", cache: "no-store" });
    } catch {
      return startPolling();
    }
    if (answer.status === 401) return close();
    if (answer.status === 404) return part.remove();
    if (answer.status !== 200) return;
    const html = await answer.text();
    if (busy(part) || paused) {
      waiting.add(id);
      return;
    }
    if (answer.headers.get("ETag")) tags.set(address, answer.headers.get("ETag"));
    Idiomorph.morph(part, html.trim(), { morphStyle: "outerHTML", ignoreActiveValue: true, callbacks: { beforeNodeMorphed: sentByServer } });
    const fresh = document.getElementById(id);
    if (fresh) htmx.process(fresh);
    const total = fresh && fresh.dataset.liveCount;
    const count = document.getElementById("list-count");
    if (total && count) count.textContent = total;
  }

  // The state and its Pause button are this script's, also where they stand in a part: the server sends them hidden.
  const sentByServer = (old) => !(state && old === state);

  // Never under the cursor of someone typing, an open menu, or a sentence that was just said in a row.
  function busy(part) {
    const active = document.activeElement;
    if (active && part.contains(active) && active.matches("input:not([type=hidden]), textarea, select")) return true;
    return Boolean(part.querySelector("details[open], tbody.lost, .htmx-request"));
  }

  // static/js/operations.js asks for parts that change without an event in the history: leases, heartbeats, due times.
  document.addEventListener("baton:ask", (event) => {
    waiting.add(event.detail);
    later();
  });

  document.addEventListener("focusout", () => setTimeout(() => !paused && waiting.size && later(), 0));
  document.addEventListener("click", () => setTimeout(() => !paused && waiting.size && later(), 50));

  // ---- pause: the page stands still and says how much waits (WCAG 2.2.2)

  let held = 0;
  function pause() {
    paused = true;
    held = 0;
    show();
  }

  function resume() {
    paused = false;
    held = 0;
    everything();
    show();
  }

  function count() {
    held += 1;
    show();
  }

  function show() {
    if (!state) return;
    const words = state.querySelector("[data-live-words]");
    const dot = state.querySelector("[data-live-dot]");
    const label = button && button.querySelector("span");
    const text = paused ? (held ? `Paused, ${held} change${held === 1 ? "" : "s"} waiting` : "Paused") : poll ? "Every 5 s" : "Live";
    if (words.textContent !== text) words.textContent = text;
    dot.className = `dot ${paused ? "warn" : poll ? "" : "ok"}`.trim();
    if (button) button.setAttribute("aria-pressed", String(paused));
    if (label) label.textContent = paused ? "Go on" : "Pause";
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    open();
    everything();
  });
  window.addEventListener("pagehide", close);
  open();
})();
