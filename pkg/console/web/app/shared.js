// What screens tell each other.
import { signal } from "./lib.js";

/** Whose console this is. */
export const me = signal(/** @type {import("./api").Me | null} */ (null));

/** Who has frozen the cluster and why; empty when nobody has. */
export const frozen = signal("");

/** The rights of buttons that were asked for on this screen. @typedef {Record<string, import("./api").Right>} Rights */

/** Why a button does not work for want of a right; empty when it does. @param {Rights | null} rights @param {string} button */
export const lacks = (rights, button) => (!rights ? "your rights are not known yet" : rights[button]?.allowed ? "" : rights[button]?.missing ?? "your rights are not known");

/** Whether a text is a name that a link may have. @param {string} text */
export const isName = (text) => /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(text);
