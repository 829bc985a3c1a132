// One Pod of a workload: how its containers are, what they write, and what the cluster has noted.
import { html, useEffect, useRef, useSignal } from "./lib.js";
import { Refused, get, still, watch } from "./net.js";
import { Ago, Problem, ReadAt, State, count, soft } from "./parts.js";

/** The screen of a Pod. @param {string} revision @param {{ namespace: string, name: string }} of */
export const podPlace = (revision, of) => `#/pod/${revision}/${of.namespace}/${of.name}`;

/** @param {{ revision: string, namespace: string, name: string }} props */
export function PodScreen({ revision, namespace, name }) {
  const found = useSignal(/** @type {import("./api").PodDetail | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  const round = useSignal(0);
  useEffect(() => {
    still();
    const abort = new AbortController();
    refused.value = null;
    get(`/api/pods/${namespace}/${name}`, abort.signal).then((answer) => (found.value = answer), (failure) => { if (!abort.signal.aborted) refused.value = failure; });
    return () => abort.abort();
  }, [round.value]);
  const extension = revision.slice(0, revision.lastIndexOf("-")), pod = found.value?.pod;
  return html`<main class="page" id="content">
    <p class="crumbs"><a href="#/">Overview</a> · <a href=${`#/x/${extension}`}>${extension}</a> · ${revision}</p>
    <h1 tabindex="-1"><span class="quiet">Pod</span> ${soft(`${namespace}/${name}`)}</h1>
    <${Problem} refused=${refused.value} doing="The Pod cannot be shown"/>
    ${found.value && html`<${ReadAt} at=${found.value.asked} onAsk=${() => round.value++}/>`}
    ${pod && html`<p><${State} signal=${pod.signal} word=${pod.state}/> ${pod.said} · created <${Ago} at=${pod.created} ago/>${pod.node && ` · on ${pod.node}`}</p>
      <table class="rows" id="containers"><thead><tr><th scope="col">Container</th><th scope="col" class="sign">State</th><th scope="col" class="few number">Restarts</th></tr></thead>
      <tbody>${pod.containers.map((one) => html`<tr key=${one.name}><th scope="row">${soft(one.name)}${one.init && html` <span class="quiet">runs first</span>`}<span class="more">${one.message}</span></th>
        <td><${State} ...${containerState(one)}/></td><td class="number">${one.restarts}</td></tr>`)}</tbody></table>
      <${Log} path=${`/api/watch/logs/${namespace}/${name}`} round=${round.value} containers=${pod.containers}/>
      <section aria-labelledby="noted"><h2 id="noted">Events</h2>
        ${found.value?.notShown && html`<p class="note review">They are not shown: ${found.value.notShown}</p>`}
        <${EventRows} events=${found.value?.events ?? []}/></section>`}
  </main>`;
}

/** @param {import("./api").Container} one */
function containerState(one) {
  const word = one.reason || one.state;
  if (one.ready || one.reason === "Completed") return { signal: "well", word };
  return { signal: one.state === "Terminated" || (one.reason && !["ContainerCreating", "PodInitializing"].includes(one.reason)) ? "needs" : "moving", word };
}

/** Rows of events, the newest first. @param {{ events: import("./api").Event[] }} props */
export function EventRows({ events }) {
  if (!events.length) return html`<p class="quiet">None: the cluster forgets them after an hour.</p>`;
  return html`<table class="rows" id="events"><thead><tr><th scope="col">What</th><th scope="col" class="wide ver">Object</th><th scope="col" class="age number">When</th></tr></thead>
    <tbody>${events.map((one, i) => html`<tr key=${i}><th scope="row"><${State} signal=${one.type === "Warning" ? "needs" : ""} word=${one.reason}/> <span class="more">${one.message}</span>
      <span class="thin">${one.kind} ${soft(one.name)}</span></th>
      <td class="wide"><span class="quiet">${one.kind}</span> ${soft(one.namespace ? `${one.namespace}/${one.name}` : one.name)}</td>
      <td class="number"><${Ago} at=${one.time}/>${one.count > 1 && html` <span class="quiet">×${one.count}</span>`}</td></tr>`)}</tbody></table>`;
}

/** How many lines a page keeps. */
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
      // The first message of a stream has no lines: what there was before comes again.
      if (!message.log) ended.value = false;
      lines.value = message.log ? [...lines.value, ...message.log].slice(-mostLines) : [];
    }, (failure) => (refused.value = failure));
  }, [container.value, previous.value, since.value, round]);
  const wanted = text.value.toLowerCase(), shown = wanted ? lines.value.filter((line) => line.toLowerCase().includes(wanted)) : lines.value;
  useEffect(() => { if (follows.value && box.current) box.current.scrollTop = box.current.scrollHeight; }, [shown.length, lines.value, follows.value]);
  /** @param {{ value: string }} into */
  const choose = (into) => (/** @type {Event} */ e) => (into.value = /** @type {HTMLSelectElement} */ (e.currentTarget).value);
  return html`<section aria-labelledby="log"><h2 id="log">Log</h2>
    <p class="standing"><label>of <select id="container" value=${container.value} onChange=${choose(container)}>${containers.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></label>
      <label>since <select id="since" value=${since.value} onChange=${choose(since)}><option value="">the last 1000 lines</option><option value="300">5 min</option><option value="3600">1 h</option><option value="86400">1 d</option></select></label>
      <label><input type="checkbox" id="previous" checked=${previous.value} onChange=${() => (previous.value = !previous.value)}/> before its last restart</label>
      <label><input type="checkbox" id="follow" checked=${follows.value} onChange=${() => (follows.value = !follows.value)}/> stay at the end</label>
      <input data-filter type="search" id="lines-with" aria-label="Show lines with" placeholder="lines with" onInput=${choose(text)}/></p>
    <${Problem} refused=${refused.value} doing="The log cannot be shown"/>
    ${!refused.value && html`<pre class="unified log" id="lines" tabindex="0" role="region" aria-label="Lines of the log" ref=${box}>${shown.map((line) => html`<span>${line}</span>`)}</pre>
      <p class="quiet">${wanted ? `${shown.length} of ${count(lines.value.length, "line")}` : count(lines.value.length, "line")}${ended.value && " · it has ended"}</p>`}
  </section>`;
}
