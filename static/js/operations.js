// Operations: seconds that count by themselves, and parts that are asked for again although nothing in the history tells.
//
// Counting needs no network: each element carries the seconds that it showed when it came. Nothing of it is announced
// (no live region), and the Pause button of the page stops it (WCAG 2.2.2).
"use strict";

(() => {
  const paused = () => document.querySelector('[data-live-pause][aria-pressed="true"]') !== null;
  const known = new WeakMap();

  // Seconds since this element got the value that stands in its attribute; morphing may bring a new one.
  function passed(element, value) {
    const now = performance.now();
    let seen = known.get(element);
    if (!seen || seen.value !== value) {
      seen = { value, at: now };
      known.set(element, seen);
    }
    return (now - seen.at) / 1000;
  }

  // The same words as webapp/operations/words.py.
  function words(seconds) {
    const whole = Math.max(Math.floor(seconds), 0);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min`;
    return whole < 86400 ? `${Math.floor(whole / 3600)} h` : `${Math.floor(whole / 86400)} d`;
  }

  function leaseWords(left, total) {
    const whole = Math.max(Math.floor(left), 0);
    if (total < 120) return `${whole} s of ${total} s`;
    return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} of ${Math.floor(total / 60)} min`;
  }

  function tick() {
    if (paused()) return;
    document.querySelectorAll("[data-countdown]").forEach((lease) => {
      const value = lease.dataset.countdown;
      const left = Number(value) - passed(lease, value);
      const total = Number(lease.dataset.total);
      const said = lease.querySelector("[data-countdown-words]");
      const bar = lease.querySelector(".bar");
      const text = left < 0 ? `ended ${words(-left)} ago` : leaseWords(left, total);
      if (said.textContent !== text) said.textContent = text;
      said.className = left < 0 ? "late" : left < 10 ? "soon" : "";
      bar.setAttribute("class", `bar ${left < 0 ? "danger" : left < 10 ? "warn" : "ok"}`);
      bar.firstElementChild.setAttribute("width", `${Math.round(100 * Math.max(0, Math.min(1, total > 0 ? left / total : 0)))}%`);
      const row = lease.closest("tr");
      if (row) row.classList.toggle("ended", left < 0);
    });
    document.querySelectorAll("[data-countup]").forEach((element) => {
      const value = element.dataset.countup;
      const age = Number(value) + passed(element, value);
      const text = `${words(age)} ago`;
      if (element.textContent !== text) element.textContent = text;
      element.classList.toggle("late", age > 30);
    });
  }

  // ---- leases, heartbeats and due times change without an event: ask again every few seconds while the page is seen

  const asked = new Map();
  function again() {
    if (document.hidden || paused()) return;
    const now = performance.now();
    document.querySelectorAll("[data-live-get][data-live-every]").forEach((part) => {
      const since = asked.get(part.id);
      if (since === undefined) asked.set(part.id, now);
      else if (now - since >= Number(part.dataset.liveEvery) * 1000) {
        asked.set(part.id, now);
        document.dispatchEvent(new CustomEvent("baton:ask", { detail: part.id }));
      }
    });
  }

  setInterval(tick, 250);
  setInterval(again, 1000);
  tick();
})();
