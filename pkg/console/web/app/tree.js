// A revision as boxes and lines: its phases, their objects, ReplicaSets, and Pods. The healthy objects of a
// phase share a box. The list below the picture shows all objects.
import { html } from "./lib.js";
import { count, glyphOf, kindOf, objectName, objectPlace } from "./parts.js";
import { podPlace, podsOf } from "./object.js";

/** @typedef {{ text: string, signal: string, place?: string, below: Box[] }} Box */

const row = 30, high = 24, most = 12, wide = [120, 110, 230, 216, 228], gap = 26, letter = 7.2;

/** Neighbouring boxes: one for all healthy objects, and as many others as can be read.
 * @param {Box[]} boxes @param {string} noun */
function folded(boxes, noun) {
  /** @param {Box} one @returns {boolean} */
  const fine = (one) => one.signal === "well" && one.below.every(fine);
  const well = boxes.filter(fine), others = boxes.filter((one) => !fine(one)), shown = others.slice(0, most), left = others.length - shown.length;
  if (left) shown.push({ text: `${left} more`, signal: "stopped", below: [] });
  return well.length > 1 ? [...shown, { text: count(well.length, noun), signal: "well", below: [] }] : [...shown, ...well];
}

/** The worst signal of boxes. @param {Box[]} boxes */
const worst = (boxes) => (boxes.find((one) => one.signal === "needs") ?? boxes.find((one) => one.signal !== "well"))?.signal ?? "well";

/** Pods, those of a Deployment below its ReplicaSets. @param {import("./api").Pod[]} pods @param {string} revision @param {boolean} sets @returns {Box[]} */
function podBoxes(pods, revision, sets) {
  if (sets) return [...new Set(pods.map((pod) => pod.replicaSet))].map((set) => {
    const below = podBoxes(pods.filter((pod) => pod.replicaSet === set), revision, false);
    return { text: `ReplicaSet ${set}`, signal: worst(below), below };
  });
  return folded(pods.map((pod) => ({ text: `Pod ${pod.name}`, signal: pod.signal, place: podPlace(revision, pod), below: [] })), "Pod");
}

/** @param {{ revision: import("./api").Revision, objects: import("./api").RevisionObjectStatus[], pods: import("./api").Pods | null, signalOf: (one: import("./api").RevisionObjectStatus) => string }} props */
export function TreePicture({ revision, objects, pods, signalOf }) {
  const { name } = revision;
  /** @type {Box} */
  const root = { text: name, signal: revision.signal, below: revision.phases.map((phase) => {
    const below = folded(objects.filter((one) => one.phase === phase.name).map((one) => ({
      text: `${kindOf(one.apiVersion, one.kind).split(".")[0]} ${objectName(one)}`, signal: signalOf(one), place: objectPlace(name, one),
      below: podBoxes(podsOf(pods, one), name, one.kind === "Deployment"),
    })), "object");
    return { text: phase.name, signal: worst(below), below };
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
