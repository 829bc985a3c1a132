// One extension: its rollout, its history, and rollbacks.
import { html, useEffect, useRef, useSignal } from "./lib.js";
import { Refused, link, post, watch } from "./net.js";
import { Ago, Asked, Button, Checklist, Confirm, Notes, Outdated, Problem, Risks, State, Tally, announce, count, counts, inWords, kindOf, missing, now, objectName, objectPlace, objectState, soft, span, unticked, useFilter } from "./parts.js";
import { frozen, into, isName, lacks, me, useAsk, useDeed } from "./shared.js";
import { EventRows, podPlace, podsOf } from "./object.js";
import { TreePicture } from "./tree.js";
import { Version } from "./version.js";

/** @typedef {import("./api").Revision} Revision @typedef {import("./api").Extension} Extension @typedef {import("./api").RevisionRecord} Record_ */

/** @param {{ name: string }} props */
export function ExtensionScreen({ name }) {
  const extension = useSignal(/** @type {Extension | null | undefined} */ (undefined));
  const rights = useAsk("/api/rights?button=rollback");
  const wanted = useSignal(/** @type {import("./api").Wanted | null} */ (null));
  const target = useSignal("");
  useEffect(() => watch(`/api/watch/extensions/${name}`, (message) => {
    if (message.kind === "wanted") wanted.value = message.wanted ?? null;
    if (message.kind !== "extension") return;
    const before = extension.value?.row;
    extension.value = message.extension ?? null;
    frozen.value = message.extension?.row.frozen ?? "";
    if (before && message.extension && before.state !== message.extension.row.state) announce(`${name}: ${inWords(message.extension.row.state)}`);
  }), [name]);
  // The history is requested again when the fields change that affect its rows.
  const version = extension.value?.revisions.map((one) => `${one.name} ${one.lifecycle} ${one.state}`).join() ?? "";
  const past = useAsk(`/api/histories/${name}`, undefined, version), history = /** @type {{ value: import("./api").RevisionHistory | null }} */ (past.found), failed = past.refused;

  // After a rollback the focus is on its progress, at the top of the page; after a cancel it is on the button as before.
  const ended = useRef("");
  const end = (/** @type {boolean} */ done) => {
    ended.current = done ? "h1" : `[id="back-${target.value}"]`;
    target.value = "";
  };
  useEffect(() => {
    if (target.value || !ended.current) return;
    /** @type {HTMLElement | null} */ (document.querySelector(ended.current))?.focus();
    if (ended.current === "h1") scrollTo(0, 0);
    ended.current = "";
  }, [target.value]);

  const shown = extension.value?.revisions.filter((one) => one.lifecycle !== "Archived") ?? [];
  // Superseded revisions are folded, unless they need a user.
  const current = shown.filter((one, i) => i === 0 || one.state !== "Superseded" || one.signal === "needs");
  const older = shown.filter((one) => !current.includes(one));
  const rows = [...(history.value?.revisions ?? [])].reverse();
  const newest = extension.value?.revisions[0], earlier = rows.find((row) => row.name !== newest?.name && row.result === "Succeeded" && !isGone(row));
  return html`<p class="crumbs"><a href="#/">Overview</a></p>
    <h1 tabindex="-1">${name}</h1>
    ${extension.value === undefined && link.value.state === "connecting" && html`<p class="quiet">Asking the cluster…</p>`}
    ${wanted.value && html`<${Wish} name=${name} wanted=${wanted.value} alone=${!extension.value}/>`}
    ${extension.value === null && !wanted.value && html`<p>There is no revision of ${name}. <code>kubectl penstock why ${name}</code> says more; past revisions are in its history.</p>`}
    ${extension.value && html`<${Head} extension=${extension.value} earlier=${earlier && !lacks(rights, "rollback") ? earlier.name : ""} onBack=${() => (target.value = earlier?.name ?? "")}/>`}
    ${current.map((revision) => html`<${Rollout} key=${revision.name} revision=${revision}/>`)}
    ${older.length > 0 && html`<details class="older"><summary>${count(older.length, "older revision")} that others have replaced</summary>
      ${older.map((revision) => html`<${Rollout} key=${revision.name} revision=${revision}/>`)}</details>`}
    ${newest && html`<${Objects} key=${newest.name} revisions=${shown} news=${`${version} ${extension.value?.row.ready} ${extension.value?.row.message}`}/><${Noted} name=${name}/>`}
    <section aria-labelledby="history"><div class="head"><h2 id="history">History</h2><a href=${`#/timeline?extension=${name}`}>Timeline</a> <a href=${`#/timeline?extension=${name}&what=Repaired`}>Changes by others</a> <a href=${`#/ready?extension=${name}`}>Upgrade readiness</a></div>
      ${failed.value?.status === 404 ? html`<p class="quiet" id="no-history">There is no history yet: it begins with the first revision.</p>` : html`<${Problem} refused=${failed.value} doing="The history cannot be shown"/>`}
      ${history.value?.hold && html`<p class="note review">The rollback ${history.value.hold.revision} holds the owner of the extension: the owner creates no revision until it is changed.</p>`}
      ${rows.length > 0 && html`<table class="rows history"><thead><tr><th scope="col">Revision</th><th scope="col" class="sign">Result</th><th scope="col" class="wide number few">Changes</th><th scope="col" class="wide ver">By</th><th scope="col" class="number age">Age</th><th scope="col" class="acts"><span class="unseen">Actions</span></th></tr></thead>
      <tbody>${rows.map((row) => html`<${Past} key=${row.name} row=${row} newest=${newest} rights=${rights} open=${target.value === row.name} onOpen=${() => (target.value = target.value === row.name ? "" : row.name)}/>`)}</tbody></table>`}
    </section>
    ${target.value && newest && html`<${Rollback} key=${target.value} target=${target.value} newest=${newest.name} name=${name} onEnd=${end}/>`}`;
}

/** The request of a ClusterExtension, and its result if no revision shows it.
 * @param {{ name: string, wanted: import("./api").Wanted, alone: boolean }} props */
function Wish({ name, wanted, alone }) {
  const { row } = wanted;
  const changing = useSignal(false), was = useRef(false);
  // After the dialog the focus returns to the button.
  useEffect(() => {
    if (was.current && !changing.value) document.getElementById("change-version")?.focus();
    was.current = changing.value;
  }, [changing.value]);
  return html`<div class="asked" id="asked"><p class="quiet">A ClusterExtension asks for ${wanted.package ? html`package ${isName(wanted.package) ? html`<a href=${`#/package/${wanted.package}`}>${wanted.package}</a>` : wanted.package}` : `an ${wanted.source.toLowerCase()}`}${wanted.version && html`, version <code>${wanted.version}</code>`}${wanted.channels?.length ? `, channel ${wanted.channels.join(", ")}` : ""}, in namespace ${wanted.namespace}.
      ${wanted.package && html` <button type="button" id="change-version" aria-expanded=${changing.value} onClick=${() => (changing.value = !changing.value)}>Change version</button>`}</p>
    ${changing.value && html`<${Version} name=${name} wanted=${wanted} onEnd=${() => (changing.value = false)}/>`}
    ${alone && html`<p><${State} signal=${row.signal} word=${row.state}/> ${row.message || "Penstock makes its first revision."}</p>${row.do && html`<p class="do"><span class="quiet">To do:</span> ${row.do}.</p>`}`}
    ${!wanted.installed && (alone || row.state === "NameTaken") && html`<p class="quiet" id="take-back">It has installed nothing. To remove it: <code>kubectl delete clusterextension ${name}</code></p>`}</div>`;
}

/** The state of the extension, the same as in every other answer. An action in the advice has a button that opens its review.
 * @param {{ extension: Extension, earlier: string, onBack: () => void }} props */
function Head({ extension, earlier, onBack }) {
  const { row, advice, revisions } = extension, first = advice[0], verb = first?.command?.split(" ")[2];
  const stuck = revisions.flatMap((one) => one.phases.flatMap((phase) => (phase.failing ?? []).map((object) => podOf(one, object)))).find(Boolean);
  const paused = verb === "resume" && revisions.find((one) => one.name === first.subject && one.lifecycle === "Paused");
  return html`<div class="headline"><p><${State} signal=${row.signal} word=${row.signal === "well" ? "Healthy" : row.signal === "review" ? "To review" : inWords(row.state)}/>
      ${row.version && html`<strong>${row.version}</strong>`} <span><span class="number">${row.ready} of ${row.objects}</span> available</span> <span class="quiet">for <${Ago} at=${row.since}/></span></p>
    ${row.signal !== "well" && first && html`<p id="because">${first.subject} ${first.what}${first.because && html`: ${first.because}`}</p>`}
    ${first?.do && row.signal !== "well" && first.subject !== row.proposed && html`<p class="do"><span class="quiet">${first.who === "nobody" ? "Next:" : "To do:"}</span> ${first.do}.${first.command && html` <code>${first.command}</code>`}</p>`}
    <p class="standing">${verb === "rollback" && earlier && html`<button type="button" id="review-back" onClick=${onBack}>Review going back to ${earlier}</button>`}
      ${row.signal === "needs" && stuck && html`<a class="button" id="log-of" href=${stuck}>Log and events of the Pod</a>`}</p>
    ${paused && !row.proposed && html`<p><a class="button" id="review" href=${`#/diff/${paused.diff}`}>Review ${paused.name}</a></p>`}
    ${row.proposed && html`<p><a class="button main" id="review" href=${`#/diff/${row.proposedDiff}`}>Review ${row.proposed}</a></p>`}</div>`;
}

/** The screen of the Pod that holds an object back, if it is in this cluster. @param {Revision} revision @param {import("./api").ObjectFailure} one */
const podOf = (revision, one) => (one.cause?.object.kind === "Pod" && !revision.target ? podPlace(revision.name, /** @type {{ namespace: string, name: string }} */ (one.cause.object)) : "");

/** The phases of a revision with their progress. @param {{ revision: Revision }} props */
function Rollout({ revision }) {
  const title = `${revision.name}${revision.version ? ` · ${revision.version}` : ""}`;
  // Several finished phases share one line.
  const finished = revision.phases.filter((phase) => phase.state === "Available" && !phase.failing?.length), rest = revision.phases.filter((phase) => !finished.includes(phase));
  return html`<section class="rollout" aria-label=${`Rollout of ${revision.name}`}>
    <div class="head"><h2>${title}</h2><${State} signal=${revision.proposed ? "review" : revision.signal} word=${revision.proposed ? "To review" : revision.state}/>
      <a href=${`#/diff/${revision.diff}`}>what it changes</a> ${revision.lifecycle === "Active" && html`<a href=${`#/diff/${revision.name}..live`}>compare with the cluster</a>`}</div>
    <p class="quiet">${[revision.by && `by ${revision.by}`, revision.rollbackOf && `back to ${revision.rollbackOf}`, revision.cause, revision.reason].filter(Boolean).join(" · ")}</p>
    ${finished.length > 1 ? html`<details class="older"><summary><${State} signal="well" word="Available"/> ${count(finished.length, "phase")}, ${count(finished.reduce((sum, phase) => sum + phase.objects, 0), "object")}</summary><${Phases} revision=${revision} phases=${finished}/></details>${rest.length > 0 && html`<${Phases} revision=${revision} phases=${rest}/>`}`
      : html`<${Phases} revision=${revision} phases=${revision.phases}/>`}
  </section>`;
}

/** @param {{ revision: Revision, phases: import("./api").Phase[] }} props */
function Phases({ revision, phases }) {
  // A phase that waits for a user is not in progress.
  const stuck = (/** @type {import("./api").Phase} */ phase) => revision.signal === "needs" && phase.state === "Progressing" && !!phase.failing?.length;
  return html`<ol class="phases">${phases.map((phase) => html`<li key=${phase.name}>
      <span class="phase">${phase.name}</span>
      <span class="track"><span class="bar ${stuck(phase) ? "failing" : phase.state.toLowerCase()}" style=${{ width: `${done(phase)}%` }}></span></span>
      <span class="word"><${State} ...${stuck(phase) ? { signal: "needs" } : { signal: phaseSignal(phase.state), word: phase.state }}/> <span class="quiet number">${phase.state === "Available" ? count(phase.objects, "object") : `${phase.available} of ${phase.objects}`}${took(phase)}</span></span>
      ${phase.failing?.length ? html`<ul class="failing ${phase.state === "Failing" || stuck(phase) ? "" : "awaited"}">${phase.failing.map((one) => html`<li><a href=${objectPlace(revision.name, one)}><code>${one.kind} ${objectName(one)}</code></a> <${Because} one=${one} phase=${phase}/>${podOf(revision, one) && html` <a href=${podOf(revision, one)}>Log of ${soft(one.cause?.object.name)}</a>`}
        ${one.cause && !one.message.includes(one.cause.reason) && html` <span class="quiet">${one.cause.reason}${one.cause.container ? ` of container ${one.cause.container}` : ""} in ${one.cause.object.kind} ${one.cause.object.name}</span>`}</li>`)}
        ${phase.omitted ? html`<li class="quiet">and ${phase.omitted} more</li>` : null}</ul>` : null}
    </li>`)}</ol>`;
}

/** The cause comes first, as one sentence; its consequences are in small print.
 * @param {{ one: import("./api").ObjectFailure, phase: import("./api").Phase }} props */
function Because({ one, phase }) {
  const cause = one.cause ? one.message.lastIndexOf(`; ${one.cause.object.kind} ${objectName(one.cause.object)}: `) : -1;
  if (cause > 0) return html`${one.message.slice(cause + 2)} <span class="more">${one.message.slice(0, cause)}</span>`;
  const reason = reasonOf(one, phase);
  return html`${reason && html`<strong>${reason}</strong> `}${one.message}`;
}

/** The reason why an object holds its phase back; empty if the message begins with it.
 * @param {{ reason: string, message: string }} one @param {{ state: string }} phase */
function reasonOf(one, phase) {
  const reason = one.reason === "ProbeFailed" && phase.state === "Progressing" ? "waiting" : one.reason;
  return one.message.startsWith(reason) ? "" : reason;
}

/** @param {string} state */
const phaseSignal = (state) => ({ Available: "well", Progressing: "moving", Failing: "needs" })[state] ?? "stopped";

/** @param {import("./api").Phase} phase */
function took(phase) {
  if (!phase.started) return "";
  if (phase.done) {
    const ms = Date.parse(phase.done) - Date.parse(phase.started);
    return ms < 1000 ? ", at once" : `, after ${span(ms)}`;
  }
  return phase.state === "Progressing" || phase.state === "Failing" ? `, for ${span(now.value - Date.parse(phase.started))}` : "";
}

/** The progress of a phase in percent, for its bar. @param {import("./api").Phase} phase */
function done(phase) {
  if (phase.state === "Available" || phase.state === "Superseded") return 100;
  return phase.objects ? Math.round((100 * phase.available) / phase.objects) : 0;
}

/** Each object of a revision in its present state, read when the list is opened, and again after each change of the extension.
 * @param {{ revisions: Revision[], news: string }} props */
function Objects({ revisions, news }) {
  const name = useSignal(revisions[0]?.name ?? ""), opened = useSignal(false);
  const of = opened.value ? `/api/revisions/${name.value}` : "";
  const asked = useAsk(of && `${of}/objects`, (answer) => (answer.asked = new Date().toISOString()), news), pods = useAsk(of && `${of}/pods`, undefined, `${asked.round} ${news}`);
  const found = /** @type {import("./api").RevisionObjects | null} */ (asked.found.value), all = found?.objects ?? [], only = useSignal("");
  const revision = revisions.find((one) => one.name === name.value) ?? revisions[0];
  /** An object needs a user if it holds back a revision that needs a user. @param {import("./api").RevisionObjectStatus} one */
  const signalOf = (one) => (revision?.signal === "needs" && revision.phases.some((phase) => phase.failing?.some((other) => other.kind === one.kind && objectName(other) === objectName(one))) ? "needs" : objectState(one).signal);
  const list = useFilter(all, (one) => [one.kind, objectName(one), one.phase], (one) => !only.value || signalOf(one) === only.value);
  if (!revisions.length) return null;
  return html`<details class="all" onToggle=${() => (opened.value = true)}>
    <summary id="objects">All objects, as they are now</summary>
    <p class="standing">${revisions.length > 1 && html`<label>of <select value=${name.value} onChange=${into(name)}>
      ${revisions.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}</select></label>`}
      </p>
    <${Asked} of=${asked} doing="The objects cannot be shown"/>
    ${found?.withheld ? html`<p class="note review">${count(found.withheld, "object")} not shown: you cannot read them.</p>` : null}
    ${found && html`<${TreePicture} revision=${revision} objects=${all} pods=${pods.found.value} signalOf=${signalOf}/>`}
    ${all.length > 1 && html`<div class="head"><${Tally} rows=${all.map((one) => ({ signal: signalOf(one) }))} only=${only}/>${list.field("Filter objects", "Filter")}</div>`}
    ${all.length > 0 && html`<table class="rows" id="now"><thead><tr><th scope="col">Object</th><th scope="col" class="sign">State</th><th scope="col" class="wide ver">Phase</th><th scope="col" class="wide number age">Age</th></tr></thead>
      <tbody>${list.shown.map((one) => html`<tr key=${`${one.apiVersion} ${one.kind} ${one.namespace} ${one.name}`}><th scope="row"><span class="quiet">${soft(kindOf(one.apiVersion, one.kind))}</span> <a data-row href=${objectPlace(name.value, one)}>${soft(objectName(one))}</a>
        <span class="more">${objectState(one).said}</span><span class="thin">phase ${one.phase}</span>
        ${one.lastRepair && html`<span class="more">repaired <${Ago} at=${one.lastRepair.time} ago/>: ${one.lastRepair.message}</span>`}
        ${podsOf(pods.found.value, one).map((pod) => html`<span class="more" key=${pod.name}><${State} signal=${pod.signal} word=${pod.state}/> <a href=${podPlace(name.value, pod)}>${soft(pod.name)}</a> ${pod.said}, <${Ago} at=${pod.created}/></span>`)}</th>
        <td><${State} ...${objectState(one)} signal=${signalOf(one)}/></td><td class="wide">${one.phase}</td><td class="wide number">${one.createdAt && html`<${Ago} at=${one.createdAt}/>`}</td></tr>`)}</tbody></table>${list.rest}`}
    ${pods.found.value?.target && html`<p class="note review">The objects are in cluster ${pods.found.value.target}. Its Pods are not shown: you have no credentials there.</p>`}
    ${[pods.refused.value?.message, ...(pods.found.value?.refused ?? [])].filter(Boolean).map((said) => html`<p class="note review">Pods are not shown: ${said}</p>`)}
  </details>`;
}

/** Events about the extension, requested when the list is opened. @param {{ name: string }} props */
function Noted({ name }) {
  const opened = useSignal(false);
  const asked = useAsk(opened.value ? `/api/extensions/${name}/events` : ""), found = /** @type {import("./api").Events | null} */ (asked.found.value);
  return html`<details class="all" onToggle=${() => (opened.value = true)}>
    <summary id="noted">Events</summary>
    <${Asked} of=${asked} doing="The events cannot be shown"/>
    ${found?.refused?.map((said) => html`<p class="note review">Some are not shown: ${said}</p>`)}
    ${found && html`<${EventRows} events=${found.events}/>`}
  </details>`;
}

/** @type {Record<string, string>} */
const results = { Succeeded: "well", Progressing: "moving", Failing: "needs", Stalled: "needs", Incomplete: "stopped" };

/** Deleted revisions have no content. @param {Record_} row */
const isGone = (row) => row.state === "Deleted" || row.state === "Deleting";

/** @param {{ row: Record_, newest: Revision | undefined, rights: import("./shared.js").Rights, open: boolean, onOpen: () => void }} props */
function Past({ row, newest, rights, open, onOpen }) {
  const gone = isGone(row);
  let why = lacks(rights, "rollback");
  if (gone) why = "it is deleted: its content is gone";
  else if (row.name === newest?.name) why = "it is the newest";
  return html`<tr><th scope="row">${gone ? row.name : html`<a data-row href=${`#/diff/..${row.name}`}>${soft(row.name)}</a>`} ${row.version && html`<span class="quiet">${row.version}</span>`}
      <span class="more">${[row.rollbackOf && `back to ${row.rollbackOf}`, row.cause].filter(Boolean).join(": ")}</span>
      <span class="thin">${row.changes ? `+${row.changes.added} ~${row.changes.changed} −${row.changes.removed} · ` : ""}${soft(row.requestedBy)} · <${Ago} at=${row.createdAt} ago/></span></th>
    <td><${State} ...${row.name === newest?.name && newest.signal === "needs" ? { signal: "needs", word: newest.state } : { signal: results[row.result ?? ""] ?? "stopped", word: row.result || row.state }}/> ${row.state !== "Active" && row.result && html`<span class="quiet">${row.state}</span>`}</td>
    <td class="wide number">${row.changes ? `+${row.changes.added} ~${row.changes.changed} −${row.changes.removed}` : ""}</td>
    <td class="wide">${row.requestedBy}</td><td class="number"><${Ago} at=${row.createdAt ?? ""}/></td>
    <td class="acts"><${Button} id=${`back-${row.name}`} why=${why} onClick=${onOpen}>${open ? "Cancel" : html`Go back<span class="unseen"> to ${row.name}</span>`}<//></td></tr>`;
}

/** The changes of a rollback, and its button. The rollback is refused if another revision is the
 * newest by now. @param {{ target: string, newest: string, name: string, onEnd: (done: boolean) => void }} props */
function Rollback({ target, newest, name, onEnd }) {
  const would = useSignal(/** @type {import("./api").RevisionRollback | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  const { asking, busy, refused: failed, act } = useDeed();
  const cause = useSignal("");
  const ticked = useSignal(/** @type {Set<number>} */ (new Set()));
  const round = useSignal(0);
  // The dialog is below a table that may be long, so it gets the focus.
  const heading = useRef(/** @type {HTMLElement | null} */ (null));
  const lead = () => {
    heading.current?.focus({ preventScroll: true });
    heading.current?.scrollIntoView({ block: "start" });
  };
  useEffect(lead, [target]);
  useEffect(() => {
    would.value = null;
    refused.value = null;
    failed.value = null;
    asking.value = "";
    post(`/api/revisions/${target}/rollback`, { dryRun: true }).then((found) => (would.value = found), (failure) => (refused.value = failure));
  }, [target, round.value]);
  const from = would.value?.status?.from ?? "", diff = would.value?.status?.diff;
  const changed = from !== "" && from !== newest;
  useEffect(() => { if (changed) announce(`${newest} was created since: look again`); }, [changed]);
  const back = () => act(async () => {
    const done = await post(`/api/revisions/${target}/rollback`, { from, cause: cause.value });
    announce(`${done.status.revision} has the content of ${target}`);
    onEnd(true);
  });
  /** @param {import("./api").ObjectChange} change */
  const load = async (change) => diff?.changes?.find((one) => one.name === change.name && one.kind === change.kind && one.namespace === change.namespace);
  let why = "";
  if (refused.value) why = "the cluster refuses it";
  else if (!would.value) why = "computing its changes on the cluster";
  else if (changed) why = `${newest} was created since: look again`;
  return html`<section class="decision" aria-labelledby="preview"><h2 id="preview" tabindex="-1" ref=${heading}>Go back to ${target}</h2>
    <${Problem} refused=${refused.value} doing="You cannot go back to it"/>
    <${Problem} refused=${failed.value} doing="Nothing was rolled back"/>
    ${changed && html`<${Outdated} onLook=${() => round.value++}>${newest} was created since. The preview that you have read stays below.<//>`}
    ${!would.value && !refused.value && html`<p class="quiet">Computing its changes…</p>`}
    ${would.value && !diff && html`<p class="note review">Changes from ${from} to ${target} are not shown: you cannot read the diffs of both.</p>`}
    ${diff && html`<p class="sum">Makes <strong>${would.value?.status?.revision}</strong>, with the content of ${target}. Against ${from}: ${counts(diff.summary)}</p><${Notes} notes=${diff.notes}/>${missing(diff).map((said) => html`<p class="note review">${said}</p>`)}`}
    <label class="field">Why <input id="cause" maxlength="512" value=${cause.value} onInput=${into(cause)}/></label>
    <div class="actions"><${Button} id="rollback" kind="main" why=${why} busy=${busy.value} onClick=${() => { ticked.value = new Set(); asking.value = true; }}>Roll ${name} back to ${target}<//>
      <${Button} id="leave" onClick=${() => onEnd(false)}>Cancel<//></div>
    ${asking.value && html`<${Confirm} title=${`Roll ${name} back to ${target}?`} verb="Roll back" why=${why || unticked(diff, ticked.value)} busy=${busy.value} danger=${(diff?.summary.removed ?? 0) > 0} onYes=${back} onNo=${() => (asking.value = "")}>
      <p>In cluster <strong>${me.value?.cluster}</strong>, as ${would.value?.status?.revision}, in place of ${from}${diff && html`: ${counts(diff.summary)}`}.</p>
      ${diff && html`<${Risks} diff=${diff} ticked=${ticked}/>`}<//>`}
    ${diff && html`<${Checklist} diff=${diff} from=${from} to=${target} load=${load}/>`}
  </section>`;
}
