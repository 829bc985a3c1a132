// The upgrades of one channel as a picture: versions below each other, the highest first, and an
// arc from each version to what it can be upgraded to. What the picture shows, the table of
// versions says in words.
import { html } from "./lib.js";

/** @typedef {import("./api").CatalogPackageGraph} Graph */

const most = 40;
const row = 26, dot = 5, widest = 240, top = 14;

/** @type {Record<string, string>} */
const words = { replaces: "replaces", skips: "skips", skipRange: "skips a range" };

/** What is drawn: the highest versions of a channel, and upgrades between them.
 * @param {Graph} graph @param {string} channel */
export function layout(graph, channel) {
  const entries = graph.entries.filter((entry) => entry.channel === channel);
  const shown = entries.slice(0, most);
  const at = new Map(shown.map((entry, i) => [entry.version, i]));
  const between = graph.upgrades.filter((upgrade) => upgrade.channel === channel);
  const drawn = between.filter((upgrade) => at.has(upgrade.from) && at.has(upgrade.to));
  const way = new Set();
  for (const path of graph.paths ?? []) {
    let from = path.from;
    for (const to of path.versions) {
      way.add(`${from} ${to}`);
      from = to;
    }
  }
  const arcs = drawn.map((upgrade) => ({ ...upgrade, a: Number(at.get(upgrade.from)), b: Number(at.get(upgrade.to)), way: way.has(`${upgrade.from} ${upgrade.to}`) }));
  return { shown, arcs: arcs.sort((x, y) => Number(x.way) - Number(y.way)), left: entries.length - shown.length, hidden: between.length - drawn.length };
}

/** @param {{ graph: Graph, channel: string }} props */
export function GraphPicture({ graph, channel }) {
  const { shown, arcs, left, hidden } = layout(graph, channel);
  if (!shown.length) return html`<p class="quiet">This channel has no version.</p>`;
  const installed = new Set((graph.installed ?? []).map((one) => one.version));
  const longest = arcs.reduce((far, arc) => Math.max(far, Math.abs(arc.a - arc.b)), 1);
  const reach = (/** @type {number} */ rows) => 18 + (widest - 40) * Math.sqrt(rows / Math.max(longest, 6));
  const axis = arcs.length ? Math.ceil(reach(longest)) / 2 + 24 : 20;
  const y = (/** @type {number} */ i) => top + i * row;
  const told = `${channel}: ${shown.length} versions from ${shown[shown.length - 1].version} to ${shown[0].version}, ${arcs.length} upgrades between them. The table below says which.`;
  return html`<figure class="graph">
    <svg role="img" aria-label=${told} viewBox=${`0 0 560 ${y(shown.length - 1) + top}`} width="560" height=${y(shown.length - 1) + top}>
      ${arcs.map((arc) => html`<path class=${`${arc.by}${arc.way ? " way" : ""}`} d=${`M ${axis} ${y(arc.a)} C ${axis - reach(Math.abs(arc.a - arc.b)) * 0.66} ${y(arc.a)}, ${axis - reach(Math.abs(arc.a - arc.b)) * 0.66} ${y(arc.b)}, ${axis} ${y(arc.b)}`}/>`)}
      ${arcs.filter((arc, i) => arcs.findLastIndex((other) => other.b === arc.b) === i).map((arc) => html`<path class=${`tip${arc.way ? " way" : ""}`} d=${`M ${axis - dot - 1} ${y(arc.b)} l -8 -4 v 8 z`}/>`)}
      ${shown.map((entry, i) => html`<g class=${installed.has(entry.version) ? "installed" : entry.deprecation ? "deprecated" : ""}>
        <circle cx=${axis} cy=${y(i)} r=${dot}/><text x=${axis + 14} y=${y(i) + 4}>${label(entry, installed)}</text></g>`)}
    </svg>
    <figcaption class="quiet"><span class="key replaces">replaces</span> <span class="key skips">skips</span> <span class="key skipRange">skips a range</span> ${(graph.paths ?? []).length > 0 && html`<span class="key way">the path from the installed version</span>`}
      ${left > 0 && html`<span>${left} lower versions${hidden > 0 ? ` and ${hidden} upgrades from and to them` : ""} are not drawn.</span>`}</figcaption>
  </figure>`;
}

/** @param {import("./api").GraphEntry} entry @param {Set<string>} installed */
function label(entry, installed) {
  const version = entry.version.length > 40 ? `${entry.version.slice(0, 39)}…` : entry.version;
  return `${version}${installed.has(entry.version) ? " · installed" : ""}${entry.deprecation ? " · deprecated" : ""}`;
}

/** The same in words. @param {{ graph: Graph, channel: string, unsupported: Record<string, string> }} props */
export function Versions({ graph, channel, unsupported }) {
  const { shown, arcs } = layout(graph, channel);
  return html`<table class="rows" id="versions"><thead><tr><th scope="col">Version</th><th scope="col">Upgrade of</th><th scope="col" class="wide">Path from the installed version</th></tr></thead>
    <tbody>${shown.map((entry) => html`<tr key=${entry.version}><th scope="row"><strong class="version">${entry.version}</strong>
      ${entry.deprecation && html`<span class="more">deprecated: ${entry.deprecation.message}</span>`}${unsupported[entry.version] && html`<span class="more">cannot be installed: ${unsupported[entry.version]}</span>`}</th>
      <td>${entry.upgradeOf || (arcs.some((arc) => arc.to === entry.version) ? [...new Set(arcs.filter((arc) => arc.to === entry.version).map((arc) => `${words[arc.by] ?? arc.by} ${arc.from}`))].join("; ") : html`<span class="quiet">nothing</span>`)}</td>
      <td class="wide">${entry.path || html`<span class="quiet">–</span>`}</td></tr>`)}</tbody></table>`;
}
