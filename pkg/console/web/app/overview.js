// The screens over all extensions: the overview with objects that need a user, objects in progress,
// and all objects; the timeline, also of one extension; and the search.
import { html, useEffect, useRef, useSignal } from "./lib.js";
import { link, watch } from "./net.js";
import { Ago, Asked, State, Tally, announce, count, inWords, kindOf, objectName, objectPlace, remark, soft, urgency, useFilter } from "./parts.js";
import { extensionOf, frozen, isName, useAsk } from "./shared.js";

/** @typedef {import("./api").ExtensionRow} Row @typedef {import("./api").PlanRow} PlanRow @typedef {import("./api").SetRow} SetRow */

export function Overview() {
  const rows = useSignal(/** @type {Map<string, Row>} */ (new Map()));
  const plans = useSignal(/** @type {Map<string, PlanRow>} */ (new Map()));
  const sets = useSignal(/** @type {Map<string, SetRow>} */ (new Map()));
  const synced = useSignal(false);
  const parts = useSignal(/** @type {Record<string, string>} */ ({}));
  const only = useSignal("");
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
      const fleets = new Map(sets.value);
      for (const row of news.sets ?? []) fleets.set(row.name, row);
      for (const gone of news.goneSets ?? []) fleets.delete(gone);
      sets.value = fleets;
      rows.value = extensions;
      plans.value = all;
      frozen.value = [...extensions.values()].find((row) => row.frozen)?.frozen ?? "";
      const needs = [...extensions.values()].filter((row) => row.signal === "needs").length;
      if (synced.value && needs > before) announce(`${count(needs, "extension")} stuck`);
    });
  }, []);

  const first = (/** @type {{ signal: string, name: string }} */ a, /** @type {{ signal: string, name: string }} */ b) => urgency[a.signal] - urgency[b.signal] || a.name.localeCompare(b.name);
  const sorted = [...rows.value.values()].sort(first), sortedPlans = [...plans.value.values()].sort(first), sortedSets = [...sets.value.values()].sort(first);
  const list = useFilter(sorted, (row) => [row.name, row.version, row.state, inWords(row.state), row.message, row.proposedVersion], (row) => !only.value || row.signal === only.value);
  const nothing = synced.value && !sorted.length && !sortedPlans.length && !sortedSets.length;
  return html`<h1 tabindex="-1">Overview</h1>
    ${!synced.value && link.value.state === "connecting" && html`<p class="quiet" id="loading">Asking the cluster…</p>`}
    ${nothing && html`<p>Nothing is installed by Penstock. <code>kubectl penstock deploy DIRECTORY --name NAME</code> installs manifests.</p>`}
    <${Attention} rows=${sorted} plans=${sortedPlans} sets=${sortedSets}/>
    <${MovingNow} rows=${sorted} plans=${sortedPlans}/>
    ${sorted.length > 0 && html`<section aria-labelledby="all">
      <div class="head"><h2 id="all">Extensions</h2>
        <${Tally} rows=${sorted} only=${only}/>
        ${list.field("Filter extensions", "Filter")}</div>
      <table class="rows" id="extensions"><thead><tr><th scope="col">Extension</th><th scope="col" class="sign">State</th><th scope="col" class="wide ver">Version</th>
        <th scope="col" class="wide number few">Available</th><th scope="col" class="number age">Since</th></tr></thead>
      <tbody>${list.shown.map((row) => html`<${Extension} key=${row.name} row=${row}/>`)}</tbody></table>
      ${list.rest}</section>`}
    ${parts.value.plans && html`<p class="note review">Plans are not shown: ${parts.value.plans}</p>`}
    ${parts.value.ClusterExtensions && html`<p class="note review">ClusterExtensions are not shown, and neither is what they ask for and do not get: ${parts.value.ClusterExtensions}</p>`}
    ${sortedPlans.length > 0 && html`<section aria-labelledby="plans"><h2 id="plans">Plans</h2>
      <table class="rows"><thead><tr><th scope="col">Plan</th><th scope="col" class="sign">State</th><th scope="col" class="wide ver">Profile</th><th scope="col" class="age">Impact</th><th scope="col" class="wide number few">Items</th></tr></thead>
      <tbody>${sortedPlans.map((plan) => html`<tr key=${plan.name} class=${plan.signal}><th scope="row"><a data-row href=${`#/plan/${plan.name}`}>${soft(plan.name)}</a>
        ${plan.message && html`<span class="more">${plan.message}</span>`}
        <span class="thin">${plan.profile} · ${plan.done}/${plan.items} items</span></th><td><${State} signal=${plan.signal} word=${plan.state}/></td>
        <td class="wide">${plan.profile}</td><td>${plan.impact}</td><td class="wide number">${plan.done}/${plan.items}</td></tr>`)}</tbody></table></section>`}
    ${parts.value.ClusterExtensionSets && html`<p class="note review">Rollouts to many clusters are not shown: ${parts.value.ClusterExtensionSets}</p>`}
    ${sortedSets.length > 0 && html`<section aria-labelledby="sets"><h2 id="sets">Many clusters</h2>
      <table class="rows"><thead><tr><th scope="col">ClusterExtensionSet</th><th scope="col" class="sign">State</th><th scope="col" class="wide ver">Rollout</th><th scope="col" class="number few">Updated</th></tr></thead>
      <tbody>${sortedSets.map((one) => html`<tr key=${one.name} class=${one.signal}><th scope="row">${fleetLink(one)}${one.signal !== "well" && html`<span class="more">${remark(one.message)}</span>`}</th>
        <td><${State} signal=${one.signal} word=${one.state}/></td><td class="wide">${soft(one.rollout)}</td><td class="number">${one.updated}/${one.clusters}</td></tr>`)}</tbody></table></section>`}`;
}

/** @param {SetRow} set @param {string} [kind] */
const fleetLink = ({ name, rollout }, kind) => (rollout ? html`<a data-row class=${kind} href=${`#/fleet/${rollout}`}>${soft(name)}</a>` : soft(name));

/** @param {{ rows: Row[], plans: PlanRow[], sets: SetRow[] }} props */
function Attention({ rows, plans, sets }) {
  const needs = rows.filter((row) => row.signal === "needs" || row.signal === "review" || row.proposed), waits = plans.filter((plan) => plan.signal === "needs" || plan.signal === "review");
  const fleets = sets.filter((set) => set.signal === "needs" || set.signal === "review");
  if (!needs.length && !waits.length && !fleets.length) return null;
  const most = 12;
  return html`<section aria-labelledby="needs"><h2 id="needs">Needs attention <span class="quiet number">${needs.length + waits.length + fleets.length}</span></h2><ul class="cards">
    ${needs.slice(0, most).map((row) => row.signal === "needs" || !row.proposed
      ? html`<li class=${`card ${row.signal}`} key=${row.name}><div><${State} signal=${row.signal} word=${row.state}/> <a class="title" href=${`#/x/${row.name}`}>${row.name}</a> <span class="quiet"><${Ago} at=${row.since} ago/></span></div>
          <p>${row.message}</p>${row.do && html`<p class="do"><span class="quiet">To do:</span> ${row.do}.</p>`}</li>`
      : html`<li class="card review" key=${row.name}><div><${State} signal="review" word="To review"/> <a class="title" href=${`#/diff/${row.proposedDiff}`}>${row.name}</a></div>
          <p>${row.proposed}${row.proposedVersion && html`, version ${row.proposedVersion},`} is proposed${row.version && html` in place of ${row.version}`}. It waits until a person has read its changes.</p></li>`)}
    ${waits.map((plan) => html`<li class="card ${plan.signal}" key=${`plan ${plan.name}`}><div><${State} signal=${plan.signal} word=${plan.state}/> <span class="quiet">plan</span> <a class="title" href=${`#/plan/${plan.name}`}>${plan.name}</a></div>
      <p>${plan.signal === "review" ? html`It waits for an approval; impact ${plan.impact || "unknown"}.` : plan.message}</p>${plan.do && html`<p class="do"><span class="quiet">To do:</span> ${plan.do}.</p>`}</li>`)}
    ${fleets.map((set) => html`<li class="card ${set.signal}" key=${`set ${set.name}`}><div><${State} signal=${set.signal} word=${set.state}/> <span class="quiet">${count(set.clusters, "cluster")}</span> ${fleetLink(set, "title")}</div>
      <p>${set.signal === "review" ? `${set.rollout} waits for an approval.` : remark(set.message)}</p></li>`)}
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

/** @param {{ row: Row }} props */
function Extension({ row }) {
  return html`<tr class=${row.signal}><th scope="row"><a data-row href=${`#/x/${row.name}`}>${soft(row.name)}</a>${row.message && row.signal !== "well" && row.signal !== "review" && html`<span class="more">${row.message}</span>`}
      <span class="thin">${row.version && `${row.version}${row.proposedVersion ? ` → ${row.proposedVersion}` : ""} · `}${row.ready}/${row.objects} available</span></th>
    <td><${State} signal=${row.signal} word=${row.signal === "well" ? "Healthy" : row.signal === "review" ? "To review" : row.state}/></td>
    <td class="wide version">${row.version}${row.proposedVersion && html` <span class="quiet">→ ${row.proposedVersion}</span>`}</td>
    <td class="wide number">${row.revision ? `${row.ready}/${row.objects}` : "–"}</td><td class="number"><${Ago} at=${row.since}/></td></tr>`;
}

/** @typedef {import("./api").Entry} Entry */

/** Past events, newest first: of one extension, or of all extensions and plans. The address has the
 * filters, so that a link opens the same view. @param {{ query: string }} props */
export function TimelineScreen({ query }) {
  const { extension = "", who = "", what = "", at } = Object.fromEntries(new URLSearchParams(query));
  const narrowed = (/** @type {Record<string, string>} */ more) => new URLSearchParams(Object.entries({ extension, who, what, ...more }).filter(([, value]) => value));
  const asked = useAsk(`/api/timeline?${narrowed({})}`, (/** @type {import("./api").Timeline} */ found) => announce(`Entries: ${found.entries.length}`));
  const found = /** @type {import("./api").Timeline | null} */ (asked.found.value);
  useEffect(() => document.querySelector("tr[aria-current]")?.scrollIntoView({ block: "center" }), [found, at]);
  /** @param {"who" | "what"} of @param {string} is @param {string[] | undefined} all */
  const choice = (of, is, all) => html`<label>${of === "what" ? "Event" : "User or manager"} <select id=${of} value=${is} onChange=${(/** @type {any} */ e) => (location.hash = `#/timeline?${narrowed({ [of]: e.currentTarget.value })}`)}>
    <option value="">any</option>${[...new Set([...(is ? [is] : []), ...(all ?? [])])].map((one) => html`<option key=${one} value=${one} selected=${one === is}>${of !== "what" ? one : one === "Repaired" ? "Repaired: changes by others" : inWords(one)}</option>`)}</select></label>`;
  return html`${extension && html`<p class="crumbs"><a href="#/">Overview</a> · <a href=${`#/x/${extension}`}>${extension}</a> · <a href="#/timeline">all extensions</a></p>`}
    <h1 tabindex="-1">Timeline${extension && ` of ${extension}`}</h1>
    <p class="quiet">From the history of revisions with their 50 newest repairs, runs of plans, and events, which the cluster forgets after about an hour.</p>
    <p class="standing">${choice("what", what, found?.what)}${choice("who", who, found?.who)}</p>
    <${Asked} of=${asked} doing="The timeline cannot be shown"/>
    ${found?.refused?.map((said) => html`<p class="note review">Some is not shown: ${said}</p>`)}
    ${found && !found.entries.length && html`<p>No entry.</p>`}
    ${found && found.entries.length > 0 && html`<table class="rows" id="happened"><thead><tr><th scope="col">Event</th><th scope="col" class="wide ver">User or manager</th><th scope="col" class="wide ver">Object</th><th scope="col" class="age number">When</th></tr></thead>
      <tbody>${found.entries.map((one) => html`<tr key=${keyOf(one)} aria-current=${keyOf(one) === at ? "true" : undefined}><th scope="row"><${State} signal=${one.signal ?? ""} word=${one.what}/> <span class="more">${remark(one.message)}</span>
        <span class="thin">${one.who && `by ${one.who} · `}${objectOf(one)}</span></th>
        <td class="wide">${one.who || html`<span class="quiet">Penstock</span>`}</td><td class="wide">${objectOf(one)}</td>
        <td class="number"><a href=${`#/timeline?${narrowed({ at: keyOf(one) })}`}><${Ago} at=${one.time} ago/></a><span class="more">${when(one.time)}${one.count && ` ×${one.count}`}</span></td></tr>`)}</tbody></table>`}
    ${found?.omitted ? html`<p class="quiet">${found.omitted} earlier ones are not shown.</p>` : null}`;
}

/** The day and the time of an entry, in the zone of the reader. @param {string} at */
const when = (at) => new Date(at).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** The part of a link that names an entry. @param {Entry} one */
const keyOf = (one) => [one.time, one.what, one.name].join(" ");

/** The screen of the affected object. @param {Entry} one */
function objectOf({ kind, name, who, what }) {
  if (!isName(name)) return name;
  if (kind === "ConfigurationPlan") return html`<span class="quiet">plan</span> <a href=${`#/plan/${name}`}>${soft(name)}</a>`;
  if (kind !== "ClusterExtensionRevision") return html`<a href=${`#/x/${name}`}>${soft(name)}</a>`;
  return html`<a href=${who && what !== "Repaired" ? `#/diff/..${name}` : `#/x/${extensionOf(name)}`}>${soft(name)}</a>`;
}

/** @typedef {import("./api").Hit} Hit */

/** The screens of hits. @type {Record<string, (hit: Hit) => string>} */
const places = {
  Extension: ({ name }) => `#/x/${name}`,
  Revision: ({ name }) => `#/diff/..${name}`,
  Package: ({ name }) => `#/package/${name}`,
  Object: (hit) => objectPlace(hit.revision ?? "", /** @type {any} */ (hit)),
};

/** Extensions, revisions, packages and objects by their names. @param {{ query: string }} props */
export function SearchScreen({ query }) {
  const q = new URLSearchParams(query).get("q") ?? "", later = useRef(0);
  const asked = useAsk(q && `/api/search?${new URLSearchParams({ q })}`, (found) => announce(`Found: ${found.hits.length + (found.omitted ?? 0)}`)), found = /** @type {import("./api").Search | null} */ (asked.found.value);
  // A user who has left meanwhile must not be redirected.
  useEffect(() => () => clearTimeout(later.current), []);
  const type = (/** @type {any} */ { currentTarget: { value } }) => {
    clearTimeout(later.current);
    later.current = setTimeout(() => location.replace(`#/search?${new URLSearchParams({ q: value.trim() })}`), 200);
  };
  return html`<h1 tabindex="-1">Search</h1>
    <p><input data-filter data-first type="search" id="q" maxlength="128" aria-label="Name of an extension, a revision, an object or a package" placeholder="name, kind or version" defaultValue=${q} onInput=${type}/></p>
    ${q && html`<${Asked} of=${asked} doing="Nothing can be found"/>`}
    ${found?.refused?.map((said) => html`<p class="note review">Not all is searched: ${said}</p>`)}
    ${found && !found.hits.length && html`<p>Nothing has ${q} in its name.</p>`}
    ${found && found.hits.length > 0 && html`<table class="rows" id="hits"><thead><tr><th scope="col">Name</th><th scope="col" class="ver">Kind</th></tr></thead>
      <tbody>${found.hits.map((hit) => html`<tr><th scope="row"><a data-row href=${places[hit.of](hit)}>${soft(objectName(hit))}</a> <span class="quiet">${hit.version}</span></th>
        <td>${hit.kind ? html`${soft(kindOf(hit.apiVersion ?? "", hit.kind))} <span class="more">of ${hit.revision}</span>` : hit.of}</td></tr>`)}</tbody></table>`}
    ${found?.omitted ? html`<p class="quiet">And ${found.omitted} more.</p>` : null}`;
}
