// Requests to the console, and its streams. The key is in the fragment of the address, which
// browsers send to no server, and is kept only in this tab.
import { signal } from "./lib.js";
import { token } from "./oidc.js";

const slot = "penstock.key";

/** Moves the key from the address to this tab. Then it opens the page of the address, or the page
 * that this tab requested before it had a key. */
export function takeKey() {
  const given = /^#key=([A-Za-z0-9_-]+)(?:&at=(\/.*))?$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(slot, given[1]);
    history.replaceState(null, "", `/#${given[2] ?? sessionStorage.getItem("penstock.place") ?? "/"}`);
    sessionStorage.removeItem("penstock.place");
  } else if (!hasKey()) {
    sessionStorage.setItem("penstock.place", location.hash.slice(1) || "/");
  }
  return hasKey();
}

/** Whether this tab has a key or a token. */
export const hasKey = () => sessionStorage.getItem(slot) !== null;

/** Keeps a user's token in this tab, for a shared console. @param {string} token */
export const keep = (token) => sessionStorage.setItem(slot, token);

/** Clears the storage of this tab, with the key or the token. */
export const forget = () => sessionStorage.clear();

/** A refusal with the server's message. */
export class Refused extends Error {
  /** @param {import("./api").Refusal} refusal */
  constructor(refusal) {
    super(refusal.message);
    this.status = refusal.status;
    this.reason = refusal.reason;
  }
}

/** @typedef {"connecting" | "live" | "troubled" | "lost" | "signedOut" | "refused"} LinkState */

/** The state of this page's stream; since is the time of its last message. */
export const link = signal({ state: /** @type {LinkState} */ ("connecting"), message: "", since: Date.now() });

/** Marks a screen without a stream: it shows the state at the time of the request. */
export const still = () => { link.value = { state: "live", message: "", since: Date.now() }; };

/** @param {string} path @param {RequestInit} [options] */
async function ask(path, options = {}) {
  const shown = await token();
  // Without a token, a proxy in front may add one.
  const headers = { ...(shown ? { Authorization: `Bearer ${shown}` } : {}), ...(options.body ? { "Content-Type": "application/json" } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers, redirect: "error", credentials: "omit" });
  } catch (failure) {
    if (options.signal?.aborted) throw failure;
    throw new Refused({ status: 0, reason: "Console", message: "the console does not answer: is its process still running?" });
  }
  if (response.ok) return response;
  let refusal = { status: response.status, reason: "Unknown", message: `the console answers ${response.status}` };
  try {
    refusal = await response.json();
  } catch {
    // the status is enough
  }
  if (response.status === 401) link.value = { ...link.value, state: "signedOut", message: refusal.message };
  throw new Refused(refusal);
}

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function get(path, signal) {
  return (await ask(path, { signal: signal ?? null })).json();
}

/** @param {string} path @param {object} body @returns {Promise<any>} */
export async function post(path, body) {
  return (await ask(path, { method: "POST", body: JSON.stringify(body) })).json();
}

const shortest = 500;
const longest = 20000;
const hiddenFor = 30000;

/**
 * Follows a stream until the returned function is called. A stream that ends is opened again,
 * unless a retry cannot help; a hidden tab closes its stream.
 * @param {string} path
 * @param {(message: import("./api").Message) => void} see
 * @param {(refused: Refused) => void} [fail] is called with a refusal that affects only a part of the page
 */
export function watch(path, see, fail) {
  let stopped = false, wait = shortest;
  /** @type {AbortController | undefined} */
  let open;
  /** @type {number | undefined} */
  let later;
  const begin = async () => {
    open = new AbortController();
    link.value = { ...link.value, state: "connecting", message: "" };
    try {
      const response = await ask(path, { signal: open.signal });
      await lines(response, (message) => {
        if (message.kind === "error" && message.refusal) throw new Refused(message.refusal);
        wait = shortest;
        if (message.kind === "trouble" && message.refusal) link.value = { ...link.value, state: message.part && message.refusal.status === 403 ? "live" : "troubled", message: message.refusal.message };
        else if (message.kind !== "beat" && message.kind !== "wanted" && (message.kind !== "rows" || link.value.state !== "troubled")) link.value = { state: "live", message: "", since: Date.now() };
        see(message);
      });
      throw new Refused({ status: 0, reason: "Console", message: "the stream has ended" });
    } catch (failure) {
      if (stopped || open.signal.aborted) return;
      const refused = failure instanceof Refused ? failure : new Refused({ status: 0, reason: "Console", message: "the console does not answer: is its process still running?" });
      if (refused.status === 401) {
        link.value = { ...link.value, state: "signedOut", message: refused.message };
        return; // a retry would be refused, too
      }
      if (fail && [400, 403, 404].includes(refused.status)) {
        fail(refused);
        return;
      }
      if (refused.status === 403 || refused.status === 400) {
        link.value = { ...link.value, state: "refused", message: refused.message };
        return;
      }
      link.value = { ...link.value, state: "lost", message: refused.message };
      later = setTimeout(begin, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, longest);
    }
  };
  /** @type {number | undefined} */
  let hide;
  const seen = () => {
    clearTimeout(hide);
    if (document.hidden) {
      hide = setTimeout(() => open?.abort(), hiddenFor);
    } else if (open?.signal.aborted && !stopped) {
      begin();
    }
  };
  document.addEventListener("visibilitychange", seen);
  begin();
  return () => {
    stopped = true;
    clearTimeout(later);
    clearTimeout(hide);
    document.removeEventListener("visibilitychange", seen);
    open?.abort();
  };
}

/** @param {Response} response @param {(message: import("./api").Message) => void} see */
async function lines(response, see) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) if (line) see(JSON.parse(line));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
