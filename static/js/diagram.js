// The drawing of a process (bpmn-js, navigated viewer; its mark stays visible) with what stands where.
//
// The model is fetched once. Counts come from the `data-counts` of the part that says the same in words; when that part
// is morphed the marks on the drawing follow, so they change without a reload and without a request of their own.
"use strict";

(() => {
  const SMALLEST = 0.6;
  document.querySelectorAll("[data-diagram]").forEach((holder) => draw(holder));

  async function draw(holder) {
    const said = holder.querySelector("[data-diagram-said]");
    const canvasElement = holder.querySelector("[data-diagram-canvas]");
    holder.hidden = false;
    const viewer = new BpmnJS({
      container: canvasElement,
      // Labels are laid out with the page's own font, else they would not fit their shapes.
      textRenderer: { defaultStyle: { fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 } },
      bpmnRenderer: {
        defaultFillColor: "var(--surface)",
        defaultStrokeColor: "var(--edge)",
        defaultLabelColor: "var(--text)",
      },
    });
    let note = "";
    try {
      const answer = await fetch(holder.dataset.diagram, { credentials: "same-origin" });
      note = decodeURIComponent(answer.headers.get("Drawing-Note") || "");
      if (!answer.ok) throw new Error(note || `the model could not be fetched (${answer.status})`);
      await viewer.importXML(await answer.text());
    } catch (error) {
      canvasElement.remove();
      holder.querySelector(".diagram-tools").remove();
      said.textContent = `No drawing: ${error.message}. The same stands as text below.`;
      said.hidden = false;
      return;
    }
    if (note) {
      said.textContent = note;
      said.hidden = false;
    }
    const canvas = viewer.get("canvas");
    fit(canvas);
    tools(holder, viewer, canvas);
    follow(holder, viewer, canvas);
  }

  // Whole, but never larger than drawn, and never so small that nobody reads it: then it begins at its left edge, and at its top if it is too high.
  function fit(canvas) {
    const size = canvas.getSize();
    if (!size.width || !size.height) return;
    canvas.zoom("fit-viewport", "auto");
    if (canvas.zoom() > 1) canvas.zoom(1, "auto");
    if (canvas.zoom() >= SMALLEST) return;
    canvas.zoom(SMALLEST);
    const { inner, outer } = canvas.viewbox();
    const height = outer.height / SMALLEST;
    const top = inner.height > height ? inner.y - 20 : inner.y + (inner.height - height) / 2;
    canvas.viewbox({ x: inner.x - 20, y: top, width: outer.width / SMALLEST, height });
  }

  function tools(holder, viewer, canvas) {
    holder.addEventListener("click", (event) => {
      const button = event.target.closest("[data-zoom]");
      if (!button) return;
      if (button.dataset.zoom === "fit") fit(canvas);
      else viewer.get("zoomScroll").stepZoom(button.dataset.zoom === "in" ? 1 : -1);
    });
    // A drawing that was laid out for another width is laid out again.
    let width = holder.clientWidth;
    new ResizeObserver(() => {
      if (holder.clientWidth === width) return;
      width = holder.clientWidth;
      canvas.resized();
      fit(canvas);
    }).observe(holder);
  }

  function follow(holder, viewer, canvas) {
    const id = holder.dataset.countsFrom;
    const marked = new Map();
    let shown = null;
    const look = () => {
      const part = document.getElementById(id);
      if (!part || part.dataset.counts === shown) return;
      shown = part.dataset.counts;
      mark(viewer, canvas, JSON.parse(shown), marked);
    };
    look();
    new MutationObserver(look).observe(document.getElementById("main"), { subtree: true, childList: true, attributeFilter: ["data-counts"] });
  }

  // ---- marks: a class on the shape, a number beside it

  function mark(viewer, canvas, counts, marked) {
    const registry = viewer.get("elementRegistry");
    const overlays = viewer.get("overlays");
    marked.forEach((classes, id) => classes.forEach((name) => canvas.removeMarker(id, name)));
    marked.clear();
    overlays.clear();
    const add = (id, name) => {
      if (!registry.get(id)) return;
      canvas.addMarker(id, name);
      marked.set(id, [...(marked.get(id) || []), name]);
    };
    Object.keys(counts.taken || {}).forEach((flow) => {
      add(flow, "way");
      const connection = registry.get(flow);
      if (connection && connection.source) add(connection.source.id, "done");
    });
    Object.entries(counts.elements).forEach(([id, found]) => {
      const element = registry.get(id);
      if (!element) return;
      if (found.incidents) add(id, "bad");
      else if (found.tokens) add(id, "now");
      if (found.tokens) overlays.add(id, { position: { top: -11, right: 11 }, scale: { min: 1 }, html: badge(found.tokens, "tokens", found.incidents > 0) });
      if (found.incidents) overlays.add(id, { position: { top: -11, left: -11 }, scale: { min: 1 }, html: badge(found.incidents > 1 ? `! ${found.incidents}` : "!", "incidents", true) });
    });
  }

  function badge(text, kind, bad) {
    const element = document.createElement("div");
    element.className = `mark ${kind}${bad ? " stuck" : ""}`;
    element.textContent = String(text);
    return element;
  }
})();
