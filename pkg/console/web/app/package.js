// One package: what it is, its channels and versions, what is installed of it; and its
// installation, after a look at what would be written.
import { html, useEffect, useSignal } from "./lib.js";
import { Refused, get, post, still } from "./net.js";
import { Button, Confirm, Problem, ReadAt, State, announce, count, notChosen } from "./parts.js";
import { GraphPicture, Versions } from "./graph.js";
import { lacks, me } from "./shared.js";

/** @typedef {import("./api").Package} Package @typedef {import("./api").CatalogPackage} Offered @typedef {import("./api").Installation} Installation */

/** @param {{ name: string }} props */
export function PackageScreen({ name }) {
  const found = useSignal(/** @type {Package | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  const rights = useSignal(/** @type {import("./shared.js").Rights | null} */ (null));
  const round = useSignal(0);
  useEffect(() => {
    still();
    const abort = new AbortController();
    get(`/api/packages/${name}`, abort.signal).then((answer) => { found.value = answer; refused.value = null; }, (failure) => { if (!abort.signal.aborted) refused.value = failure; });
    get("/api/rights?button=install", abort.signal).then((answer) => (rights.value = answer), () => { if (!abort.signal.aborted) rights.value = {}; });
    return () => abort.abort();
  }, [name, round.value]);
  const offered = found.value?.package;
  return html`<main class="page" id="content">
    <p class="crumbs"><a href="#/packages">Catalog</a></p>
    <h1 tabindex="-1">${name}</h1>
    <${Problem} refused=${refused.value} doing="The package cannot be shown"/>
    ${!found.value && !refused.value && html`<p class="quiet">Asking the cluster…</p>`}
    ${found.value && offered && html`<${ReadAt} at=${found.value.asked} onAsk=${() => round.value++}/>
      ${offered.deprecation && html`<p class="note review"><strong>! Deprecated.</strong> It should not be used. ${offered.deprecation.message}</p>`}
      ${offered.description && html`<p>${offered.description}</p>`}
      <dl class="facts"><dt>Latest</dt><dd>${found.value.latest || html`<span class="quiet">none that can be read</span>`}${found.value.latest && offered.defaultChannel && html` <span class="quiet">in the default channel ${offered.defaultChannel}</span>`}${found.value.elsewhere && html`; ${found.value.elsewhere}`}</dd><dt>Catalog</dt><dd>${offered.catalog}${offered.catalogs.length > 1 && html` <span class="quiet">also in ${offered.catalogs.slice(1).map((one) => one.name).join(", ")}</span>`}</dd>
        <dt>Brings</dt><dd>${found.value.kinds?.length ? found.value.kinds.join(", ") : html`<span class="quiet">no kinds that the catalog names</span>`}</dd>
        <dt>Installed</dt><dd>${offered.installed?.length ? offered.installed.map((one) => `${one.version} as ${one.extension}`).join(", ") : html`<span class="quiet">${found.value.taken ? `no extension that you may see has it from a catalog; ${found.value.taken} has its name` : "not, as far as you may see"}</span>`}</dd></dl>
      <${Asking} of=${found.value}/>
      <${Channels} key=${`graph ${round.value}`} name=${name} offered=${offered}/>
      <${Install} key=${`install ${round.value}`} name=${name} of=${found.value} offered=${offered} rights=${rights.value} onAgain=${() => round.value++}/>`}
  </main>`;
}

/** Extensions that ask for the package, and what they could be upgraded to. @param {{ of: Package }} props */
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
  const graph = useSignal(/** @type {import("./api").CatalogPackageGraph | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  useEffect(() => {
    const abort = new AbortController();
    graph.value = null;
    refused.value = null;
    get(`/api/packages/${name}/graph?${new URLSearchParams({ channel: channel.value })}`, abort.signal)
      .then((found) => (graph.value = found), (failure) => { if (!abort.signal.aborted) refused.value = failure; });
    return () => abort.abort();
  }, [channel.value]);
  const channels = offered.channels ?? [], of = channels.find((one) => one.name === channel.value);
  const unsupported = Object.fromEntries((offered.versions ?? []).filter((one) => one.unsupported).map((one) => [one.version, one.unsupported ?? ""]));
  return html`<section aria-labelledby="upgrades"><div class="head"><h2 id="upgrades">Versions and upgrades</h2>
      <label>channel <select id="channel" value=${channel.value} onChange=${(/** @type {any} */ e) => (channel.value = e.currentTarget.value)}>
        ${channels.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}${one.name === offered.defaultChannel ? " (default)" : ""}</option>`)}</select></label>
      <span class="quiet">${count(offered.versionCount, "version")} in ${count(channels.length, "channel")}</span></div>
    ${of?.deprecation && html`<p class="note review"><strong>! Deprecated.</strong> This channel should not be used. ${of.deprecation.message}</p>`}
    <${Problem} refused=${refused.value} doing="Upgrades cannot be shown"/>
    ${!graph.value && !refused.value && html`<p class="quiet">Asking the cluster…</p>`}
    ${graph.value && html`<div class="drawn" tabindex="0" role="region" aria-label="Picture of upgrades"><${GraphPicture} graph=${graph.value} channel=${channel.value}/></div>
      <${Versions} graph=${graph.value} channel=${channel.value} unsupported=${unsupported}/>`}</section>`;
}

/** The form, what it would do, and the button that does it: for what was looked at, and no other.
 * @param {{ name: string, of: Package, offered: Offered, rights: import("./shared.js").Rights | null, onAgain: () => void }} props */
function Install({ name, of: { taken, upgrades, channel }, offered, rights, onAgain }) {
  // A name that something has already is not proposed.
  const has = taken || (upgrades?.some((one) => one.extension === name) ? `an extension` : "");
  const fields = { name: useSignal(has ? "" : name.slice(0, 52)), namespace: useSignal(""), version: useSignal(""), channel: useSignal(channel ?? ""), account: useSignal("") };
  const atOnce = useSignal(false);
  const would = useSignal(/** @type {{ asked: string, said: Installation } | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  const asking = useSignal(false);
  const busy = useSignal(false);
  const body = { latest: offered.latest ?? "", name: fields.name.value.trim(), namespace: fields.namespace.value.trim(), version: fields.version.value.trim(), channel: fields.channel.value, serviceAccount: fields.account.value.trim(), atOnce: atOnce.value };
  const key = JSON.stringify(body);
  const send = async (/** @type {boolean} */ dryRun) => {
    busy.value = true;
    refused.value = null;
    try {
      const said = await post(`/api/packages/${name}/install`, { ...body, dryRun });
      if (dryRun) {
        would.value = { asked: key, said };
        document.getElementById("written")?.focus();
      } else {
        announce(`${said.name} is asked for`);
        location.hash = `#/x/${said.name}`;
      }
    } catch (failure) {
      refused.value = /** @type {Refused} */ (failure);
      if (dryRun) would.value = null;
    }
    busy.value = false;
    asking.value = false;
  };
  const right = lacks(rights, "install");
  let missing = right;
  if (!missing && !body.name) missing = "it needs a name";
  else if (!missing && !body.namespace) missing = "it needs a namespace";
  let why = missing;
  if (!why && !would.value) why = "look first at what it would do";
  else if (!why && would.value?.asked !== key) why = "you have changed something since: look again at what it would do";
  else if (!why && would.value?.said.refused) why = `it would install nothing: ${would.value.said.refused}`;
  /** @param {"name" | "namespace" | "version" | "account"} of @param {string} label @param {string} hint */
  const field = (of, label, hint) => html`<label class="field">${label}<input id=${`install-${of}`} maxlength="253" autocomplete="off" spellcheck=${false} aria-describedby=${`install-${of}-hint`} value=${fields[of].value} onInput=${(/** @type {any} */ e) => (fields[of].value = e.currentTarget.value)}/><span class="hint" id=${`install-${of}-hint`}>${hint}</span></label>`;
  const said = would.value?.said;
  return html`<section class="decision" aria-labelledby="install"><h2 id="install">Install it</h2>
    <div class="form">${field("name", "As", `The name of the extension.${has && ` ${name} is taken: ${has} has it.`}`)}${field("namespace", "Into namespace", "The namespace for its objects. It must exist already.")}
      ${field("version", "Version", `A version or a range such as >=1.4 <2. Empty: the highest version of the channel.`)}
      <label class="field">Channel <select id="install-channel" value=${fields.channel.value} onChange=${(/** @type {any} */ e) => (fields.channel.value = e.currentTarget.value)}><option value="">any: the highest version of all</option>${(offered.channels ?? []).map((one) => html`<option key=${one.name} value=${one.name}>${one.name}${one.name === offered.defaultChannel ? " (default)" : ""}</option>`)}</select></label>
      ${field("account", "ServiceAccount", "Later versions are installed in its name. Empty: each waits for somebody.")}</div>
    <fieldset class="ways"><legend>Each version</legend>
      <label><input type="radio" name="way" checked=${!atOnce.value} onChange=${() => (atOnce.value = false)}/> waits until somebody has read what it changes</label>
      <label><input type="radio" name="way" id="atonce" checked=${atOnce.value} onChange=${() => (atOnce.value = true)}/> is rolled out at once</label></fieldset>
    <${Problem} refused=${refused.value} doing=${refused.value?.reason === "AlreadyExists" ? "There is an extension of that name" : "It cannot be installed like that"}/>
    ${refused.value?.reason === "Changed" && html`<p><button type="button" id="look" onClick=${onAgain}>Look again</button></p>`}
    <div class="actions"><${Button} id="preview" why=${missing} busy=${busy.value && !asking.value} onClick=${() => send(true)}>Show what it would do<//>
      <${Button} id="do-install" kind="main" why=${why} busy=${busy.value} onClick=${() => (asking.value = true)}>Install ${name}<//></div>
    ${said && html`<div class="would"><h3 id="written" tabindex="-1">What it would do</h3>
      <p>${said.version ? html`It leads to version <strong>${said.version}</strong>, according to the catalog.` : html`Penstock chooses a version from the range.`}
        ${would.value && JSON.parse(would.value.asked).atOnce ? " Penstock rolls it out in your name at once: it does nothing that you may not do." : " Penstock makes a revision of it, which changes nothing until somebody has read it, object by object, and rolls it out."}</p>
      ${[...(said.notes ?? []), ...(said.warnings ?? [])].map((note) => html`<p class="note review" key=${note}>${note}</p>`)}
      ${said.refused && html`<p class="note needs" id="refused"><strong>✗ It would install nothing.</strong> ${said.refused}.${said.free && html` <button type="button" id="use-free" onClick=${() => (fields.name.value = said.free ?? "")}>Use ${said.free}</button>`}</p>`}
      <p class="quiet">${said.refused ? "This is what would be written:" : "The cluster has checked it and would take it. This is all that is written:"}</p>
      <pre class="unified manifest" tabindex="0" role="region" aria-label="What is written"><code>${said.written}</code></pre></div>`}
    ${asking.value && said && html`<${Confirm} title=${`Install ${name} as ${body.name}?`} verb="Install" why=${why} busy=${busy.value} onYes=${() => send(false)} onNo=${() => (asking.value = false)}>
      <p>In cluster <strong>${me.value?.cluster}</strong>, into namespace <strong>${body.namespace}</strong>${said.version && html`, version <strong>${said.version}</strong>`}.</p>
      <p>${body.atOnce ? html`<${State} signal="review" word="It is rolled out at once."/>` : "Nothing is rolled out before somebody has read what it changes."}</p><//>`}
  </section>`;
}
