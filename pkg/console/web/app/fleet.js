// One change to many clusters: waves as columns, clusters as cells, the change of each group, and decisions.
import { html, useEffect, useSignal } from "./lib.js";
import { Refused, link, post, watch } from "./net.js";
import { Ago, Asked, Button, Checklist, Confirm, Notes, Problem, Risks, State, announce, count, counts, glyphOf, inWords, missing, remark, soft, span, unticked, useFilter } from "./parts.js";
import { into, lacks, me, useAsk, useDeed } from "./shared.js";

/** @typedef {import("./api").Rollout} Rollout @typedef {import("./api").RolloutCluster} Cluster @typedef {import("./api").RolloutGroup} Group */

const verbs = ["approve", "halt", "resume", "retry", "skip"];
/** The clusters of a rollout that change. @param {Rollout} rollout */
const changing = (rollout) => rollout.clusters.filter((one) => one.state !== "Present");
const title = (/** @type {string} */ verb) => verb[0].toUpperCase() + verb.slice(1);

/** A version, or an image with the first digits of its digest. @param {string | undefined} of */
const brief = (of) => (of || "nothing").replace(/(@sha256:[0-9a-f]{12})[0-9a-f]+/, "$1…");

/** @param {{ name: string }} props */
export function FleetScreen({ name }) {
  const rollout = useSignal(/** @type {Rollout | null | undefined} */ (undefined));
  const chosen = useSignal(/** @type {string[]} */ ([]));
  useEffect(() => watch(`/api/watch/rollouts/${name}`, (message) => {
    if (message.kind !== "rollout") return;
    const before = rollout.value?.state, now = message.rollout ?? null;
    rollout.value = now;
    chosen.value = chosen.value.filter((one) => now?.clusters.some((cluster) => cluster.name === one && cluster.skip));
    if (before && before !== now?.state) announce(`${name}: ${inWords(now?.state)}`);
  }), [name]);
  const asked = useAsk(`/api/rollouts/${name}/groups`), groups = /** @type {Group[]} */ (asked.found.value?.groups ?? []);
  const of = rollout.value;
  if (!of) return html`<h1 tabindex="-1">Rollout ${name}</h1>${of === null ? html`<p>There is no rollout of this name.</p>` : link.value.state === "connecting" && html`<p class="quiet">Asking the cluster…</p>`}`;
  return html`<p class="crumbs"><a href="#/">Overview</a></p>
    <h1 tabindex="-1">Rollout ${name}</h1>
    <div class="headline"><p><${State} signal=${of.signal} word=${of.state}/> <span><span class="quiet">ClusterExtensionSet</span> <strong>${of.set}</strong></span> <span class="quiet">written by ${of.requestedBy}, computed <${Ago} at=${of.created} ago/></span></p>
      ${remark(of.message).split("; ").map((line) => line && html`<p>${line[0].toUpperCase() + line.slice(1)}.</p>`)}</div>
    <${Waves} rollout=${of} chosen=${chosen}/>
    <${Decision} rollout=${of} groups=${groups} known=${!!asked.found.value} chosen=${chosen}/>
    <${Asked} of=${asked} doing="The changes cannot be shown"/>
    ${groups.map((group, i) => html`<section key=${i} aria-labelledby=${`group-${i}`}><h2 id=${`group-${i}`}>${count(group.clusters.length, "cluster")}: ${brief(group.from)} → ${brief(group.to)}</h2>
      <p class="quiet">${soft(group.clusters.slice(0, 10).join(", "))}${group.clusters.length > 10 && ` and ${group.clusters.length - 10} more`}</p>
      ${group.diff && html`<p class="sum">${counts(group.diff.summary)}</p><${Notes} notes=${group.diff.notes}/>${missing(group.diff).map((said) => html`<p class="note review">${said}</p>`)}
        <${Checklist} diff=${group.diff} of=${`group ${i + 1}`} load=${async (/** @type {any} */ change) => change}/>`}</section>`)}`;
}

/** @type {Record<string, number>} */
const urgency = { needs: 0, moving: 1, stopped: 2, well: 3 };

/** @param {{ rollout: Rollout, chosen: { value: string[] } }} props */
function Waves({ rollout, chosen }) {
  const sorted = [...rollout.clusters].sort((a, b) => urgency[a.signal] - urgency[b.signal] || a.name.localeCompare(b.name));
  const list = useFilter(sorted, (one) => [one.name, one.state, inWords(one.state), one.reason]);
  return html`<section aria-labelledby="waves"><div class="head"><h2 id="waves">Waves <span class="quiet number">${changing(rollout).filter((one) => one.signal === "well").length} of ${count(changing(rollout).length, "cluster")} succeeded</span></h2>
      ${list.field("Filter clusters", "Filter")}</div>
    <ol class="waves">${rollout.waves.map((wave) => {
      const all = changing(rollout).filter((one) => one.wave === wave.name), approval = rollout.approvals?.find((one) => one.wave === wave.name);
      return html`<li key=${wave.name}><h3>${soft(wave.name)} <span class="quiet number">${all.filter((one) => one.signal === "well").length}/${all.length}</span></h3>
        <p class="quiet">at most ${wave.maxUnavailable} changing or unhealthy, ${wave.maxFailures || "no"} failed, ${wave.maxUnreachable || "none"} unreachable${wave.window && `, begin only in the window ${wave.window.schedule} in ${wave.window.timeZone} for ${wave.window.duration}`}${wave.soakSeconds > 0 && `, soak ${span(wave.soakSeconds * 1000)}`}${wave.approvalRequired && (approval ? `, approved by ${approval.user}` : ", needs an approval")}</p>
        <ul>${list.shown.filter((one) => one.wave === wave.name).map((one) => html`<${Cell} key=${one.name} of=${one} chosen=${chosen}/>`)}</ul></li>`;
    })}</ol>${list.rest}</section>`;
}

/** @param {{ of: Cluster, chosen: { value: string[] } }} props */
function Cell({ of, chosen }) {
  const is = chosen.value.includes(of.name);
  return html`<li class="card ${of.signal}">${of.skip && html`<input type="checkbox" checked=${is} aria-label=${`Choose ${of.name}`} onChange=${() => (chosen.value = is ? chosen.value.filter((one) => one !== of.name) : [...chosen.value, of.name])}/>`}
    ${of.extension ? html`<a data-row class="title" href=${`#/x/${of.extension}`}>${soft(of.name)}</a>` : html`<strong>${soft(of.name)}</strong>`}
    <span class="more"><${State} signal=${of.signal} word=${of.state}/>${of.since && html` <${Ago} at=${of.since}/>`}${(of.attempt ?? 0) > 1 && ` · attempt ${of.attempt}`}</span>
    ${of.reason && of.reason !== of.state && html`<span class="more">${inWords(of.reason)}</span>`}${of.by && html`<span class="more">by ${of.by}</span>`}</li>`;
}

/** The changes of all groups in one diff, for the question before an approval. @param {Group[]} groups @returns {import("./api").RevisionDiff} */
function together(groups) {
  const diffs = groups.flatMap((group) => group.diff ?? []), sum = (/** @type {(diff: import("./api").RevisionDiff) => number | undefined} */ of) => diffs.reduce((all, diff) => all + (of(diff) ?? 0), 0);
  const notes = new Map(diffs.flatMap((diff) => diff.notes ?? []).map((note) => [JSON.stringify(note), note]));
  return /** @type {any} */ ({ notes: [...notes.values()], changes: diffs.flatMap((diff) => diff.changes ?? []), summary: { removed: sum((diff) => diff.summary.removed) }, truncated: { objects: sum((diff) => diff.truncated?.objects), notes: sum((diff) => diff.truncated?.notes) } });
}

/** The effect of each decision. @type {Record<string, string>} */
const effects = {
  halt: "No further cluster begins until a user resumes the rollout. Clusters that are changing end as they would.",
  resume: "The halt ends, and the clusters leave that the set no longer selects.",
  retry: "The change is tried again in these clusters.",
  skip: "The rollout continues without these clusters. They keep their version.",
};

/** @param {{ rollout: Rollout, groups: Group[], known: boolean, chosen: { value: string[] } }} props */
function Decision({ rollout, groups, known, chosen }) {
  const rights = useAsk(`/api/rights?name=${rollout.name}&${verbs.map((verb) => `button=${verb}Rollout`).join("&")}`);
  const comment = useSignal(""), ticked = useSignal(/** @type {Set<number>} */ (new Set()));
  const { asking, busy, refused, act } = useDeed();
  const would = useSignal(/** @type {Refused | null | undefined} */ (undefined));
  const { digest = "", name } = rollout;
  const send = (/** @type {string} */ verb, /** @type {object} */ body) => post(`/api/rollouts/${name}/${verb}`, body);
  useEffect(() => {
    would.value = undefined;
    if (digest && !me.value?.readOnly) send("approve", { digest, dryRun: true }).then(() => (would.value = null), (failure) => (would.value = failure));
  }, [digest]);
  const named = rollout.clusters.filter((one) => chosen.value.includes(one.name)), fixed = named.find((one) => !one.retry);
  /** @type {Record<string, string>} */
  const whys = {
    approve: !digest ? "nothing waits for an approval" : !known ? "the changes are not shown yet" : would.value === undefined ? "asking the cluster whether you may" : would.value?.message ?? "",
    halt: rollout.haltedBy ? `${rollout.haltedBy} halted it` : "",
    resume: rollout.haltedBy || rollout.leaving?.length ? "" : "no user halted it",
    retry: !named.length ? "choose failed clusters" : fixed ? `${fixed.name} is ${inWords(fixed.state)}` : "",
    skip: named.length ? "" : "choose clusters",
  };
  const why = (/** @type {string} */ verb) => lacks(rights, `${verb}Rollout`) || (rollout.ended ? "another rollout took its place" : whys[verb]);
  const now = (/** @type {string} */ verb) => (verb === "approve" ? digest : rollout.troubles);
  const asked = asking.value, diff = together(groups), wave = rollout.wave;
  const shown = asked && (asked.digest !== now(asked.verb) ? "it has changed since you opened this question" : "");
  const yes = () => act(async () => {
    await send(asked.verb, { digest: asked.digest, clusters: asked.clusters, comment: comment.value });
    announce(`${name}: done`);
    chosen.value = [];
  });
  return html`<section class="decision" aria-labelledby="decision"><h2 id="decision">Decision</h2>
    ${rollout.approvals?.length && html`<ul class="people">${rollout.approvals.map((one) => html`<li>✓ <strong>${one.user}</strong> <span class="quiet">${one.wave && `wave ${one.wave} `}<${Ago} at=${one.time} ago/></span> ${one.comment && html`<q>${one.comment}</q>`}</li>`)}</ul>`}
    ${rollout.decisions?.length && html`<ul class="people">${rollout.decisions.map((one) => html`<li>${one.verb}${one.count ? ` ${soft(one.clusters?.join(", "))}${one.count > (one.clusters?.length ?? 0) ? ` and ${one.count - (one.clusters?.length ?? 0)} more` : ""}` : ""} by <strong>${one.user}</strong> <span class="quiet"><${Ago} at=${one.time} ago/></span> ${one.comment && html`<q>${one.comment}</q>`}</li>`)}</ul>`}
    <${Problem} refused=${refused.value} doing="Nothing was done"/>
    <label class="field">Comment <input id="comment" maxlength="512" value=${comment.value} onInput=${into(comment)}/></label>
    <div class="actions">${verbs.map((verb) => html`<${Button} key=${verb} id=${verb} kind=${verb === "approve" ? "main" : ""} why=${why(verb)} busy=${busy.value} onClick=${() => { ticked.value = new Set(); asking.value = { verb, digest: now(verb), clusters: verb === "retry" || verb === "skip" ? chosen.value : [] }; }}>${title(verb)}${verb === "approve" && wave && ` wave ${wave}`}<//>`)}</div>
    ${digest && html`<p class="hash"><span class="quiet">Digest (what you approve)</span> <code>${digest}</code></p>`}
    ${asked && html`<${Confirm} title=${`${title(asked.verb)} ${asked.verb === "approve" && wave ? `wave ${wave} of ` : ""}rollout ${name}?`} verb=${title(asked.verb)} busy=${busy.value} danger=${asked.verb === "approve" && diff.summary.removed > 0}
      why=${shown || (asked.verb === "approve" ? unticked(diff, ticked.value) : "")} onYes=${yes} onNo=${() => (asking.value = "")}>
      ${asked.verb === "approve" ? html`<p>It changes <strong>${count(changing(rollout).filter((one) => !wave || one.wave === wave).length, "cluster")}</strong>${!wave && `, in ${count(rollout.waves.length, "wave")}`}:</p>
          <ul class="terms">${groups.map((group) => html`<li>${count(group.clusters.length, "cluster")}: ${group.from || "nothing"} → ${group.to}${group.diff && `, ${counts(group.diff.summary)}`}</li>`)}</ul>
          <${Risks} diff=${diff} ticked=${ticked}/>`
        : html`<p>${effects[asked.verb]}</p><ul class="terms">${[...asked.clusters, ...(asked.verb === "resume" ? rollout.leaving ?? [] : [])].map((one) => html`<li>${glyphOf("stopped")} ${one}</li>`)}</ul>`}<//>`}
  </section>`;
}
