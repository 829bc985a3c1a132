// The user and the user's rights.
import { html, useEffect } from "./lib.js";
import { get } from "./net.js";
import { Asked, State, count } from "./parts.js";
import { me, useAsk } from "./shared.js";

/** The use of each right. @type {[string, string][]} */
const uses = [
  ["listRevisions", "see extensions and follow them"], ["readDiffs", "read what a revision changes"], ["compare", "compare two revisions, or one with the cluster"],
  ["readObjects", "see how each object is"], ["readHistory", "read the history"], ["patchRevision", "roll out, pause"], ["rollback", "go back"],
  ["listPlans", "see plans and follow them"], ["readPlanDiffs", "read what a plan would change now"], ["approvePlan", "approve plans"], ["patchPlan", "stop plans"], ["computePlan", "recompute plans"], ["undoPlan", "undo runs of plans"],
  ["readManifests", "read the manifest of an object"], ["listProfiles", "see what can be configured"], ["createPlan", "have plans made"],
  ["listPackages", "see what catalogs offer"], ["readGraphs", "see the upgrades of a package"], ["install", "install packages"], ["createRevision", "have revisions made of what you install"], ["patchExtension", "have an extension ask for another version"],
  ["listSets", "see sets of clusters"], ["listRollouts", "see rollouts to many clusters"], ["approveRollout", "approve rollouts to many clusters"], ["haltRollout", "halt them"], ["resumeRollout", "resume them"], ["retryRollout", "retry their clusters"], ["skipRollout", "skip their clusters"],
  ["readReadiness", "see what an upgrade of the cluster breaks"],
];

export function MeScreen() {
  const asked = useAsk(`/api/rights?${uses.map(([button]) => `button=${button}`).join("&")}`), rights = asked.found;
  useEffect(() => { get("/api/me").then((found) => (me.value = found), () => {}); }, []);
  const who = me.value, may = (/** @type {[string, string]} */ [button]) => Number(!!rights.value?.[button]?.allowed);
  // Missing rights come first.
  const sorted = [...uses].sort((a, b) => may(a) - may(b)), lacking = uses.filter((one) => !may(one)).length;
  return html`<h1 tabindex="-1">You</h1>
    ${who && html`<dl class="facts"><dt>User</dt><dd>${who.username}</dd><dt>Groups</dt><dd>${(who.groups ?? []).join(", ") || "none"}</dd><dt>Cluster</dt><dd>${who.cluster}</dd>
      <dt>Console</dt><dd>${who.version}${who.readOnly ? ", read-only" : ""}</dd><dt>Penstock</dt><dd>${who.server || "version not known yet"}</dd></dl>`}
    <section aria-labelledby="rights"><h2 id="rights">Your rights</h2>
      <p class="quiet">This is what your roles allow. A rollout also needs the rights on the objects that it writes: Penstock checks those when you start one.</p>
      <${Asked} of=${asked} doing="Your rights could not be found out"/>
      ${rights.value && html`<p id="missing"><strong>${lacking ? `Missing: ${lacking} of ${count(uses.length, "action")}.` : "Nothing is missing."}</strong></p><table class="rows" id="may"><thead><tr><th scope="col">Action</th><th scope="col" class="sign">Allowed</th></tr></thead>
        <tbody>${sorted.map(([button, use]) => html`<tr key=${button}><th scope="row">${use}<span class="more">${rights.value?.[button]?.missing ?? ""}</span></th><td><${State} signal=${rights.value?.[button]?.allowed ? "well" : "stopped"} word=${rights.value?.[button]?.allowed ? "yes" : "no"}/></td></tr>`)}</tbody></table>`}
    </section>`;
}
