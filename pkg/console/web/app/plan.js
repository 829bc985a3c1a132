// One plan: first its disturbance and the fields that it takes over, then its changes, its approval, and its run.
import { html, useEffect, useSignal } from "./lib.js";
import { Refused, link, post, watch } from "./net.js";
import { Ago, Button, Confirm, Outdated, Problem, State, Unified, announce, count, inWords, objectName, remark, soft } from "./parts.js";
import { frozen, into, lacks, me, useAsk, useDeed } from "./shared.js";

/** @typedef {import("./api").Plan} Plan @typedef {import("./api").PlanItem} Item */

const buttons = ["approvePlan", "computePlan", "undoPlan", "patchPlan"];

/** @param {{ name: string }} props */
export function PlanScreen({ name }) {
  const plan = useSignal(/** @type {Plan | null | undefined} */ (undefined));
  const rights = useAsk(`/api/rights?name=${name}&${buttons.map((one) => `button=${one}`).join("&")}`);
  const read = useSignal("");
  const diff = useSignal(/** @type {import("./api").PlanDiff | null} */ (null));
  useEffect(() => watch(`/api/watch/plans/${name}`, (message) => {
    if (message.kind !== "plan") return;
    const before = plan.value?.status.phase;
    plan.value = message.plan ?? null;
    frozen.value = message.plan?.frozen ?? "";
    if (!read.value) read.value = message.plan?.status.planHash ?? "";
    if (before && before !== message.plan?.status.phase) announce(`${name}: ${inWords(message.plan?.status.phase)}`);
  }), [name]);
  const phase = plan.value?.status.phase ?? "", hash = plan.value?.status.planHash ?? "";
  const now = useAsk(read.value && phase !== "InProgress" ? `/api/plans/${name}/diff` : "", (found) => { if (found.planHash === read.value) diff.value = found; }, `${read.value} ${phase}`);
  const history = useAsk(`/api/plans/${name}/history`, undefined, phase);

  const changed = read.value !== "" && hash !== read.value && phase === "ReviewRequired";
  const look = () => { read.value = hash; diff.value = null; };
  if (plan.value === undefined) return html`<h1 tabindex="-1">Plan ${name}</h1>${link.value.state === "connecting" && html`<p class="quiet">Asking the cluster…</p>`}`;
  if (plan.value === null) return html`<h1 tabindex="-1">Plan ${name}</h1><p>There is no plan of this name.</p>`;
  const { status, spec, row, advice } = plan.value;
  return html`<p class="crumbs"><a href="#/">Overview</a></p>
    <h1 tabindex="-1">Plan ${name}</h1>
    <div class="headline"><p><${State} signal=${row.signal} word=${row.state}/> <span><span class="quiet">profile</span> <strong>${spec.profile}</strong></span> ${status.draftedAt && html`<span class="quiet">computed <${Ago} at=${status.draftedAt} ago/></span>`}</p>
      ${remark(status.message) && html`<p>${remark(status.message)}</p>`}${advice.do && row.signal === "needs" && html`<p class="do"><span class="quiet">To do:</span> ${advice.do}.</p>`}</div>
    ${changed && html`<${Outdated} onLook=${look}>The plan was recomputed since you began to read; its hash is different now.<//>`}
    <${Impact} plan=${plan.value}/>
    <${Terms} plan=${plan.value}/>
    <${Problem} refused=${now.refused.value} doing="The changes that the plan would make now are not shown, only those of the time when it was computed"/>
    <section aria-labelledby="items"><h2 id="items">Items <span class="quiet number">${row.done} of ${row.items} done</span></h2><ol class="items">
      ${(status.items ?? []).map((item) => html`<${PlanItem} key=${item.name} plan=${name} item=${item} diff=${diff.value?.items.find((one) => one.name === item.name)}/>`)}</ol></section>
    <${Approval} plan=${plan.value} rights=${rights} changed=${changed} hash=${read.value || hash}/>
    <${Runs} plan=${plan.value} history=${history.found.value} rights=${rights}/>`;
}

/** @type {Record<string, string>} */
const impacts = { None: "well", Low: "well", Medium: "review", High: "needs" };

/** The disturbance of a plan, which comes first. @param {{ plan: Plan }} props */
function Impact({ plan }) {
  const items = plan.status.items ?? [];
  const reached = items.filter((item) => item.blastRadius?.nodes);
  const takes = items.flatMap((item) => item.takes ?? []);
  return html`<section aria-labelledby="impact" class="impact"><h2 id="impact">Impact <${State} signal=${impacts[plan.status.impactSeverity ?? ""] ?? "stopped"} word=${plan.status.impactSeverity || "unknown"}/></h2>
    <ul>${items.filter((item) => item.impactReason).map((item) => html`<li key=${item.name}><strong>${item.impactSeverity}</strong> ${item.name}: ${item.impactReason}</li>`)}
      ${reached.map((item) => html`<li key=${`reach ${item.name}`}>${item.name} reaches ${radius(item)}</li>`)}
      ${takes.map((take) => html`<li class="takes">◆ takes over <code>${take.fields.join(", ")}</code> from <strong>${take.manager}</strong>${take.reclaimed ? ", who changed what this plan had set" : ""}</li>`)}
      ${!takes.length && html`<li class="quiet">It takes over no field of another field manager.</li>`}</ul></section>`;
}

/** @param {Item} item */
function radius(item) {
  const of = item.blastRadius;
  if (!of) return "";
  return `${count(of.nodes ?? 0, "node")}${of.reboot ? ", which reboot" : ""}${of.waves ? `, in ${count(of.waves, "wave")}` : ""}${of.pools?.length ? `, of ${of.pools.join(", ")}` : ""}`;
}

/** When the plan may begin, and who approves it. @param {{ plan: Plan }} props */
function Terms({ plan }) {
  const { spec, status } = plan;
  const lines = [], approved = plan.given >= plan.wanted;
  if (spec.window) lines.push(html`It begins only in its window: ${spec.window.schedule} in ${spec.window.timeZone}, for ${spec.window.duration}${status.window && html`; next <${Ago} at=${status.window.opensAt}/> (${status.window.local})`}.`);
  if (spec.expires) lines.push(html`It begins only before ${spec.expires.replace("T", " ")}.`);
  if ((spec.approvals ?? 0) > 1 && !approved) lines.push(html`Needs approval by ${spec.approvals} people; ${status.requestedBy?.length ? `${status.requestedBy.join(", ")} made or changed it and` : "the user who made it"} cannot approve it.`);
  if (spec.requires?.length) lines.push(html`It begins when a plan of ${spec.requires.join(", ")} is completed.`);
  return lines.length ? html`<ul class="terms">${lines.map((line) => html`<li>${line}</li>`)}</ul>` : null;
}

/** When the plan would start if a user approved it now, by the conditions of Terms. @param {Plan} plan */
function starts({ spec, status, wanted, given, frozen: freeze }) {
  const more = wanted - given - 1, waits = [];
  if (more > 0) waits.push(`after ${count(more, "more approval")}`);
  if (freeze) waits.push("when the freeze ends");
  if (spec.requires?.length) waits.push(`when a plan of ${spec.requires.join(", ")} is completed`);
  if (spec.window && !(status.window && Date.parse(status.window.opensAt) <= Date.now())) waits.push(`when its window opens${status.window ? `: ${status.window.local}` : ""}`);
  return { now: !waits.length, said: waits.length ? `Starts ${waits.join(", and ")}.` : "Starts now." };
}

/** @param {{ hash: string }} props */
const Hash = ({ hash }) => hash && html`<p class="hash"><span class="quiet">Plan hash (what you approve)</span> <code>${hash}</code></p>`;

/** @param {{ plan: Plan, rights: import("./shared.js").Rights, changed: boolean, hash: string }} props */
function Approval({ plan, rights, changed, hash }) {
  const comment = useSignal("");
  const { asking, busy, refused, act } = useDeed();
  const would = useSignal(/** @type {Refused | null | undefined} */ (undefined));
  const { status } = plan, waits = status.phase === "ReviewRequired";
  const approval = status.approval?.planHash === status.planHash && status.planHash ? status.approval : undefined;
  useEffect(() => {
    would.value = undefined;
    if (waits && hash && !me.value?.readOnly) post(`/api/plans/${plan.name}/approve`, { planHash: hash, dryRun: true }).then(() => (would.value = null), (failure) => (would.value = failure));
  }, [hash, waits, plan.given]);
  /** @param {string} what @param {object} body */
  const ask = (what, body) => act(async () => {
    await post(`/api/plans/${plan.name}/${what}`, body);
    announce(`${plan.name}: done`);
  });
  let why = lacks(rights, "approvePlan");
  const phase = (inWords(status.phase) || "Pending").toLowerCase();
  if (!waits) why = `it is ${phase}: nothing waits for an approval`;
  else if (!why && changed) why = "it was recomputed since you began to read: look again";
  else if (!why && would.value === undefined) why = "asking the cluster whether you may";
  else if (!why && would.value) why = would.value.message;
  const start = starts(plan);
  const runs = status.phase === "InProgress" || status.phase === "Scheduled";
  const anew = ["Failed", "Expired", "Drifted", "CompletedWithErrors", "PrerequisiteFailed", "Completed", "ReviewRequired"].includes(status.phase ?? "");
  return html`<section class="decision" aria-labelledby="approval"><h2 id="approval">Approval ${plan.wanted > 1 && html`<span class="quiet number">${plan.given} of ${plan.wanted}</span>`}</h2>
    ${approval && html`<ul class="people">${[approval, ...(approval.others ?? [])].map((one) => html`<li>✓ <strong>${one.username}</strong> <span class="quiet"><${Ago} at=${one.time} ago/></span> ${one.comment && html`<q>${one.comment}</q>`}</li>`)}</ul>`}
    <${Problem} refused=${refused.value} doing="Nothing was done"/>
    ${waits && html`<label class="field">Comment <input id="comment" maxlength="512" value=${comment.value} onInput=${into(comment)}/></label>`}
    <div class="actions"><${Button} id="approve" kind="main" why=${why} busy=${busy.value} onClick=${() => (asking.value = "approve")}>Approve<//>
      <${Button} id="stop" why=${lacks(rights, "patchPlan") || (runs ? "" : "nothing is running")} busy=${busy.value} onClick=${() => (asking.value = "stop")}>Stop<//>
      <${Button} id="compute" why=${lacks(rights, "computePlan") || (anew ? "" : `it is ${phase}`)} busy=${busy.value} onClick=${() => ask("compute", {})}>Recompute<//></div>
    <${Hash} hash=${hash}/>
    ${asking.value === "approve" && html`<${Confirm} title=${`Approve plan ${plan.name}?`} verb=${start.now ? "Approve and run" : "Approve"} why=${changed ? why : ""} busy=${busy.value} danger=${status.impactSeverity === "High"}
      onYes=${() => ask("approve", { planHash: hash, comment: comment.value })} onNo=${() => (asking.value = "")}>
      <p>In cluster <strong>${me.value?.cluster}</strong>, impact <strong>${status.impactSeverity}</strong>:</p>
      <ul class="terms" id="does">${(status.items ?? []).map((item) => html`<li key=${item.name}><strong>${item.action === "None" ? "Leave as it is:" : item.action}</strong> ${item.targetRef.kind} ${soft(objectName(item.targetRef))}
        ${item.impactReason && html`<span class="more">${item.impactSeverity}: ${item.impactReason}</span>`}${item.blastRadius?.nodes ? html`<span class="more">reaches ${radius(item)}</span>` : null}
        ${(item.takes ?? []).map((take) => html`<span class="more takes">◆ takes over ${take.fields.join(", ")} from ${take.manager}</span>`)}${(item.notes ?? []).map((note) => html`<span class="more">${note}</span>`)}</li>`)}</ul>
      <p><strong>${start.said}</strong></p><${Hash} hash=${hash}/><//>`}
    ${asking.value === "stop" && html`<${Confirm} title=${`Stop plan ${plan.name}?`} verb="Stop" busy=${busy.value} onYes=${() => ask("stop", { uid: plan.uid })} onNo=${() => (asking.value = "")}>
      <p>In cluster <strong>${me.value?.cluster}</strong>: the run ends between two items. Changes that were made stay; the rest is recomputed and waits for an approval.</p><//>`}
  </section>`;
}

/** @type {Record<string, string>} */
const states = { Completed: "well", Skipped: "well", InProgress: "moving", Failed: "needs" };

/** @param {{ plan: string, item: Item, diff: import("./api").PlanDiffItem | undefined }} props */
function PlanItem({ plan, item, diff }) {
  const target = item.targetRef, lines = diff?.diff || item.diff, kept = !diff?.diff && item.diff?.includes("***");
  const worked = ["InProgress", "Completed", "Skipped"].includes(item.state ?? "");
  return html`<li><div class="head"><h3>${item.name}</h3><${State} signal=${states[item.state ?? ""] ?? "stopped"} word=${item.state || "Pending"}/>
      <span class="quiet">${item.action} ${target.kind}</span> <a href=${`#/plan/${plan}/${encodeURIComponent(item.name)}`}>${soft(objectName(target))}</a></div>
    ${item.message && html`<p>${item.message}</p>`}
    ${(item.notes ?? []).map((note) => html`<p class="quiet">${note}</p>`)}
    ${diff?.stale && !worked && html`<p class="note needs">The target has changed since the plan was computed.</p>`}
    ${diff?.message && html`<p class=${worked ? "quiet" : ""}>${diff.message}</p>`}
    ${lines && html`<details open><summary>${worked && item.applied ? "Changed" : "Changes"}</summary>
      ${kept && html`<p class="quiet">*** is a value that was replaced. It is not shown to everybody who may read plans; it is kept sealed for an undo.</p>`}<${Unified} text=${lines}/></details>`}</li>`;
}

/** @param {{ plan: Plan, history: import("./api").PlanHistory | null, rights: import("./shared.js").Rights }} props */
function Runs({ plan, history, rights }) {
  const { asking, busy, refused, act } = useDeed();
  const runs = (history?.runs ?? []).filter((run) => run.plan === plan.uid);
  if (!runs.length) return null;
  return html`<section aria-labelledby="runs"><h2 id="runs">Runs</h2><${Problem} refused=${refused.value}/>
    <table class="rows"><thead><tr><th scope="col">Run</th><th scope="col" class="sign">Outcome</th><th scope="col" class="wide ver">Approved by</th><th scope="col" class="number few">Began</th><th scope="col" class="acts"><span class="unseen">Actions</span></th></tr></thead>
    <tbody>${runs.map((run) => html`<tr key=${run.run}><th scope="row">${run.run}${run.restoreRun ? html` <span class="quiet">undo of run ${run.restoreRun}</span>` : ""}${run.approval.comment && html`<span class="more">${run.approval.comment}</span>`}<span class="thin">by ${run.approval.username}</span></th>
      <td>${run.outcome || "in progress"}</td><td class="wide">${[run.approval, ...(run.approval.others ?? [])].map((one) => one.username).join(", ")}</td><td class="number"><${Ago} at=${run.startedAt} ago/></td>
      <td class="acts"><${Button} id=${`undo-${run.run}`} why=${lacks(rights, "undoPlan") || (run.endedAt ? "" : "it is in progress")} busy=${busy.value} onClick=${() => (asking.value = run.run)}>Undo<span class="unseen"> run ${run.run}</span><//></td></tr>`)}</tbody></table>
    ${asking.value && html`<${Confirm} title=${`Undo run ${asking.value} of ${plan.name}?`} verb="Compute the undo" busy=${busy.value} onYes=${() => act(() => post(`/api/plans/${plan.name}/undo`, { run: asking.value }))} onNo=${() => (asking.value = "")}>
      <p>In cluster <strong>${me.value?.cluster}</strong> Penstock computes a plan that restores the state before the run. Nothing is written until it is approved.</p><//>`}</section>`;
}
