// Profiles of plans: the state of each profile in the cluster, its missing requirements, and the effect
// of a plan; and a new plan, which waits for its approval.
import { html, useSignal } from "./lib.js";
import { post } from "./net.js";
import { Asked, Button, Problem, State, announce, kindOf, objectName, remark, soft } from "./parts.js";
import { into, isName, lacks, useAsk, useDeed } from "./shared.js";

/** @typedef {import("./api").Profile} Profile */

export function ProfilesScreen() {
  const asked = useAsk("/api/profiles", (found) => announce(`${found.profiles.length} profiles`)), rights = useAsk("/api/rights?button=createPlan");
  const all = /** @type {import("./api").Profiles | null} */ (asked.found.value);
  return html`<h1 tabindex="-1">Profiles</h1>
    <p class="quiet">A profile is something that a plan can configure. This page does not update by itself.</p>
    <${Asked} of=${asked} doing="Profiles cannot be shown"/>
    ${all && html`${all.hidden && html`<p class="note review" id="hidden">Whether your own profiles are valid is not known: ${all.hidden.message}</p>`}
      <ul class="profiles">${[...all.profiles].sort((a, b) => rank(a) - rank(b)).map((one) => html`<${OneProfile} key=${`${one.name} ${asked.round}`} profile=${one} rights=${rights}/>`)}</ul>
      ${!all.profiles.length && html`<p>There is no profile.</p>`}`}`;
}

/** Profiles in use come first, profiles that do not suit the cluster last. @param {Profile} of */
const rank = ({ status }) => (status.plan ? 0 : status.state !== "Inactive" ? 1 : status.prerequisites === "Met" ? 2 : 3);

/** @type {Record<string, string>} */
const met = { Met: "well", Missing: "needs", Unknown: "stopped" };

/** @param {{ profile: Profile, rights: import("./shared.js").Rights }} props */
function OneProfile({ profile, rights }) {
  const { status } = profile;
  const making = useSignal(false);
  const lacking = (status.requirements ?? []).filter((one) => one.state !== "Met");
  // The same sentence is not shown twice.
  const about = lacking.length || status.plan ? "" : remark(status.message);
  const told = new Set([about, ...lacking.map((one) => one.message)]);
  let why = lacks(rights, "createPlan");
  if (!why && status.prerequisites === "Missing") why = "the cluster lacks what it needs: a plan would do nothing";
  if (!why && status.plan) why = `plan ${status.plan} holds it: no other plan can be active`;
  return html`<li class="rollout" id=${`profile-${profile.name}`}>
    <div class="head"><h2>${profile.name}</h2><${State} signal=${profile.signal} word=${status.state}/>${profile.own && html` <span class="chip">of your own</span>`}
      ${status.plan && (isName(status.plan) ? html`<span>by plan <a data-row href=${`#/plan/${status.plan}`}>${status.plan}</a> <${State} signal=${profile.planSignal ?? "stopped"} word=${status.planPhase}/> ${profile.planImpact && html`<span class="quiet">impact ${profile.planImpact}</span>`}</span>` : html`<span>by plan ${status.plan}</span>`)}</div>
    <p>${profile.description}</p>
    ${about && html`<p class="quiet">${about}</p>`}
    ${profile.wrong && html`<p class="note needs">${profile.wrong}</p>`}
    <p><${State} signal=${met[status.prerequisites] ?? "stopped"} word=${status.prerequisites === "Met" ? "The cluster meets the requirements" : status.prerequisites === "Missing" ? "The cluster lacks something" : "What the cluster has could not be read"}/></p>
    ${lacking.length > 0 && html`<ul class="terms">${lacking.map((one) => html`<li key=${one.definition}><code>${one.definition}</code> <strong>${one.state}</strong>${one.optional ? ", optional" : ""}: ${one.message}</li>`)}</ul>`}
    ${(status.items?.length ?? 0) > 0 && html`<details><summary>Changes of a plan now <span class="quiet">${status.impactSeverity && !status.plan ? `impact ${status.impactSeverity}` : ""}</span></summary>
      <ul class="terms">${status.items?.map((item) => html`<li key=${item.name}><strong>${item.action || "?"}</strong> <span class="quiet">${soft(kindOf(item.targetRef.apiVersion, item.targetRef.kind))}</span> ${soft(objectName(item.targetRef))}
        <span class="more">${[item.impactSeverity, item.impactReason, ...(item.notes ?? []), told.has(remark(item.message)) ? "" : item.message].filter(Boolean).join(" · ")}</span></li>`)}</ul></details>`}
    <div class="actions"><${Button} id=${`make-${profile.name}`} why=${why} onClick=${() => (making.value = !making.value)}>${making.value ? "Cancel" : html`Make a plan<span class="unseen"> of ${profile.name}</span>`}<//></div>
    ${making.value && html`<${Making} profile=${profile}/>`}
  </li>`;
}

/** @param {{ profile: Profile }} props */
function Making({ profile }) {
  const id = profile.name;
  const name = useSignal(profile.own ? profile.name : profile.name.replace(/[A-Z]/g, (one, at) => (at ? "-" : "") + one.toLowerCase()));
  const given = useSignal(/** @type {Record<string, string>} */ ({}));
  const take = useSignal(false);
  const { busy, refused, act } = useDeed();
  const make = () => act(async () => {
    const options = Object.fromEntries(Object.entries(given.value).filter(([, value]) => value.trim() !== ""));
    const made = await post(`/api/profiles/${profile.name}/plan`, { name: name.value.trim(), options, take: take.value });
    location.hash = `#/plan/${made.name}`;
  });
  return html`<div class="would"><div class="form">
      <label class="field">Name of the plan<input id=${`name-${id}`} maxlength="253" autocomplete="off" value=${name.value} onInput=${into(name)}/></label>
      ${(profile.options ?? []).map((option) => html`<label class="field" key=${option.name}>${option.name}<input id=${`option-${id}-${option.name}`} autocomplete="off" placeholder=${option.default ?? ""} aria-describedby=${`about-${id}-${option.name}`}
        value=${given.value[option.name] ?? ""} onInput=${(/** @type {any} */ e) => (given.value = { ...given.value, [option.name]: e.currentTarget.value })}/>
        <span class="hint" id=${`about-${id}-${option.name}`}>${[option.type, option.allowed, option.default && `default ${option.default}`, option.description].filter(Boolean).join(" · ")}</span></label>`)}</div>
    <p><label><input type="checkbox" checked=${take.value} onChange=${() => (take.value = !take.value)}/> take fields of other field managers; the plan names them before it is approved</label></p>
    <${Problem} refused=${refused.value} doing="No plan was made"/>
    <p class="quiet">The plan is computed and waits. Nothing is configured before this plan is approved.</p>
    <div class="actions"><${Button} id=${`create-${id}`} kind="main" why=${name.value.trim() ? "" : "it needs a name"} busy=${busy.value} onClick=${make}>Make the plan<//></div></div>`;
}
