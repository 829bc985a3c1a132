// One object: of a revision, with its manifest, its present state, and its differences in the cluster;
// of an item of a plan, with the managers of its fields; or a Pod, with the states of its containers,
// their logs, and its events.
import { html, useEffect, useRef, useSignal } from "./lib.js";
import { Refused, watch } from "./net.js";
import { Ago, Asked, Fields, Manifest, Notes, Problem, ReadAt, State, Unified, count, kindOf, objectName, objectState, soft } from "./parts.js";
import { extensionOf, into, useAsk } from "./shared.js";

/** @param {{ revision: string, kind: string, namespace: string, name: string }} props */
export function ObjectScreen({ revision, kind, namespace, name }) {
  const fields = useSignal(false);
  const compared = useAsk(`/api/diffs/${revision}..live?${new URLSearchParams({ objectKind: kind, objectName: name, ...(namespace && { objectNamespace: namespace }) })}`);
  const asked = useAsk(`/api/revisions/${revision}/object?${new URLSearchParams({ kind, namespace, objectName: name })}`, undefined, compared.round);
  const states = useAsk(`/api/revisions/${revision}/objects`, undefined, compared.round);
  const owners = useAsk(`/api/revisions/${revision}/owners?${new URLSearchParams({ kind, namespace, objectName: name })}`, undefined, compared.round);
  const owned = /** @type {import("./api").Owners | null} */ (owners.found.value);
  const found = /** @type {import("./api").ManifestObject | null} */ (asked.found.value);
  const now = /** @type {import("./api").RevisionObjects | null} */ (states.found.value);
  const live = /** @type {import("./api").Diff | null} */ (compared.found.value);
  const same = (/** @type {{ apiVersion: string, kind: string, namespace?: string, name: string }} */ one) => kindOf(one.apiVersion, one.kind) === kind && (one.namespace ?? "") === namespace && one.name === name;
  const state = now?.objects.find(same), change = live?.diff?.changes?.find(same);
  return html`<${Crumbs} revision=${revision}/>
    <h1 tabindex="-1"><span class="quiet">${soft(kind)}</span> ${soft(namespace ? `${namespace}/${name}` : name)}</h1>
    <section aria-labelledby="now"><h2 id="now">How it is</h2>
      <${Asked} of=${states} doing="Its state cannot be shown"/>
      ${state && html`<p><${State} ...${objectState(state)}/> ${objectState(state).said}</p>
        ${state.lastRepair && html`<p class="note review">Brought back <${Ago} at=${state.lastRepair.time} ago/>: ${state.lastRepair.message}</p>`}`}
      ${now && !state && html`<p class="note review">${now.withheld ? "It is not shown: you cannot read it." : `${revision} does not have it.`}</p>`}
    </section>
    <section aria-labelledby="live"><div class="head"><h2 id="live">Different in the cluster</h2>
        ${live && html`<${ReadAt} at=${live.asked} onAsk=${compared.again}/>`}
        ${change && html`<fieldset class="choice"><legend class="unseen">Show changes as</legend>
          <label><input type="radio" name="as" checked=${!fields.value} onChange=${() => (fields.value = false)}/> lines</label>
          <label><input type="radio" name="as" checked=${fields.value} onChange=${() => (fields.value = true)}/> fields</label></fieldset>`}</div>
      <${Problem} refused=${compared.refused.value} doing="The difference cannot be shown"/>
      ${!live && !compared.refused.value && html`<p class="quiet">Comparing…</p>`}
      ${live && !change && html`<p>${live.diff?.summary.withheld ? "It is not shown: you cannot read it." : `Nothing: a rollout of ${revision} would not change it.`}</p>`}
      ${change && html`<p class="quiet">Changes that a rollout of ${revision} would make now.</p><${Notes} notes=${live?.diff?.notes}/>
        ${change.notCompared ? html`<p class="note review">${change.notCompared}</p>` : fields.value ? html`<${Fields} change=${change}/>` : html`<${Unified} text=${change.unified ?? ""}/>`}`}
    </section>
    <section aria-labelledby="set"><h2 id="set">Field managers</h2>
      <${Problem} refused=${owners.refused.value} doing="The field managers cannot be shown"/>
      ${owned && (owned.target ? html`<p class="note review">The object is in the cluster of ${owned.target}, where you have no credentials here.</p>`
        : owned.managers.length ? html`<p class="quiet">The object keeps the last write of each manager that still owns a field. A change that Penstock has repaired is in the <a href=${`#/timeline?extension=${extensionOf(revision)}&what=Repaired`}>timeline</a>, until 50 other changes of the extension were repaired.</p><${Managers} managers=${owned.managers}/>`
        : html`<p>There is no such object.</p>`)}
    </section>
    ${owned?.live && html`<section aria-labelledby="noted"><h2 id="noted">Events</h2>
      ${owned.notShown ? html`<p class="note review">They are not shown: ${owned.notShown}</p>` : html`<${EventRows} events=${owned.events ?? []}/>`}</section>
      <details class="all"><summary id="as-yaml">In the cluster, as YAML</summary>
      ${owned.hidden && html`<p class="note review">Values of a Secret are not shown here.</p>`}
      <${Manifest} text=${owned.live} label="Lines of the object in the cluster"/></details>`}
    <section aria-labelledby="manifest"><h2 id="manifest">Manifest</h2>
      <${Asked} of=${asked} doing="The manifest cannot be shown"/>
      ${found && html`<p class="quiet">Phase ${found.phase} · ${found.size ? `${found.size} bytes · ` : ""}<code class="digest">${found.digest}</code></p>
        ${found.hidden && html`<p class="note review" id="hidden">Values of a Secret are not shown here: <code>kubectl get revisionmanifest</code> has them.</p>`}
        <${Manifest} text=${found.manifest}/>`}
    </section>`;
}

/** @param {{ revision: string }} props */
const Crumbs = ({ revision }) => html`<p class="crumbs"><a href="#/">Overview</a> · <a href=${`#/x/${extensionOf(revision)}`}>${extensionOf(revision)}</a> · ${revision}</p>`;

/** The number of fields of a manager that are shown at first. */
const fewFields = 5;

/** The field managers of an object with their fields, last write first.
 * @param {{ managers: import("./api").Manager[] }} props */
function Managers({ managers }) {
  return html`<table class="rows" id="managers"><thead><tr><th scope="col">Field manager</th><th scope="col" class="sign">Operation</th><th scope="col" class="number age">Last write</th></tr></thead>
    <tbody>${managers.map((one, i) => html`<tr key=${i}><th scope="row">${one.name}
        ${one.fields?.length ? html`<details open=${one.fields.length <= fewFields}><summary>${count(one.fields.length + (one.omitted ?? 0), "field")}</summary><ul class="terms">${one.fields.map((field) => html`<li key=${field}><code>${field}</code></li>`)}${one.omitted ? html`<li>and ${one.omitted} more</li>` : null}</ul></details>` : null}</th>
      <td>${one.operation}${one.subresource && html` <span class="quiet">${one.subresource}</span>`}</td><td class="number"><${Ago} at=${one.time} ago/></td></tr>`)}</tbody></table>`;
}

/** @param {{ plan: string, item: string }} props */
export function TargetScreen({ plan, item }) {
  const asked = useAsk(`/api/plans/${plan}/items/${encodeURIComponent(item)}`), of = /** @type {import("./api").Target | null} */ (asked.found.value);
  return html`<p class="crumbs"><a href="#/">Overview</a> · <a href=${`#/plan/${plan}`}>${plan}</a></p>
    <h1 tabindex="-1">${of ? html`<span class="quiet">${of.ref.kind}</span> ${soft(objectName(of.ref))}` : item}</h1>
    <${Asked} of=${asked} doing="The object cannot be shown"/>
    ${of && html`${!of.manifest && html`<p>There is no such object.</p>`}
      ${of.managers?.length ? html`<section aria-labelledby="set"><h2 id="set">Field managers</h2>
        <${Managers} managers=${of.managers}/></section>` : null}
      ${of.manifest && html`<section aria-labelledby="manifest"><h2 id="manifest">Manifest</h2>
        ${of.hidden && html`<p class="note review" id="hidden">Values of a Secret are not shown here.</p>`}
        <${Manifest} text=${of.manifest}/></section>`}`}`;
}

/** The screen of a Pod. @param {string} revision @param {{ namespace: string, name: string }} of */
export const podPlace = (revision, of) => `#/pod/${revision}/${of.namespace}/${of.name}`;

/** The Pods of an object. @param {import("./api").Pods | null} pods @param {{ kind: string, namespace?: string, name: string }} of */
export const podsOf = (pods, of) => pods?.workloads.find((one) => one.kind === of.kind && one.namespace === (of.namespace ?? "") && one.name === of.name)?.pods ?? [];

/** @param {{ revision: string, namespace: string, name: string }} props */
export function PodScreen({ revision, namespace, name }) {
  const asked = useAsk(`/api/pods/${namespace}/${name}`), found = /** @type {import("./api").PodDetail | null} */ (asked.found.value), pod = found?.pod;
  return html`<${Crumbs} revision=${revision}/>
    <h1 tabindex="-1"><span class="quiet">Pod</span> ${soft(`${namespace}/${name}`)}</h1>
    <${Asked} of=${asked} doing="The Pod cannot be shown"/>
    ${pod && html`<p><${State} signal=${pod.signal} word=${pod.state}/> ${pod.said} · created <${Ago} at=${pod.created} ago/>${pod.node && ` · on ${pod.node}`}</p>
      <table class="rows" id="containers"><thead><tr><th scope="col">Container</th><th scope="col" class="sign">State</th><th scope="col" class="few number">Restarts</th></tr></thead>
      <tbody>${pod.containers.map((one) => html`<tr key=${one.name}><th scope="row">${soft(one.name)}${one.init && html` <span class="quiet">runs first</span>`}<span class="more">${[one.ended && `it ended with ${one.ended}`, one.message].filter(Boolean).join(" · ")}</span></th>
        <td><${State} ...${containerState(one)}/></td><td class="number">${one.restarts}</td></tr>`)}</tbody></table>
      <${Log} path=${`/api/watch/logs/${namespace}/${name}`} round=${asked.round} containers=${pod.containers}/>
      <section aria-labelledby="noted"><h2 id="noted">Events</h2>
        ${found?.notShown && html`<p class="note review">They are not shown: ${found.notShown}</p>`}
        <${EventRows} events=${found?.events ?? []}/></section>`}`;
}

/** @param {import("./api").Container} one */
function containerState(one) {
  const word = one.reason || one.state;
  if (one.ready || one.reason === "Completed") return { signal: "well", word };
  return { signal: one.state === "Terminated" || (one.reason && !["ContainerCreating", "PodInitializing"].includes(one.reason)) ? "needs" : "moving", word };
}

/** Rows of events, newest first. @param {{ events: import("./api").Event[] }} props */
export function EventRows({ events }) {
  if (!events.length) return html`<p class="quiet">None: the cluster forgets them after an hour.</p>`;
  return html`<table class="rows" id="events"><thead><tr><th scope="col">Event</th><th scope="col" class="wide ver">Object</th><th scope="col" class="age number">When</th></tr></thead>
    <tbody>${events.map((one, i) => html`<tr key=${i}><th scope="row"><${State} signal=${one.type === "Warning" ? "needs" : ""} word=${one.reason}/> <span class="more">${one.message}</span>
      <span class="thin">${one.kind} ${soft(one.name)}</span></th>
      <td class="wide"><span class="quiet">${one.kind}</span> ${soft(one.namespace ? `${one.namespace}/${one.name}` : one.name)}</td>
      <td class="number"><${Ago} at=${one.time}/>${one.count > 1 && html`<span class="more">×${one.count}</span>`}</td></tr>`)}</tbody></table>`;
}

/** A line of a log with its time in seconds, and the date if it is not today. @param {{ line: string }} props */
function Line({ line }) {
  const [at] = /^\d{4}-\d\d-\d\dT[\d:]{8}\S*Z(?= )/.exec(line) ?? [""];
  if (!at) return html`<span>${line}</span>`;
  return html`<span><time datetime=${at} title=${at}>${at.slice(at.startsWith(new Date().toISOString().slice(0, 10)) ? 11 : 0, 19).replace("T", " ")}</time>${line.slice(at.length)}</span>`;
}

/** The number of lines that a page keeps. */
const mostLines = 5000;

/** @param {{ path: string, round: number, containers: import("./api").Container[] }} props */
function Log({ path, round, containers }) {
  const main = containers.filter((one) => !one.init);
  const container = useSignal((main.find((one) => !one.ready) ?? main[0] ?? containers[0])?.name ?? "");
  const previous = useSignal(false);
  const since = useSignal("");
  const text = useSignal("");
  const follows = useSignal(true);
  const lines = useSignal(/** @type {string[]} */ ([]));
  const ended = useSignal(false);
  const refused = useSignal(/** @type {Refused | null} */ (null));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    refused.value = null;
    const query = new URLSearchParams({ container: container.value, ...(previous.value ? { previous: "true" } : {}), ...(since.value ? { sinceSeconds: since.value } : { tailLines: "1000" }) });
    return watch(`${path}?${query}`, (message) => {
      if (message.kind === "ended") ended.value = true;
      if (message.kind !== "log") return;
      // The first message of a stream has no lines: the earlier lines will come again.
      if (!message.log) ended.value = false;
      lines.value = message.log ? [...lines.value, ...message.log].slice(-mostLines) : [];
    }, (failure) => (refused.value = failure));
  }, [container.value, previous.value, since.value, round]);
  const wanted = text.value.toLowerCase(), shown = wanted ? lines.value.filter((line) => line.toLowerCase().includes(wanted)) : lines.value;
  useEffect(() => { if (follows.value && box.current) box.current.scrollTop = box.current.scrollHeight; }, [shown.length, lines.value, follows.value]);
  return html`<section aria-labelledby="log"><h2 id="log">Log</h2>
    <p class="standing"><label>of <select id="container" value=${container.value} onChange=${into(container)}>${containers.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></label>
      <label>since <select id="since" value=${since.value} onChange=${into(since)}><option value="">the last 1000 lines</option><option value="300">5 min</option><option value="3600">1 h</option><option value="86400">1 d</option></select></label>
      <label><input type="checkbox" id="previous" checked=${previous.value} onChange=${() => (previous.value = !previous.value)}/> before its last restart</label>
      <label><input type="checkbox" id="follow" checked=${follows.value} onChange=${() => (follows.value = !follows.value)}/> stay at the end</label>
      <input data-filter type="search" id="lines-with" aria-label="Show lines with" placeholder="lines with" onInput=${into(text)}/></p>
    <${Problem} refused=${refused.value} doing="The log cannot be shown"/>
    ${!refused.value && html`<pre class="unified log" id="lines" tabindex="0" role="region" aria-label="Lines of the log" ref=${box}>${shown.map((line) => html`<${Line} line=${line}/>`)}</pre>
      <p class="quiet">${wanted ? `${shown.length} of ${count(lines.value.length, "line")}` : count(lines.value.length, "line")}${ended.value && " · it has ended"}</p>`}
  </section>`;
}
