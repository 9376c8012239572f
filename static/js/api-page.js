// The page of the API: Swagger UI in a frame of ours, with names for what has none of its own.
{
  const { schema, csrf, close, example, body } = document.getElementById("routes").dataset;

  const ours = ({ React: { createElement } }) => {
    const labelled = (text) => (Field) => (props) => {
      const label = createElement("span", { className: "visually-hidden" }, text);
      return createElement("label", null, label, createElement(Field, props));
    };
    return {
      components: {
        // Without the heading and the landmark that the page has already.
        PageOfRoutes: ({ getComponent, specSelectors }) => {
          const isThere = specSelectors.loadingStatus() === "success";
          const parts = isThere ? ["AuthorizeBtnContainer", "operations"] : ["errors"];
          return createElement("div", null, parts.map((key) => createElement(getComponent(key, true), { key })));
        },
        // It stands in a button: a link there is neither.
        DeepLink: ({ text }) => createElement("span", null, text),
        CloseIcon: () => createElement("span", null, close),
      },
      wrapComponents: { ExamplesSelect: labelled(example), TextArea: labelled(body) },
    };
  };

  SwaggerUIBundle({
    url: schema,
    dom_id: "#routes",
    deepLinking: true,
    docExpansion: "none",
    layout: "PageOfRoutes",
    plugins: [ours],
    presets: [SwaggerUIBundle.presets.apis],
    syntaxHighlight: { activated: false },
    requestInterceptor: (request) => {
      if (request.method && request.method !== "GET") request.headers["X-CSRFToken"] = csrf;
      return request;
    },
  });
}
