// The overview: what needs somebody, what moves, and everything.
import { html, useEffect, useSignal } from "./lib.js";
import { link, watch } from "./net.js";
import { Ago, State, announce, count, inWords, soft, wordOf } from "./parts.js";
import { frozen } from "./shared.js";

const page = 200;
/** @type {Record<string, number>} */
const urgency = { needs: 0, review: 1, moving: 2, stopped: 3, well: 4 };

/** @typedef {import("./api").ExtensionRow} Row @typedef {import("./api").PlanRow} PlanRow */

export function Overview() {
  const rows = useSignal(/** @type {Map<string, Row>} */ (new Map()));
  const plans = useSignal(/** @type {Map<string, PlanRow>} */ (new Map()));
  const synced = useSignal(false);
  const parts = useSignal(/** @type {Record<string, string>} */ ({}));
  const filter = useSignal("");
  const only = useSignal("");
  const shown = useSignal(page);
  useEffect(() => {
    let fresh = true;
    return watch("/api/watch/overview", (message) => {
      if (message.kind === "beat" && fresh === false && !synced.peek()) return;
      if (message.kind === "synced") {
        synced.value = true;
        fresh = true;
        announce(`${count(rows.value.size, "extension")}, ${count(plans.value.size, "plan")}`);
      }
      if (message.kind === "trouble" && message.part && message.refusal) parts.value = { ...parts.value, [message.part]: message.refusal.message };
      if (message.kind === "heard" && message.part) parts.value = { ...parts.value, [message.part]: "" };
      const news = message.rows;
      if (!news) return;
      const before = rows.value.size ? [...rows.value.values()].filter((row) => row.signal === "needs").length : 0;
      const extensions = new Map(rows.value), all = new Map(plans.value);
      for (const row of news.extensions ?? []) extensions.set(row.name, row);
      for (const gone of news.goneExtensions ?? []) extensions.delete(gone);
      for (const row of news.plans ?? []) all.set(row.name, row);
      for (const gone of news.gonePlans ?? []) all.delete(gone);
      rows.value = extensions;
      plans.value = all;
      frozen.value = [...extensions.values()].find((row) => row.frozen)?.frozen ?? "";
      const needs = [...extensions.values()].filter((row) => row.signal === "needs").length;
      if (synced.value && needs > before) announce(`${count(needs, "extension")} stuck`);
    });
  }, []);

  const sorted = [...rows.value.values()].sort((a, b) => urgency[a.signal] - urgency[b.signal] || a.name.localeCompare(b.name));
  const sortedPlans = [...plans.value.values()].sort((a, b) => urgency[a.signal] - urgency[b.signal] || a.name.localeCompare(b.name));
  const needle = filter.value.trim().toLowerCase();
  const found = sorted.filter((row) => (!only.value || row.signal === only.value) &&
    (!needle || `${row.name} ${row.version ?? ""} ${row.state} ${inWords(row.state)} ${row.message ?? ""} ${row.proposedVersion ?? ""}`.toLowerCase().includes(needle)));
  const nothing = synced.value && !sorted.length && !sortedPlans.length;
  return html`<main class="page" id="content">
    <h1 tabindex="-1">Overview</h1>
    ${!synced.value && link.value.state === "connecting" && html`<p class="quiet" id="loading">Asking the cluster…</p>`}
    ${nothing && html`<p>Nothing is installed by Penstock. <code>kubectl penstock deploy DIRECTORY --name NAME</code> installs manifests.</p>`}
    <${Attention} rows=${sorted} plans=${sortedPlans}/>
    <${MovingNow} rows=${sorted} plans=${sortedPlans}/>
    ${sorted.length > 0 && html`<section aria-labelledby="all">
      <div class="head"><h2 id="all">Extensions</h2>
        <${Tally} rows=${sorted} only=${only}/>
        <label class="filter"><span class="unseen">Filter extensions</span><input data-filter type="search" placeholder="Filter" value=${filter.value}
          onInput=${(/** @type {any} */ e) => { filter.value = e.currentTarget.value; shown.value = page; }}/></label></div>
      <table class="rows" id="extensions"><thead><tr><th scope="col">Extension</th><th scope="col" class="sign">State</th><th scope="col" class="wide ver">Version</th>
        <th scope="col" class="wide number few">Available</th><th scope="col" class="number age">Since</th></tr></thead>
      <tbody>${found.slice(0, shown.value).map((row) => html`<${Extension} key=${row.name} row=${row}/>`)}</tbody></table>
      ${!found.length && html`<p class="quiet">None of ${sorted.length} matches.</p>`}
      ${found.length > shown.value && html`<p><button type="button" id="more" onClick=${() => (shown.value += page)}>Show ${Math.min(page, found.length - shown.value)} more of ${found.length - shown.value}</button></p>`}
    </section>`}
    ${parts.value.plans && html`<p class="note review">Plans are not shown: ${parts.value.plans}</p>`}
    ${parts.value.ClusterExtensions && html`<p class="note review">ClusterExtensions are not shown, and neither is what they ask for and do not get: ${parts.value.ClusterExtensions}</p>`}
    ${sortedPlans.length > 0 && html`<section aria-labelledby="plans"><h2 id="plans">Plans</h2>
      <table class="rows"><thead><tr><th scope="col">Plan</th><th scope="col" class="sign">State</th><th scope="col" class="wide ver">Profile</th><th scope="col" class="age">Impact</th><th scope="col" class="wide number few">Items</th></tr></thead>
      <tbody>${sortedPlans.map((plan) => html`<tr key=${plan.name} class=${plan.signal}><th scope="row"><a data-row href=${`#/plan/${plan.name}`}>${soft(plan.name)}</a>
        ${plan.message && html`<span class="more">${plan.message}</span>`}
        <span class="thin">${plan.profile} · ${plan.done}/${plan.items} items</span></th><td><${State} signal=${plan.signal} word=${plan.state}/></td>
        <td class="wide">${plan.profile}</td><td>${plan.impact}</td><td class="wide number">${plan.done}/${plan.items}</td></tr>`)}</tbody></table></section>`}
  </main>`;
}

/** @param {{ rows: Row[], plans: PlanRow[] }} props */
function Attention({ rows, plans }) {
  const needs = rows.filter((row) => row.signal === "needs" || row.signal === "review" || row.proposed), waits = plans.filter((plan) => plan.signal === "needs" || plan.signal === "review");
  if (!needs.length && !waits.length) return null;
  const most = 12;
  return html`<section aria-labelledby="needs"><h2 id="needs">Needs attention <span class="quiet number">${needs.length + waits.length}</span></h2><ul class="cards">
    ${needs.slice(0, most).map((row) => row.signal === "needs" || !row.proposed
      ? html`<li class=${`card ${row.signal}`} key=${row.name}><div><${State} signal=${row.signal} word=${row.state}/> <a class="title" href=${`#/x/${row.name}`}>${row.name}</a> <span class="quiet"><${Ago} at=${row.since} ago/></span></div>
          <p>${row.message}</p>${row.do && html`<p class="do"><span class="quiet">To do:</span> ${row.do}.</p>`}</li>`
      : html`<li class="card review" key=${row.name}><div><${State} signal="review" word="To review"/> <a class="title" href=${`#/diff/${row.proposedDiff}`}>${row.name}</a></div>
          <p>${row.proposed}${row.proposedVersion && html`, version ${row.proposedVersion},`} is proposed${row.version && html` in place of ${row.version}`}. It waits until somebody has read what it changes.</p></li>`)}
    ${waits.map((plan) => html`<li class="card ${plan.signal}" key=${`plan ${plan.name}`}><div><${State} signal=${plan.signal} word=${plan.state}/> <span class="quiet">plan</span> <a class="title" href=${`#/plan/${plan.name}`}>${plan.name}</a></div>
      <p>${plan.signal === "review" ? html`It waits for an approval; impact ${plan.impact || "unknown"}.` : plan.message}</p>${plan.do && html`<p class="do"><span class="quiet">To do:</span> ${plan.do}.</p>`}</li>`)}
  </ul>${needs.length > most && html`<p class="quiet">And ${needs.length - most} more in the table.</p>`}</section>`;
}

/** @param {{ rows: Row[], plans: PlanRow[] }} props */
function MovingNow({ rows, plans }) {
  const moving = rows.filter((row) => row.signal === "moving"), run = plans.filter((plan) => plan.signal === "moving");
  if (!moving.length && !run.length) return null;
  return html`<section aria-labelledby="moving"><h2 id="moving">In progress <span class="quiet number">${moving.length + run.length}</span></h2><ul class="moves">
    ${moving.slice(0, 12).map((row) => html`<li key=${row.name}><a href=${`#/x/${row.name}`}>${row.name}</a> <span class="quiet">${row.version ?? ""}</span>
      ${row.revision ? html`<progress max=${Math.max(1, row.objects)} value=${row.ready} aria-label=${`${row.name}: ${row.ready} of ${row.objects} objects available`}></progress>
      <span class="number">${row.ready} of ${count(row.objects, "object")}</span>` : html`<span>no revision yet</span>`} <span class="quiet">${row.phase || inWords(row.state)}</span></li>`)}
    ${run.map((plan) => html`<li key=${`plan ${plan.name}`}><a href=${`#/plan/${plan.name}`}>${plan.name}</a> <span class="quiet">plan</span>
      <progress max=${Math.max(1, plan.items)} value=${plan.done} aria-label=${`${plan.name}: ${plan.done} of ${plan.items} items done`}></progress>
      <span class="number">${plan.done} of ${count(plan.items, "item")}</span> <span class="quiet">${inWords(plan.state)}</span></li>`)}
  </ul></section>`;
}

/** @param {{ rows: Row[], only: { value: string } }} props */
function Tally({ rows, only }) {
  /** @type {Record<string, number>} */
  const n = {};
  for (const row of rows) n[row.signal] = (n[row.signal] ?? 0) + 1;
  return html`<div class="tally" role="group" aria-label="Show only">
    <button type="button" aria-pressed=${!only.value} onClick=${() => (only.value = "")}>All <span class="number">${rows.length}</span></button>
    ${Object.keys(urgency).filter((key) => n[key]).map((key) => html`<button type="button" key=${key} aria-pressed=${only.value === key} onClick=${() => (only.value = only.value === key ? "" : key)}>
      <${State} signal=${key} word=${wordOf(key)}/> <span class="number">${n[key]}</span></button>`)}</div>`;
}

/** @param {{ row: Row }} props */
function Extension({ row }) {
  return html`<tr class=${row.signal}><th scope="row"><a data-row href=${`#/x/${row.name}`}>${soft(row.name)}</a>${row.message && row.signal !== "well" && row.signal !== "review" && html`<span class="more">${row.message}</span>`}
      <span class="thin">${row.version && `${row.version}${row.proposedVersion ? ` → ${row.proposedVersion}` : ""} · `}${row.ready}/${row.objects} available</span></th>
    <td><${State} signal=${row.signal} word=${row.signal === "well" ? "Healthy" : row.signal === "review" ? "To review" : row.state}/></td>
    <td class="wide version">${row.version}${row.proposedVersion && html` <span class="quiet">→ ${row.proposedVersion}</span>`}</td>
    <td class="wide number">${row.revision ? `${row.ready}/${row.objects}` : "–"}</td><td class="number"><${Ago} at=${row.since}/></td></tr>`;
}
