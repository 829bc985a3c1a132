// The object that an item of a plan changes, as it is now, and who has set its fields.
import { html, useEffect, useSignal } from "./lib.js";
import { Refused, get, still } from "./net.js";
import { Ago, Problem, ReadAt, objectName, soft } from "./parts.js";

/** @param {{ plan: string, item: string }} props */
export function TargetScreen({ plan, item }) {
  const found = useSignal(/** @type {import("./api").Target | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  const round = useSignal(0);
  useEffect(() => {
    still();
    const abort = new AbortController();
    refused.value = null;
    get(`/api/plans/${plan}/items/${encodeURIComponent(item)}`, abort.signal).then((answer) => (found.value = answer), (failure) => { if (!abort.signal.aborted) refused.value = failure; });
    return () => abort.abort();
  }, [round.value]);
  const of = found.value;
  return html`<main class="page" id="content">
    <p class="crumbs"><a href="#/">Overview</a> · <a href=${`#/plan/${plan}`}>${plan}</a></p>
    <h1 tabindex="-1">${of ? html`<span class="quiet">${of.ref.kind}</span> ${soft(objectName(of.ref))}` : item}</h1>
    <${Problem} refused=${refused.value} doing="The object cannot be shown"/>
    ${!of && !refused.value && html`<p class="quiet">Asking the cluster…</p>`}
    ${of && html`<${ReadAt} at=${of.asked} onAsk=${() => round.value++}/>
      ${!of.manifest && html`<p>There is no such object.</p>`}
      ${of.managers?.length ? html`<section aria-labelledby="set"><h2 id="set">Who has set its fields</h2>
        <table class="rows"><thead><tr><th scope="col">Manager</th><th scope="col" class="sign">How</th><th scope="col" class="number age">Ago</th></tr></thead>
        <tbody>${of.managers.map((one) => html`<tr><th scope="row">${one.name}</th><td>${one.operation}${one.subresource && html` <span class="quiet">${one.subresource}</span>`}</td><td class="number"><${Ago} at=${one.time}/></td></tr>`)}</tbody></table></section>` : null}
      ${of.manifest && html`<section aria-labelledby="manifest"><h2 id="manifest">Manifest</h2>
        ${of.hidden && html`<p class="note review" id="hidden">Values of a Secret are not shown here.</p>`}
        <pre class="unified manifest" tabindex="0" role="region" aria-label="Lines of the manifest"><code>${of.manifest}</code></pre></section>`}`}
  </main>`;
}
