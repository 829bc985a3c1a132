// Who one is here, and what one may do.
import { html, useEffect, useSignal } from "./lib.js";
import { Refused, get, still } from "./net.js";
import { Problem, State } from "./parts.js";
import { me } from "./shared.js";

/** What each right is for. @type {[string, string][]} */
const uses = [
  ["listRevisions", "see extensions and follow them"], ["readDiffs", "read what a revision changes"], ["compare", "compare two revisions, or one with the cluster"],
  ["readObjects", "see how each object is"], ["readHistory", "read the history"], ["patchRevision", "roll out, pause"], ["rollback", "go back"],
  ["listPlans", "see plans and follow them"], ["readPlanDiffs", "read what a plan would change now"], ["approvePlan", "approve plans"], ["patchPlan", "stop plans"], ["computePlan", "have plans computed anew"], ["undoPlan", "undo runs of plans"],
  ["readManifests", "read the manifest of an object"], ["listProfiles", "see what can be configured"], ["createPlan", "have plans made"],
  ["listPackages", "see what catalogs offer"], ["readGraphs", "see the upgrades of a package"], ["install", "install packages"], ["createRevision", "have revisions made of what you install"], ["patchExtension", "have an extension ask for another version"],
];

export function MeScreen() {
  const rights = useSignal(/** @type {import("./shared.js").Rights | null} */ (null));
  const refused = useSignal(/** @type {Refused | null} */ (null));
  useEffect(() => {
    still();
    get(`/api/rights?${uses.map(([button]) => `button=${button}`).join("&")}`).then((found) => (rights.value = found), (failure) => (refused.value = failure));
    get("/api/me").then((found) => (me.value = found), () => {});
  }, []);
  const who = me.value;
  return html`<main class="page" id="content">
    <h1 tabindex="-1">You</h1>
    ${who && html`<dl class="facts"><dt>User</dt><dd>${who.username}</dd><dt>Groups</dt><dd>${(who.groups ?? []).join(", ") || "none"}</dd><dt>Cluster</dt><dd>${who.cluster}</dd>
      <dt>Console</dt><dd>${who.version}${who.readOnly ? ", read-only" : ""}</dd><dt>Penstock</dt><dd>${who.server || "has not said its version yet"}</dd></dl>`}
    <section aria-labelledby="rights"><h2 id="rights">What you may do</h2>
      <p class="quiet">As far as roles say it. What a rollout does in the cluster has rights of its own, which Penstock asks for when you do it.</p>
      <${Problem} refused=${refused.value} doing="Your rights could not be found out"/>
      ${!rights.value && !refused.value && html`<p class="quiet">Asking the cluster…</p>`}
      ${rights.value && html`<table class="rows" id="may"><thead><tr><th scope="col">To</th><th scope="col" class="sign">You</th></tr></thead>
        <tbody>${uses.map(([button, use]) => html`<tr key=${button}><th scope="row">${use}<span class="more">${rights.value?.[button]?.missing ?? ""}</span></th><td><${State} signal=${rights.value?.[button]?.allowed ? "well" : "stopped"} word=${rights.value?.[button]?.allowed ? "may" : "may not"}/></td></tr>`)}</tbody></table>`}
    </section>
  </main>`;
}
