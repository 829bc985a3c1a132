// State that screens share.
import { signal, useEffect, useSignal } from "./lib.js";
import { Refused, get } from "./net.js";

/** The user of this console. */
export const me = signal(/** @type {import("./api").Me | null} */ (null));

/** The author and the reason of a freeze; empty without one. */
export const frozen = signal("");

/** A request that a screen sends once: the answer, the refusal, and a function that repeats it.
 * @template T @typedef {{ found: { value: T | null }, refused: { value: Refused | null }, round: number, again: () => void }} Asked */

/** Sends a request, a new one when the path changes, and the same again when the key changes. Without
 * a path it sends none.
 * @param {string} path @param {(answer: any) => void} [see] is called with each answer before it is shown @param {unknown} [key] @returns {Asked<any>} */
export function useAsk(path, see, key) {
  const held = useSignal({ path, answer: /** @type {any} */ (null) }), refused = useSignal(/** @type {Refused | null} */ (null)), round = useSignal(0);
  // An answer for another path does not count.
  const found = {
    get value() { return held.value.path === path ? held.value.answer : null; },
    set value(answer) { held.value = { path, answer }; },
  };
  useEffect(() => {
    if (!path) return;
    const abort = new AbortController();
    refused.value = null;
    get(path, abort.signal).then((answer) => { see?.(answer); found.value = answer; }, (failure) => { if (!abort.signal.aborted) refused.value = failure; });
    return () => abort.abort();
  }, [path, round.value, key]);
  return { found, refused, round: round.value, again: () => round.value++ };
}

/** An action of a screen: its question, whether it is running, and its refusal. */
export function useDeed() {
  const asking = useSignal(/** @type {any} */ ("")), busy = useSignal(false), refused = useSignal(/** @type {Refused | null} */ (null));
  const act = async (/** @type {() => Promise<void>} */ deed) => {
    busy.value = true;
    refused.value = null;
    try {
      await deed();
    } catch (failure) {
      refused.value = /** @type {Refused} */ (failure);
    }
    busy.value = false;
    asking.value = "";
  };
  return { asking, busy, refused, act };
}

/** Stores the user's input. @param {{ value: string }} signal */
export const into = (signal) => (/** @type {any} */ e) => (signal.value = e.currentTarget.value);

/** The rights of the buttons, as requested on this screen. @typedef {Asked<Record<string, import("./api").Right>>} Rights */

/** The missing right of a button; empty if none is missing. @param {Rights} rights @param {string} button */
export function lacks({ found, refused }, button) {
  if (!found.value) return refused.value ? "your rights are not known" : "your rights are not known yet";
  const right = found.value[button];
  return right?.allowed ? "" : right?.missing ?? "your rights are not known";
}

/** The extension of a revision. @param {string} revision */
export const extensionOf = (revision) => revision.slice(0, revision.lastIndexOf("-"));

/** Whether a text is a valid name in a link. @param {string} text */
export const isName = (text) => /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(text);
