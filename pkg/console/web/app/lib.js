// The parts of the libraries that screens use.
import { h, render } from "../vendor/preact.js";
import { useEffect, useRef } from "../vendor/hooks.js";
import { computed, effect, signal, useSignal } from "../vendor/signals.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { computed, effect, render, signal, useEffect, useRef, useSignal };
