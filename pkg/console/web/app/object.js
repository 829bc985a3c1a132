// One object of a revision: its manifest, how it is now, and what is different in the cluster.
import { html, useEffect, useSignal } from "./lib.js";
import { Refused, get, still } from "./net.js";
import { Ago, Fields, Notes, Problem, ReadAt, State, Unified, kindOf, objectState, soft } from "./parts.js";

/** @param {{ revision: string, kind: string, namespace: string, name: string }} props */
export function ObjectScreen({ revision, kind, namespace, name }) {
  const found = useSignal(/** @type {import("./api").ManifestObject | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  const now = useSignal(/** @type {import("./api").RevisionObjects | null} */ (null));
  const hidden = useSignal(/** @type {Refused | null} */ (null));
  const live = useSignal(/** @type {import("./api").Diff | null} */ (null));
  const unread = useSignal(/** @type {Refused | null} */ (null));
  const fields = useSignal(false);
  const round = useSignal(0);
  useEffect(() => {
    still();
    const abort = new AbortController();
    /** @param {{ value: Refused | null }} into */
    const fail = (into) => (/** @type {Refused} */ failure) => { if (!abort.signal.aborted) into.value = failure; };
    for (const one of [refused, hidden, unread]) one.value = null;
    live.value = null;
    get(`/api/revisions/${revision}/object?${new URLSearchParams({ kind, namespace, objectName: name })}`, abort.signal).then((answer) => (found.value = answer), fail(refused));
    get(`/api/revisions/${revision}/objects`, abort.signal).then((answer) => (now.value = answer), fail(hidden));
    const narrowed = new URLSearchParams({ objectKind: kind, objectName: name });
    if (namespace) narrowed.set("objectNamespace", namespace);
    get(`/api/diffs/${revision}..live?${narrowed}`, abort.signal).then((answer) => (live.value = answer), fail(unread));
    return () => abort.abort();
  }, [round.value]);
  const extension = revision.slice(0, revision.lastIndexOf("-"));
  const same = (/** @type {{ apiVersion: string, kind: string, namespace?: string, name: string }} */ one) => kindOf(one.apiVersion, one.kind) === kind && (one.namespace ?? "") === namespace && one.name === name;
  const state = now.value?.objects.find(same), change = live.value?.diff?.changes?.find(same);
  return html`<main class="page" id="content">
    <p class="crumbs"><a href="#/">Overview</a> · <a href=${`#/x/${extension}`}>${extension}</a> · ${revision}</p>
    <h1 tabindex="-1"><span class="quiet">${soft(kind)}</span> ${soft(namespace ? `${namespace}/${name}` : name)}</h1>
    <section aria-labelledby="now"><h2 id="now">How it is</h2>
      <${Problem} refused=${hidden.value} doing="Its state cannot be shown"/>
      ${!now.value && !hidden.value && html`<p class="quiet">Asking the cluster…</p>`}
      ${state && html`<p><${State} ...${objectState(state)}/> ${objectState(state).said}</p>
        ${state.lastRepair && html`<p class="note review">Brought back <${Ago} at=${state.lastRepair.time} ago/>: ${state.lastRepair.message}</p>`}`}
      ${now.value && !state && html`<p class="note review">${now.value.withheld ? "It is not shown: you may not read it." : `${revision} does not have it.`}</p>`}
    </section>
    <section aria-labelledby="live"><div class="head"><h2 id="live">Different in the cluster</h2>
        ${live.value && html`<${ReadAt} at=${live.value.asked} onAsk=${() => round.value++}/>`}
        ${change && html`<fieldset class="choice"><legend class="unseen">Show changes as</legend>
          <label><input type="radio" name="as" checked=${!fields.value} onChange=${() => (fields.value = false)}/> lines</label>
          <label><input type="radio" name="as" checked=${fields.value} onChange=${() => (fields.value = true)}/> fields</label></fieldset>`}</div>
      <${Problem} refused=${unread.value} doing="What is different cannot be shown"/>
      ${!live.value && !unread.value && html`<p class="quiet">Comparing…</p>`}
      ${live.value && !change && html`<p>${live.value.diff?.summary.withheld ? "It is not shown: you may not read it." : `Nothing: a rollout of ${revision} would not change it.`}</p>`}
      ${change && html`<p class="quiet">What a rollout of ${revision} would change now.</p><${Notes} notes=${live.value?.diff?.notes}/>
        ${change.notCompared ? html`<p class="note review">${change.notCompared}</p>` : fields.value ? html`<${Fields} change=${change}/>` : html`<${Unified} text=${change.unified ?? ""}/>`}`}
    </section>
    <section aria-labelledby="manifest"><h2 id="manifest">Manifest</h2>
      <${Problem} refused=${refused.value} doing="The manifest cannot be shown"/>
      ${!found.value && !refused.value && html`<p class="quiet">Asking the cluster…</p>`}
      ${found.value && html`<p class="quiet">Phase ${found.value.phase} · ${found.value.size ? `${found.value.size} bytes · ` : ""}<code class="digest">${found.value.digest}</code></p>
        ${found.value.hidden && html`<p class="note review" id="hidden">Values of a Secret are not shown here: <code>kubectl get revisionmanifest</code> has them.</p>`}
        <pre class="unified manifest" tabindex="0" role="region" aria-label="Lines of the manifest"><code>${found.value.manifest}</code></pre>`}
    </section>
  </main>`;
}
