// The version range of a ClusterExtension, and its change, after a preview of the resolver's
// choice.
import { html, useEffect, useSignal } from "./lib.js";
import { post } from "./net.js";
import { Button, Confirm, Problem, announce, notChosen } from "./parts.js";
import { into, lacks, me, useAsk, useDeed } from "./shared.js";

/** @typedef {import("./api").Wanted} Wanted @typedef {import("./api").VersionChange} VersionChange */

/** @param {string | undefined} range */
const rangeOf = (range) => (range ? html`version <code>${range}</code>` : "any version");

/** @param {{ name: string, wanted: Wanted, onEnd: () => void }} props */
export function Version({ name, wanted, onEnd }) {
  const version = useSignal(wanted.version ?? "");
  const rights = useAsk(`/api/rights?button=patchExtension&name=${name}`);
  const would = useSignal(/** @type {{ asked: string, said: VersionChange } | null} */ (null));
  const { asking, busy, refused, act } = useDeed();
  useEffect(() => document.getElementById("version")?.focus(), [name]);
  // Another user may change the range meanwhile: then the user must look again.
  const body = { uid: wanted.uid, generation: wanted.generation, version: version.value.trim() };
  const key = JSON.stringify(body);
  const said = would.value?.said, leads = said?.would;
  const send = async (/** @type {boolean} */ dryRun) => {
    await act(async () => {
      const found = await post(`/api/extensions/${name}/version`, { ...body, dryRun, allowed: dryRun ? "" : leads?.allowed ?? "" });
      if (dryRun) {
        would.value = { asked: key, said: found };
      } else {
        announce(`${name} asks for another version`);
        onEnd();
      }
    });
    if (refused.value) would.value = null;
    if (dryRun) document.getElementById("leads")?.focus();
  };
  let missing = lacks(rights, "patchExtension");
  if (!missing && body.version === (wanted.version ?? "")) missing = "it asks for that already";
  let why = missing;
  if (!why && !would.value) why = "preview the result first";
  else if (!why && would.value?.asked !== key) why = "something has changed since: look again at the result";
  const manual = leads?.approval === "Manual";
  const then = manual ? "Penstock proposes a revision for it, which changes nothing until a person has read it and rolls it out." : "Penstock rolls it out in your name at once.";
  return html`<section class="decision" aria-labelledby="version-of"><h2 id="version-of">Ask for another version</h2>
    <label class="field">Version <input id="version" maxlength="64" autocomplete="off" spellcheck=${false} aria-describedby="version-hint" value=${version.value} onInput=${into(version)}/>
      <span class="hint" id="version-hint">${"A version, or a range such as >=1.4 <2. Empty: any version."}</span></label>
    <${Problem} refused=${refused.value} doing="The extension cannot ask for that"/>
    <div class="actions"><${Button} id="lead" why=${missing} busy=${busy.value && !asking.value} onClick=${() => send(true)}>Show the result<//>
      <${Button} id="ask-version" kind="main" why=${why} busy=${busy.value} onClick=${() => (asking.value = true)}>Ask for this version<//>
      <${Button} id="leave-version" onClick=${onEnd}>Cancel<//></div>
    ${said && html`<div class="would"><h3 id="leads" tabindex="-1">Result</h3>
      <${Problem} refused=${said.hidden} doing="Which version it leads to is not shown"/>
      ${leads && (leads.allowed
        ? html`<p>${leads.allowed === leads.installed ? html`<strong>${leads.allowed}</strong>, which is installed: nothing changes now.` : html`<strong>${leads.installed ? `${leads.installed} → ` : ""}${leads.allowed}</strong>, from channel ${leads.channel} of catalog ${leads.catalog}. ${then}`}</p>`
        : html`<p class="note review">No version can be installed: ${leads.message}</p>`)}
      ${(leads?.blocked ?? []).map((not) => html`<p class="quiet" key=${not.version}>${notChosen(not, body.version)}</p>`)}
      ${(said.warnings ?? []).map((note) => html`<p class="note review" key=${note}>${note}</p>`)}</div>`}
    ${asking.value && said && html`<${Confirm} title=${`Have ${name} ask for ${body.version || "any version"}?`} verb="Ask for this version" why=${why} busy=${busy.value} onYes=${() => send(false)} onNo=${() => (asking.value = "")}>
      <p>In cluster <strong>${me.value?.cluster}</strong>: ${rangeOf(said.was)} → ${rangeOf(said.version)}.</p>
      <p>${leads?.allowed ? html`It leads to <strong>${leads.allowed}</strong>. ${leads.allowed === leads.installed ? "" : then}` : "It leads to no version now."}</p><//>`}
  </section>`;
}
