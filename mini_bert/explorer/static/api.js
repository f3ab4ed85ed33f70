// Questions to the server; in an exported file the answers are in the page.

const embedded = document.getElementById("answers");
const offline = embedded ? JSON.parse(embedded.textContent) : null;
export const isOffline = offline !== null;

export class Refused extends Error {}

/** The key of a question: its name and its parameters in order. */
function keyOf(name, parameters) {
  const kept = Object.entries(parameters)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([key, value]) => [key, String(value)])
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `${name}?${new URLSearchParams(kept)}`;
}

const waiting = new Map(); // answers on their way, so that two askers make one request

export async function ask(name, parameters = {}) {
  const key = keyOf(name, parameters);
  if (isOffline) {
    if (key in offline.answers) return offline.answers[key];
    throw new Refused(offline.missing[name] ?? offline.missing.other);
  }
  if (!waiting.has(key))
    waiting.set(
      key,
      answered(fetch(`/api/${key}`)).finally(() => waiting.delete(key)),
    );
  return waiting.get(key);
}

/** Has the exported file the answer to this? The live page can always ask. */
export function has(name, parameters = {}) {
  return !isOffline || keyOf(name, parameters) in offline.answers;
}

/** Something that changes the model. */
export async function change(name, parameters = {}) {
  if (isOffline) return ask(name, parameters);
  return answered(
    fetch(`/api/${name}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-mini-bert": "1" },
      body: JSON.stringify(parameters),
    }),
  );
}

async function answered(promise) {
  let response;
  try {
    response = await promise;
  } catch {
    throw new Refused("The explorer’s server does not answer; is it still running?");
  }
  const found = await response.json().catch(() => null);
  if (!response.ok || found === null) throw new Refused(found?.error ?? `The server answered ${response.status}.`);
  return found;
}

/** An array of the server: its numbers, and its shape. */
export function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  return { ...packed, data: new Float32Array(bytes.buffer) };
}
