// A revision as boxes and lines: its phases, their objects, and the Pods of these. Healthy objects are one
// box of its phase. The list below the picture has everything.
import { html } from "./lib.js";
import { count, glyphOf, kindOf, objectName, objectPlace } from "./parts.js";
import { podPlace, podsOf } from "./object.js";

/** @typedef {{ text: string, signal: string, place?: string, below: Box[] }} Box */

const row = 30, high = 24, most = 12, wide = [150, 150, 300, 300], gap = 36, letter = 7.2;

/** Boxes beside each other: those that are well as one, and no more of the others than can be read.
 * @param {Box[]} boxes @param {string} noun */
function folded(boxes, noun) {
  /** @param {Box} one @returns {boolean} */
  const fine = (one) => one.signal === "well" && one.below.every(fine);
  const well = boxes.filter(fine), others = boxes.filter((one) => !fine(one)), shown = others.slice(0, most), left = others.length - shown.length;
  if (left) shown.push({ text: `${left} more`, signal: "stopped", below: [] });
  return well.length > 1 ? [...shown, { text: count(well.length, noun), signal: "well", below: [] }] : [...shown, ...well];
}

/** @param {{ revision: import("./api").Revision, objects: import("./api").RevisionObjectStatus[], pods: import("./api").Pods | null, signalOf: (one: import("./api").RevisionObjectStatus) => string }} props */
export function TreePicture({ revision, objects, pods, signalOf }) {
  const { name } = revision;
  /** @type {Box} */
  const root = { text: name, signal: revision.signal, below: revision.phases.map((phase) => {
    const below = folded(objects.filter((one) => one.phase === phase.name).map((one) => ({
      text: `${kindOf(one.apiVersion, one.kind).split(".")[0]} ${objectName(one)}`, signal: signalOf(one), place: objectPlace(name, one),
      below: folded(podsOf(pods, one).map((pod) => ({ text: `Pod ${pod.name}`, signal: pod.signal, place: podPlace(name, pod), below: [] })), "Pod"),
    })), "object");
    return { text: phase.name, signal: below.every((one) => one.signal === "well") ? "well" : (below.find((one) => one.signal === "needs") ?? below.find((one) => one.signal !== "well"))?.signal ?? "", below };
  }) };
  /** @type {any[]} */
  const drawn = [];
  let rows = 0;
  /** @param {Box} one @param {number} depth @returns {number} where it is */
  const draw = (one, depth) => {
    const x = wide.slice(0, depth).reduce((sum, width) => sum + width + gap, 0), width = wide[depth];
    const below = one.below.map((child) => draw(child, depth + 1)), y = below.length ? (below[0] + below[below.length - 1]) / 2 : rows++ * row;
    const fits = Math.floor((width - 28) / letter), text = one.text.length > fits ? `${one.text.slice(0, fits - 1)}…` : one.text;
    const box = html`<g class=${one.signal}><title>${one.text}</title><rect x=${x + 1} y=${y + 1} width=${width - 2} height=${high} rx="4"/><text x=${x + 8} y=${y + 17}>${glyphOf(one.signal)} ${text}</text></g>`;
    drawn.push(below.map((to) => html`<path d=${`M ${x + width} ${y + 13} C ${x + width + 20} ${y + 13}, ${x + width + 16} ${to + 13}, ${x + width + gap} ${to + 13}`}/>`), one.place ? html`<a href=${one.place}>${box}</a>` : box);
    return y;
  };
  draw(root, 0);
  return html`<div class="drawn graph" id="tree" tabindex="0" role="region" aria-label=${`Picture of ${name}`}><svg viewBox=${`0 0 1008 ${rows * row}`} width="1008" height=${rows * row}>${drawn}</svg></div>`;
}
