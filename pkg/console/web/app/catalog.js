// The catalog: the packages of the cluster's catalogs; one package with its channels, its versions and
// their upgrades, as a picture and in words; and its installation, after a preview of the objects.
import { html, useSignal } from "./lib.js";
import { post } from "./net.js";
import { Ago, Asked, Button, Confirm, Manifest, Problem, State, announce, count, notChosen, soft, useFilter } from "./parts.js";
import { into, lacks, me, useAsk, useDeed } from "./shared.js";

/** @typedef {import("./api").Packages} Offer @typedef {import("./api").PackageRow} Row @typedef {import("./api").CatalogRow} CatalogRow */
/** @typedef {import("./api").Package} Package @typedef {import("./api").CatalogPackage} Offered @typedef {import("./api").Installation} Installation */
/** @typedef {import("./api").CatalogPackageGraph} Graph */

export function PackagesScreen() {
  const installed = useSignal(false);
  const asked = useAsk("/api/packages", (/** @type {Offer} */ found) => announce(count(found.packages.length, "package")));
  const offer = /** @type {Offer | null} */ (asked.found.value), rows = offer?.packages ?? [];
  const list = useFilter(rows, (row) => [row.name, row.catalog, row.description, row.kinds], (row) => !installed.value || !!row.installed);
  return html`<h1 tabindex="-1">Catalog</h1>
    <${Asked} of=${asked} doing="Packages cannot be shown"/>
    ${offer && html`<${Catalogs} rows=${offer.catalogs ?? []} hidden=${offer.hidden} packages=${rows.length}/>
      ${(offer.warnings ?? []).map((said) => html`<p class="note review" key=${said}>${said}</p>`)}`}
    ${rows.length > 0 && html`<section aria-labelledby="packages">
      <div class="head"><h2 id="packages">Packages <span class="quiet number">${rows.length}</span></h2>
        <label><input type="checkbox" id="installed" checked=${installed.value} onChange=${() => (installed.value = !installed.value)}/> installed only</label>
        ${list.field("Filter packages by name, description or kind", "Name, words or kind")}</div>
      <table class="rows" id="offered"><thead><tr><th scope="col">Package</th><th scope="col" class="ver">Latest</th><th scope="col" class="wide few">Installed</th><th scope="col" class="wide ver">Catalog</th></tr></thead>
      <tbody>${list.shown.map((row) => html`<${PackageLine} key=${row.name} row=${row}/>`)}</tbody></table>
      ${list.rest}</section>`}`;
}

/** The catalogs of the packages: one line while all are healthy. @param {{ rows: CatalogRow[], hidden?: import("./api").Refusal | null, packages: number }} props */
function Catalogs({ rows, hidden, packages }) {
  if (hidden) {
    return hidden.status === 404
      ? html`<p class="note review" id="nocatalog">This cluster has no kind ClusterCatalog: Penstock brings it when it is registered, see <code>kubectl penstock check</code>.</p>`
      : html`<p class="note review" id="hidden">The catalogs themselves are not shown: ${hidden.message}</p>`;
  }
  if (!rows.length) return html`<p class="note review" id="nocatalog">There is no catalog. A ClusterCatalog names an image with packages; <code>kubectl get clustercatalogs</code> lists them.</p>`;
  const wrong = rows.filter((row) => row.signal !== "well" && row.signal !== "stopped");
  return html`<section aria-labelledby="catalogs"><h2 id="catalogs">Catalogs <span class="quiet number">${rows.length}</span></h2>
    <ul class="sources">${rows.map((row) => html`<li key=${row.name}><${State} signal=${row.signal} word=${row.state}/> <strong>${row.name}</strong>
      ${row.priority !== 0 && html` <span class="quiet">priority ${row.priority}</span>`} ${row.since && html`<span class="quiet">content from <${Ago} at=${row.since} ago/></span>`}
      ${row.message && html`<span class="more">${row.message}</span>`}</li>`)}</ul>
    ${!packages && !wrong.length && html`<p>The catalogs have no package.</p>`}
    ${!packages && wrong.length > 0 && html`<p>No package is offered until a catalog is served.</p>`}</section>`;
}

/** @param {{ row: Row }} props */
function PackageLine({ row }) {
  return html`<tr><th scope="row">${row.named ? html`<a data-row href=${`#/package/${row.name}`}>${soft(row.name)}</a>` : html`<strong>${row.name}</strong>`}
      ${row.deprecated && html` <span class="state review"><span class="glyph" aria-hidden="true">!</span> deprecated</span>`}
      <span class="more">${row.deprecated || row.description}</span><span class="thin">${row.installed && `installed ${row.installed} · `}${row.catalog}</span>${!row.named && html`<span class="more">No extension can ask for a package of this name.</span>`}</th>
    <td class="version">${row.latest}${row.channel && html`<span class="more">default channel ${row.channel}</span>`}${row.elsewhere && html`<span class="more">${row.elsewhere}</span>`}</td><td class="wide version">${row.installed}</td><td class="wide">${row.catalog}</td></tr>`;
}

/** @param {{ name: string }} props */
export function PackageScreen({ name }) {
  const asked = useAsk(`/api/packages/${name}`), rights = useAsk("/api/rights?button=install");
  const found = /** @type {Package | null} */ (asked.found.value), offered = found?.package;
  return html`<p class="crumbs"><a href="#/packages">Catalog</a></p>
    <h1 tabindex="-1">${name}</h1>
    <${Asked} of=${asked} doing="The package cannot be shown"/>
    ${found && offered && html`${offered.deprecation && html`<p class="note review"><strong>! Deprecated.</strong> It should not be used. ${offered.deprecation.message}</p>`}
      ${offered.description && html`<p>${offered.description}</p>`}
      <dl class="facts"><dt>Latest</dt><dd>${found.latest || html`<span class="quiet">none that can be read</span>`}${found.latest && offered.defaultChannel && html` <span class="quiet">in the default channel ${offered.defaultChannel}</span>`}${found.elsewhere && html`; ${found.elsewhere}`}</dd><dt>Catalog</dt><dd>${offered.catalog}${offered.catalogs.length > 1 && html` <span class="quiet">also in ${offered.catalogs.slice(1).map((one) => one.name).join(", ")}</span>`}</dd>
        <dt>Brings</dt><dd>${found.kinds?.length ? found.kinds.join(", ") : html`<span class="quiet">no kinds that the catalog names</span>`}</dd>
        <dt>Installed</dt><dd>${offered.installed?.length ? offered.installed.map((one) => `${one.version} as ${one.extension}`).join(", ") : html`<span class="quiet">${found.taken ? `no extension that you may see has it from a catalog; ${found.taken} has its name` : "not, as far as you may see"}</span>`}</dd></dl>
      <${Asking} of=${found}/>
      <${Channels} key=${`graph ${asked.round}`} name=${name} offered=${offered}/>
      <${Install} key=${`install ${asked.round}`} name=${name} of=${found} offered=${offered} rights=${rights} onAgain=${asked.again}/>`}`;
}

/** Extensions that request the package, and their possible upgrades. @param {{ of: Package }} props */
function Asking({ of }) {
  if (of.hidden) return html`<p class="note review" id="hidden">Which extensions ask for it is not shown: ${of.hidden.message}</p>`;
  if (!of.upgrades?.length) return null;
  return html`<section aria-labelledby="asking"><h2 id="asking">Extensions that ask for it</h2>
    <table class="rows"><thead><tr><th scope="col">Extension</th><th scope="col" class="few">Installed</th><th scope="col" class="few">Allowed</th><th scope="col" class="wide few">Newest</th></tr></thead>
    <tbody>${of.upgrades.map((one) => html`<tr key=${one.extension}><th scope="row"><a data-row href=${`#/x/${one.extension}`}>${one.extension}</a>
      ${one.message && html`<span class="more">${one.message}</span>`}${(one.blocked ?? []).map((not) => html`<span class="more">${notChosen(not)}</span>`)}</th>
      <td class="version">${one.installed || html`<span class="quiet">–</span>`}</td><td class="version">${one.allowed || html`<span class="quiet">–</span>`}${one.approval === "Manual" && html` <span class="quiet">to approve</span>`}</td><td class="wide version">${one.newest}</td></tr>`)}</tbody></table></section>`;
}

/** @param {{ name: string, offered: Offered }} props */
function Channels({ name, offered }) {
  const channel = useSignal(offered.defaultChannel || offered.channels?.[0]?.name || "");
  const asked = useAsk(`/api/packages/${name}/graph?${new URLSearchParams({ channel: channel.value })}`), graph = asked.found;
  const channels = offered.channels ?? [], of = channels.find((one) => one.name === channel.value);
  const unsupported = Object.fromEntries((offered.versions ?? []).filter((one) => one.unsupported).map((one) => [one.version, one.unsupported ?? ""]));
  return html`<section aria-labelledby="upgrades"><div class="head"><h2 id="upgrades">Versions and upgrades</h2>
      <label>channel <select id="channel" value=${channel.value} onChange=${into(channel)}>
        ${channels.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}${one.name === offered.defaultChannel ? " (default)" : ""}</option>`)}</select></label>
      <span class="quiet">${count(offered.versionCount, "version")} in ${count(channels.length, "channel")}</span></div>
    ${of?.deprecation && html`<p class="note review"><strong>! Deprecated.</strong> This channel should not be used. ${of.deprecation.message}</p>`}
    <${Asked} of=${asked} doing="Upgrades cannot be shown"/>
    ${graph.value && html`<div class="drawn" tabindex="0" role="region" aria-label="Picture of upgrades"><${GraphPicture} graph=${graph.value} channel=${channel.value}/></div>
      <${Versions} graph=${graph.value} channel=${channel.value} unsupported=${unsupported}/>`}</section>`;
}

/** The form, its effect, and the button that installs exactly the shown objects.
 * @param {{ name: string, of: Package, offered: Offered, rights: import("./shared.js").Rights, onAgain: () => void }} props */
function Install({ name, of: { taken, upgrades, channel }, offered, rights, onAgain }) {
  // A name that is in use is not proposed.
  const has = taken || (upgrades?.some((one) => one.extension === name) ? `an extension` : "");
  const fields = { name: useSignal(has ? "" : name.slice(0, 52)), namespace: useSignal(""), version: useSignal(""), channel: useSignal(channel ?? ""), account: useSignal("") };
  const atOnce = useSignal(false);
  const would = useSignal(/** @type {{ asked: string, said: Installation } | null} */ (null));
  const { asking, busy, refused, act } = useDeed();
  const body = { latest: offered.latest ?? "", name: fields.name.value.trim(), namespace: fields.namespace.value.trim(), version: fields.version.value.trim(), channel: fields.channel.value, serviceAccount: fields.account.value.trim(), atOnce: atOnce.value };
  const key = JSON.stringify(body);
  const send = async (/** @type {boolean} */ dryRun) => {
    await act(async () => {
      const said = await post(`/api/packages/${name}/install`, { ...body, dryRun });
      if (dryRun) {
        would.value = { asked: key, said };
        document.getElementById("written")?.focus();
      } else {
        announce(`${said.name} is asked for`);
        location.hash = `#/x/${said.name}`;
      }
    });
    if (refused.value && dryRun) would.value = null;
  };
  const right = lacks(rights, "install");
  let missing = right;
  if (!missing && !body.name) missing = "it needs a name";
  else if (!missing && !body.namespace) missing = "it needs a namespace";
  let why = missing;
  if (!why && !would.value) why = "preview it first";
  else if (!why && would.value?.asked !== key) why = "you have changed something since: look again at its effects";
  else if (!why && would.value?.said.refused) why = `it would install nothing: ${would.value.said.refused}`;
  /** @param {"name" | "namespace" | "version" | "account"} of @param {string} label @param {string} hint */
  const field = (of, label, hint) => html`<label class="field">${label}<input id=${`install-${of}`} maxlength="253" autocomplete="off" spellcheck=${false} aria-describedby=${`install-${of}-hint`} value=${fields[of].value} onInput=${into(fields[of])}/><span class="hint" id=${`install-${of}-hint`}>${hint}</span></label>`;
  const said = would.value?.said;
  return html`<section class="decision" aria-labelledby="install"><h2 id="install">Install it</h2>
    <div class="form">${field("name", "As", `The name of the extension.${has && ` ${name} is taken: ${has} has it.`}`)}${field("namespace", "Into namespace", "The namespace for its objects. It must exist already.")}
      ${field("version", "Version", `A version or a range such as >=1.4 <2. Empty: the highest version of the channel.`)}
      <label class="field">Channel <select id="install-channel" value=${fields.channel.value} onChange=${into(fields.channel)}><option value="">any: the highest version of all</option>${(offered.channels ?? []).map((one) => html`<option key=${one.name} value=${one.name}>${one.name}${one.name === offered.defaultChannel ? " (default)" : ""}</option>`)}</select></label>
      ${field("account", "ServiceAccount", "Later versions are installed in its name. Empty: each waits for an approval.")}</div>
    <fieldset class="ways"><legend>Each version</legend>
      <label><input type="radio" name="way" checked=${!atOnce.value} onChange=${() => (atOnce.value = false)}/> waits until a person has read its changes</label>
      <label><input type="radio" name="way" id="atonce" checked=${atOnce.value} onChange=${() => (atOnce.value = true)}/> is rolled out at once</label></fieldset>
    <${Problem} refused=${refused.value} doing=${refused.value?.reason === "AlreadyExists" ? "There is an extension of that name" : "It cannot be installed like that"}/>
    ${refused.value?.reason === "Changed" && html`<p><button type="button" id="look" onClick=${onAgain}>Look again</button></p>`}
    <div class="actions"><${Button} id="preview" why=${missing} busy=${busy.value && !asking.value} onClick=${() => send(true)}>Show its effects<//>
      <${Button} id="do-install" kind="main" why=${why} busy=${busy.value} onClick=${() => (asking.value = true)}>Install ${name}<//></div>
    ${said && html`<div class="would"><h3 id="written" tabindex="-1">Effects</h3>
      <p>${said.version ? html`It leads to version <strong>${said.version}</strong>, according to the catalog.` : html`Penstock chooses a version from the range.`}
        ${would.value && JSON.parse(would.value.asked).atOnce ? " Penstock rolls it out in your name at once: it does nothing that you cannot do." : " Penstock makes a revision of it, which changes nothing until a person has read it, object by object, and rolls it out."}</p>
      ${[...(said.notes ?? []), ...(said.warnings ?? [])].map((note) => html`<p class="note review" key=${note}>${note}</p>`)}
      ${said.refused && html`<p class="note needs" id="refused"><strong>✗ It would install nothing.</strong> ${said.refused}.${said.free && html` <button type="button" id="use-free" onClick=${() => (fields.name.value = said.free ?? "")}>Use ${said.free}</button>`}</p>`}
      <p class="quiet">${said.refused ? "This is what would be written:" : "The cluster has checked it and would take it. This is all that is written:"}</p>
      <${Manifest} text=${said.written} label="The ClusterExtension to be written"/></div>`}
    ${asking.value && said && html`<${Confirm} title=${`Install ${name} as ${body.name}?`} verb="Install" why=${why} busy=${busy.value} onYes=${() => send(false)} onNo=${() => (asking.value = "")}>
      <p>In cluster <strong>${me.value?.cluster}</strong>, into namespace <strong>${body.namespace}</strong>${said.version && html`, version <strong>${said.version}</strong>`}.</p>
      <p>${body.atOnce ? html`<${State} signal="review" word="It is rolled out at once."/>` : "Nothing is rolled out before a person has read its changes."}</p><//>`}
  </section>`;
}

// The upgrades of one channel as a picture: versions below each other, highest first, and an arc from
// each version to each version that it can be upgraded to. The table of versions has the same content
// in words.

const most = 40;
const row = 26, dot = 5, widest = 240, top = 14;

/** @type {Record<string, string>} */
const words = { replaces: "replaces", skips: "skips", skipRange: "skips a range" };

/** The drawn part: the highest versions of a channel, and the upgrades between them.
 * @param {Graph} graph @param {string} channel */
function layout(graph, channel) {
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
function GraphPicture({ graph, channel }) {
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
function Versions({ graph, channel, unsupported }) {
  const { shown, arcs } = layout(graph, channel);
  return html`<table class="rows" id="versions"><thead><tr><th scope="col">Version</th><th scope="col">Upgrade of</th><th scope="col" class="wide">Path from the installed version</th></tr></thead>
    <tbody>${shown.map((entry) => html`<tr key=${entry.version}><th scope="row"><strong class="version">${entry.version}</strong>
      ${entry.deprecation && html`<span class="more">deprecated: ${entry.deprecation.message}</span>`}${unsupported[entry.version] && html`<span class="more">cannot be installed: ${unsupported[entry.version]}</span>`}</th>
      <td>${entry.upgradeOf || (arcs.some((arc) => arc.to === entry.version) ? [...new Set(arcs.filter((arc) => arc.to === entry.version).map((arc) => `${words[arc.by] ?? arc.by} ${arc.from}`))].join("; ") : html`<span class="quiet">nothing</span>`)}</td>
      <td class="wide">${entry.path || html`<span class="quiet">–</span>`}</td></tr>`)}</tbody></table>`;
}
