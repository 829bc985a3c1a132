// State that screens share.
import { signal, useEffect, useSignal } from "./lib.js";
import { Refused, get } from "./net.js";

/** The user of this console. */
export const me = signal(/** @type {import("./api").Me | null} */ (null));

/** The author and the reason of a freeze; empty without one. */
export const frozen = signal("");

/** A question that a screen asks once: the answer, why it was refused, and how to ask again.
 * @template T @typedef {{ found: { value: T | null }, refused: { value: Refused | null }, round: number, again: () => void }} Asked */

/** Asks for something, for another thing when the path changes, and for the same again when the key
 * does. Without a path it asks for nothing yet.
 * @param {string} path @param {(answer: any) => void} [see] is called with each answer before it is shown @param {unknown} [key] @returns {Asked<any>} */
export function useAsk(path, see, key) {
  const held = useSignal({ path, answer: /** @type {any} */ (null) }), refused = useSignal(/** @type {Refused | null} */ (null)), round = useSignal(0);
  // The answer to another question is none to this one.
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

/** Something that a screen can do: the question before it, whether it goes on, and why it was refused. */
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

/** Keeps what somebody writes or chooses. @param {{ value: string }} signal */
export const into = (signal) => (/** @type {any} */ e) => (signal.value = e.currentTarget.value);

/** The rights of buttons that were asked for on this screen. @typedef {Asked<Record<string, import("./api").Right>>} Rights */

/** Why a button does not work for want of a right; empty when it does. @param {Rights} rights @param {string} button */
export function lacks({ found, refused }, button) {
  if (!found.value) return refused.value ? "your rights are not known" : "your rights are not known yet";
  const right = found.value[button];
  return right?.allowed ? "" : right?.missing ?? "your rights are not known";
}

/** The extension of a revision. @param {string} revision */
export const extensionOf = (revision) => revision.slice(0, revision.lastIndexOf("-"));

/** Whether a text is a name that a link may have. @param {string} text */
export const isName = (text) => /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(text);
