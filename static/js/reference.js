// The API reference: Swagger UI over our own description, with the session of whoever reads it.
(() => {
  const place = document.getElementById("reference");
  if (!place || !window.SwaggerUIBundle) return;
  const { url, csrf } = place.dataset;

  // What assistive technology needs and Swagger UI does not say.
  const name = () => {
    place.querySelector("h1, h2.title")?.setAttribute("aria-level", "2");
    place.querySelector(".operation-filter-input")?.setAttribute("aria-label", "Filter by group");
    for (const pre of place.querySelectorAll("pre:not([tabindex])")) pre.tabIndex = 0;
    for (const field of place.querySelectorAll("select:not([aria-label]), textarea:not([aria-label]), input:not([aria-label])"))
      field.setAttribute("aria-label", field.closest("[data-param-name]")?.dataset.paramName || field.placeholder || field.title || "Value");
  };

  // Its own layout brings a <main>, and the page has one.
  const layout = (system) => ({
    components: {
      Plain: ({ getComponent }) => {
        const make = system.React.createElement;
        const parts = [["SvgAssets", false], ["errors", true], ["InfoContainer", true], ["FilterContainer", true], ["operations", true]];
        return make("div", { className: "swagger-ui" }, ...parts.map(([part, filled]) => make(getComponent(part, filled), { key: part })));
      },
    },
  });

  const viewer = document.createElement("div");
  place.querySelector(".operations").replaceWith(viewer);
  new MutationObserver(name).observe(viewer, { childList: true, subtree: true });
  window.SwaggerUIBundle({
    url,
    domNode: viewer,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    filter: true,
    validatorUrl: null,
    plugins: [layout],
    layout: "Plain",
    syntaxHighlight: false,
    requestInterceptor: (request) => {
      if (new URL(request.url, location.href).origin === location.origin) request.headers["X-CSRFToken"] = csrf;
      return request;
    },
  });
})();
