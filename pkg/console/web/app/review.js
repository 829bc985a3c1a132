// The review of the changes between two revisions, or between the cluster and a revision; and resuming a
// reviewed revision.
import { html, useEffect, useSignal } from "./lib.js";
import { Refused, get, post, watch } from "./net.js";
import { Button, Checklist, Confirm, Notes, Outdated, Problem, ReadAt, Risks, State, announce, count, counts, kindOf, missing, unticked } from "./parts.js";
import { extensionOf, frozen, into, lacks, me, useAsk, useDeed } from "./shared.js";

/** @typedef {import("./api").Revision} Revision @typedef {import("./api").RevisionDiff} RevisionDiff */

/** The inputs of a decision: when they change, the user must look again.
 * @param {Revision | undefined} revision @param {import("./api").Extension | null | undefined} extension */
const basis = (revision, extension) => (revision && extension ? `${revision.uid} ${revision.generation} ${revision.diff} ${extension.revisions[0].name}` : "");

/** @param {{ name: string }} props */
export function Review({ name }) {
  const [from, to] = name.split("..");
  // In a comparison with the cluster, the revision is on the left.
  const subject = to === "live" ? from : to;
  const asked = useAsk(`/api/diffs/${name}?unified=false`), answer = /** @type {{ value: import("./api").Diff | null }} */ (asked.found);
  const extension = useSignal(/** @type {import("./api").Extension | null | undefined} */ (undefined));
  const read = useSignal("");

  useEffect(() => watch(`/api/watch/extensions/${extensionOf(subject)}`, (message) => {
    if (message.kind !== "extension") return;
    extension.value = message.extension ?? null;
    frozen.value = message.extension?.row.frozen ?? "";
    const now = basis(message.extension?.revisions.find((one) => one.name === subject), message.extension);
    if (!read.value) read.value = now;
    else if (read.value !== now) announce(`${subject} has changed since you began to read`);
  }), [subject]);

  /** @param {import("./api").ObjectChange} change */
  const load = async (change) => {
    const narrowed = new URLSearchParams({ objectKind: kindOf(change.apiVersion, change.kind), objectNamespace: change.namespace ?? "", objectName: change.name });
    if (!change.namespace) narrowed.delete("objectNamespace");
    const found = /** @type {import("./api").Diff} */ (await get(`/api/diffs/${name}?${narrowed}`));
    return found.diff?.changes?.find((one) => one.name === change.name && (one.namespace ?? "") === (change.namespace ?? "")) ?? undefined;
  };

  const revision = extension.value?.revisions.find((one) => one.name === subject);
  const changed = read.value !== "" && read.value !== basis(revision, extension.value);
  const ask = () => { answer.value = null; asked.again(); };
  const again = () => { read.value = basis(revision, extension.value); ask(); };
  const diff = answer.value?.diff;
  return html`<p class="crumbs"><a href="#/">Overview</a> · <a href=${`#/x/${extensionOf(subject)}`}>${extensionOf(subject)}</a></p>
    <h1 tabindex="-1">${to === "live" ? html`${subject} and the cluster` : html`What ${subject} changes`}</h1>
    ${extension.value && html`<${Sides} name=${name} extension=${extension.value}/>`}
    ${changed && html`<${Outdated} onLook=${again}>${revision ? `${subject} or what is rolled out has changed since you began to read.` : `${subject} is gone.`} What you have read stays below.<//>`}
    <${Problem} refused=${asked.refused.value} doing="The changes cannot be shown"/>
    ${!answer.value && !asked.refused.value && html`<p class="quiet">Comparing…</p>`}
    ${diff && html`
      <p class="sum"><span class="number">${diff.from || "nothing"} → ${diff.to}</span>: ${counts(diff.summary)}</p>
      ${to === "live" && html`<${ReadAt} at=${answer.value?.asked} onAsk=${ask}/>`}
      <${Notes} notes=${diff.notes}/>
      ${missing(diff).map((said) => html`<p class="note review">${said}</p>`)}
      ${revision && to !== "live" && html`<${Decision} revision=${revision} extension=${extension.value} diff=${diff} name=${name} changed=${changed}/>`}
      <${Checklist} key=${asked.round} diff=${diff} from=${diff.from && diff.from !== "live" ? diff.from : subject} to=${subject} load=${load}/>`}`;
}

/** The choice of the compared revisions. @param {{ name: string, extension: import("./api").Extension }} props */
function Sides({ name, extension }) {
  const [from, to] = name.split("..");
  const names = extension.revisions.map((one) => one.name);
  /** @param {string} a @param {string} b */
  const go = (a, b) => (location.hash = `#/diff/${a}..${b}`);
  return html`<div class="sides"><label>From <select id="from" value=${from} onChange=${(/** @type {any} */ e) => go(e.currentTarget.value, to)}>
      <option value="">the one before</option>${names.map((one) => html`<option key=${one} value=${one} selected=${one === from}>${one}</option>`)}</select></label>
    <label>to <select id="to" value=${to} onChange=${(/** @type {any} */ e) => go(e.currentTarget.value === "live" ? from || to : from, e.currentTarget.value)}>
      ${names.map((one) => html`<option key=${one} value=${one} selected=${one === to}>${one}</option>`)}<option value="live" selected=${to === "live"}>live: the cluster as it is</option></select></label></div>`;
}

/** @param {{ revision: Revision, extension: import("./api").Extension | null | undefined, diff: RevisionDiff, name: string, changed: boolean }} props */
function Decision({ revision, extension, diff, name, changed }) {
  const rights = useAsk(`/api/rights?button=patchRevision&name=${revision.name}`);
  const { asking, busy, refused, act } = useDeed();
  const window_ = useAsk(revision.proposed ? `/api/extensions/${extension?.name}/window` : "").found.value;
  const would = useSignal(/** @type {Refused | null | undefined} */ (undefined));
  const paused = revision.lifecycle === "Paused", active = revision.lifecycle === "Active";
  const newest = extension?.revisions[0].name === revision.name;
  const body = { uid: revision.uid, generation: revision.generation, state: "Active", removedDigest: diff.summary.removedDigest ?? "", approvalDigest: diff.summary.approvalDigest ?? "" };

  useEffect(() => {
    // A dry run shows beforehand what the cluster would refuse.
    would.value = undefined;
    if (paused && !me.value?.readOnly) post(`/api/revisions/${revision.name}/state`, { ...body, dryRun: true }).then(() => (would.value = null), (failure) => (would.value = failure));
  }, [revision.uid, revision.generation, diff.summary.approvalDigest]);

  /** @param {string} state @param {object} more @param {string} done */
  const set = (state, more, done) => act(async () => {
    await post(`/api/revisions/${revision.name}/state`, { ...body, state, ...more });
    announce(`${revision.name} is ${done}.`);
    location.hash = `#/x/${extension?.name}`;
  });
  let why = lacks(rights, "patchRevision");
  if (!why && changed) why = "it has changed since you began to read: look again";
  if (paused) {
    if (!why && name !== revision.diff) why = `this is not what a rollout would change: see ${revision.diff.replace(/^\.\./, "its own diff ")}`;
    if (!why && would.value === undefined) why = "asking the cluster whether you may";
    if (!why && would.value) why = would.value.message;
  }
  if (!paused && !active) return html`<p class="quiet">${revision.name} is ${revision.lifecycle}: nothing can be done with it.</p>`;
  return html`<section class="decision" aria-label="Decision">
    <p class="standing"><${State} signal=${revision.proposed ? "review" : revision.signal} word=${revision.proposed ? "To review" : revision.state}/> <span>${revision.state === "WaitingForWindow" ? revision.message : revision.reason}</span>
      ${revision.by && html`<span class="quiet">by ${revision.by}</span>`} ${revision.cause && html`<q>${revision.cause}</q>`}</p>
    <${Problem} refused=${refused.value} doing="Nothing was changed"/>
    <div class="actions">${paused
      ? html`<${Button} id="activate" kind="main" why=${why} busy=${busy.value} onClick=${() => (asking.value = "Active")}>Roll out ${revision.name}<//>
        ${window_?.opens && html`<${Button} id="later" why=${why} busy=${busy.value} onClick=${() => (asking.value = "Later")}>Approve for the window<//>`}`
      : html`<${Button} id="pause" why=${why || (newest ? "" : "only the newest revision can be paused here")} busy=${busy.value} onClick=${() => (asking.value = "Paused")}>Pause ${revision.name}<//>`}</div>
    ${asking.value === "Active" && html`<${Rollout} revision=${revision} diff=${diff} why=${changed ? why : ""} busy=${busy.value} onYes=${() => set("Active", {}, "rolled out now")} onNo=${() => (asking.value = "")}/>`}
    ${asking.value === "Later" && html`<${Rollout} revision=${revision} diff=${diff} later=${window_} why=${changed ? why : ""} busy=${busy.value} onYes=${() => set("Paused", { notBefore: window_.opens }, "approved for the window")} onNo=${() => (asking.value = "")}/>`}
    ${asking.value === "Paused" && html`<${Pausing} revision=${revision} busy=${busy.value} onYes=${(/** @type {string} */ why) => set("Paused", { why, removedDigest: "", approvalDigest: "" }, "paused")} onNo=${() => (asking.value = "")}/>`}
  </section>`;
}

/** @param {{ revision: Revision, diff: RevisionDiff, later?: import("./api").UpgradeWindow, why: string, busy: boolean, onYes: () => void, onNo: () => void }} props */
function Rollout({ revision, diff, later, why, busy, onYes, onNo }) {
  const ticked = useSignal(/** @type {Set<number>} */ (new Set()));
  const { added, changed, removed } = diff.summary;
  return html`<${Confirm} title=${later ? `Approve ${revision.name} for the window?` : `Roll out ${revision.name}?`} verb=${later ? "Approve" : "Roll out"} danger=${removed > 0} busy=${busy}
    why=${why || unticked(diff, ticked.value)} onYes=${onYes} onNo=${onNo}>
    ${later && html`<p>Now, ${later.said}. It begins when upgrades may begin, not before ${later.opens}. Until then <code>kubectl annotate cer ${revision.name} penstock.dev/approve-not-before-</code> withdraws the approval.</p>`}
    <p>In cluster <strong>${me.value?.cluster}</strong>: ${count(added, "object")} added, ${changed} changed, ${removed || "none"} deleted.</p>
    <${Risks} diff=${diff} ticked=${ticked}/>
  <//>`;
}

/** @param {{ revision: Revision, busy: boolean, onYes: (why: string) => void, onNo: () => void }} props */
function Pausing({ revision, busy, onYes, onNo }) {
  const why = useSignal("");
  return html`<${Confirm} title=${`Pause ${revision.name}?`} verb="Pause" busy=${busy} onYes=${() => onYes(why.value)} onNo=${onNo}>
    <p>In cluster <strong>${me.value?.cluster}</strong> nothing more is written for it: no rollout, no repair. Its objects stay.</p>
    <label class="field">Why <input id="why" maxlength="512" value=${why.value} onInput=${into(why)}/></label>
  <//>`;
}
