// The page of the server: one entry for each address of openapi.json, with a request to edit and send. Everything that
// comes from the server is set as text, never as HTML.
"use strict";

const make = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  Object.assign(node, attributes);
  node.append(...children);
  return node;
};

const typeOf = schema => schema.enum ? schema.enum.join(" | ")
  : schema.oneOf ? [...new Set(schema.oneOf.map(typeOf))].join(" | ")
  : schema.type === "array" ? `list of ${typeOf(schema.items)}` : String(schema.type ?? "any");

const fieldsOf = schema => {
  const table = make("table", {}, make("tr", {}, ...["field", "type", "default", ""].map(text => make("th", {textContent: text}))));
  for (const [name, field] of Object.entries(schema.properties)) {
    const preset = schema.required.includes(name) ? "required" : JSON.stringify(field.default ?? null);
    table.append(make("tr", {}, make("td", {}, make("code", {textContent: name})),
      ...[typeOf(field), preset, field.description].map(text => make("td", {textContent: text}))));
  }
  return table;
};

const send = async (method, path, body, output) => {
  const key = document.querySelector("#key input").value;
  const headers = {...(body === undefined ? {} : {"Content-Type": "application/json"}),
                   ...(key ? {Authorization: `Bearer ${key}`} : {})};
  const begin = performance.now();
  try {
    const answer = await fetch(path, {method, headers, body});
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 1); } catch { /* not JSON: as it is */ }
    output.textContent = `${answer.status} in ${Math.round(performance.now() - begin)} ms\n${shown.slice(0, 100000)}`;
  } catch (error) {
    output.textContent = String(error);
  }
  output.hidden = false;
};

const entryOf = (path, method, operation) => {
  const output = make("pre", {hidden: true, ariaLive: "polite"});
  const entry = make("details", {}, make("summary", {}, make("span", {className: "method", textContent: method.toUpperCase()}),
    make("code", {textContent: path}), operation.summary));
  if (operation.description) entry.append(make("p", {textContent: operation.description}));
  const content = operation.requestBody?.content["application/json"];
  const text = make("textarea", {spellcheck: false, value: JSON.stringify(content?.example, null, 1) ?? ""});
  const name = operation.parameters ? make("input", {value: "", placeholder: operation.parameters[0].name}) : null;
  if (content) entry.append(fieldsOf(content.schema), make("label", {}, "Request ", text));
  if (name) entry.append(make("label", {}, `${operation.parameters[0].name} `, name));
  const button = make("button", {type: "button", textContent: "Send"});
  button.addEventListener("click", () => {
    const address = name ? path.replace(/\{.*\}/, encodeURIComponent(name.value)) : path;
    send(method.toUpperCase(), address, content ? text.value : undefined, output);
  });
  entry.append(make("div", {}, button), output);
  return entry;
};

const begin = async () => {
  document.querySelector("#key").addEventListener("submit", event => event.preventDefault());
  const described = await (await fetch("/openapi.json")).json();
  document.querySelector("#about").textContent = `Version ${described.info.version}. Each address can be tried here.`;
  document.querySelector("#key").hidden = Object.keys(described.components.securitySchemes).length === 0;
  const routes = document.querySelector("#routes");
  for (const [path, methods] of Object.entries(described.paths))
    for (const [method, operation] of Object.entries(methods)) routes.append(entryOf(path, method, operation));
};

begin();
