// What the catalogs of the cluster offer.
import { html, useEffect, useSignal } from "./lib.js";
import { Refused, get, still } from "./net.js";
import { Ago, Problem, ReadAt, State, announce, count, soft } from "./parts.js";

/** @typedef {import("./api").Packages} Offer @typedef {import("./api").PackageRow} Row @typedef {import("./api").CatalogRow} CatalogRow */

const page = 200;

export function PackagesScreen() {
  const offer = useSignal(/** @type {Offer | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  const filter = useSignal("");
  const installed = useSignal(false);
  const shown = useSignal(page);
  const round = useSignal(0);
  useEffect(() => {
    still();
    const abort = new AbortController();
    get("/api/packages", abort.signal).then((found) => {
      offer.value = found;
      refused.value = null;
      announce(count(found.packages.length, "package"));
    }, (failure) => { if (!abort.signal.aborted) refused.value = failure; });
    return () => abort.abort();
  }, [round.value]);
  const rows = offer.value?.packages ?? [], catalogs = offer.value?.catalogs ?? [];
  const needle = filter.value.trim().toLowerCase();
  const found = rows.filter((row) => (!installed.value || row.installed) &&
    (!needle || `${row.name} ${row.catalog} ${row.description ?? ""} ${row.kinds ?? ""}`.toLowerCase().includes(needle)));
  return html`<main class="page" id="content">
    <h1 tabindex="-1">Catalog</h1>
    <${Problem} refused=${refused.value} doing="Packages cannot be shown"/>
    ${!offer.value && !refused.value && html`<p class="quiet" id="loading">Asking the cluster…</p>`}
    ${offer.value && html`<${ReadAt} at=${offer.value.asked} onAsk=${() => round.value++}/>
      <${Catalogs} rows=${catalogs} hidden=${offer.value.hidden} packages=${rows.length}/>
      ${(offer.value.warnings ?? []).map((said) => html`<p class="note review" key=${said}>${said}</p>`)}`}
    ${rows.length > 0 && html`<section aria-labelledby="packages">
      <div class="head"><h2 id="packages">Packages <span class="quiet number">${rows.length}</span></h2>
        <label><input type="checkbox" id="installed" checked=${installed.value} onChange=${() => { installed.value = !installed.value; shown.value = page; }}/> installed only</label>
        <label class="filter"><span class="unseen">Filter packages by name, description or kind</span><input data-filter type="search" placeholder="Name, words or kind" value=${filter.value}
          onInput=${(/** @type {any} */ e) => { filter.value = e.currentTarget.value; shown.value = page; }}/></label></div>
      <table class="rows" id="offered"><thead><tr><th scope="col">Package</th><th scope="col" class="ver">Latest</th><th scope="col" class="wide few">Installed</th><th scope="col" class="wide ver">Catalog</th></tr></thead>
      <tbody>${found.slice(0, shown.value).map((row) => html`<${Package} key=${row.name} row=${row}/>`)}</tbody></table>
      ${!found.length && html`<p class="quiet">None of ${rows.length} matches.</p>`}
      ${found.length > shown.value && html`<p><button type="button" id="more" onClick=${() => (shown.value += page)}>Show ${Math.min(page, found.length - shown.value)} more of ${found.length - shown.value}</button></p>`}
    </section>`}
  </main>`;
}

/** Where packages come from: short while all is well. @param {{ rows: CatalogRow[], hidden?: import("./api").Refusal | null, packages: number }} props */
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
function Package({ row }) {
  return html`<tr><th scope="row">${row.named ? html`<a data-row href=${`#/package/${row.name}`}>${soft(row.name)}</a>` : html`<strong>${row.name}</strong>`}
      ${row.deprecated && html` <span class="state review"><span class="glyph" aria-hidden="true">!</span> deprecated</span>`}
      <span class="more">${row.deprecated || row.description}</span><span class="thin">${row.installed && `installed ${row.installed} · `}${row.catalog}</span>${!row.named && html`<span class="more">No extension can ask for a package of this name.</span>`}</th>
    <td class="version">${row.latest}${row.channel && html`<span class="more">default channel ${row.channel}</span>`}${row.elsewhere && html`<span class="more">${row.elsewhere}</span>`}</td><td class="wide version">${row.installed}</td><td class="wide">${row.catalog}</td></tr>`;
}
