// Findings about an upgrade of the cluster, commands that help, and the order in which extensions are upgraded.
import { html, useEffect, useSignal } from "./lib.js";
import { Ago, Asked, State, count, inWords, objectName, objectPlace, soft } from "./parts.js";
import { isName, useAsk } from "./shared.js";

/** @typedef {import("./api").UpgradeReadiness} Answer */
/** @typedef {import("./api").UpgradeFinding} Finding */

/** The signal and the word of each verdict. @type {Record<string, { signal: string, word: string }>} */
const verdicts = { Blocked: { signal: "needs", word: "Blocked" }, Unknown: { signal: "review", word: "Unknown" }, NothingFound: { signal: "well", word: "Nothing found that blocks" } };

/** Severities, worst first: signal, heading, and meaning. @type {[string, string, string, string][]} */
const severities = [
  ["Blocks", "needs", "Blocks the upgrade", "Revisions that are rolled out now cannot be applied after the upgrade."],
  ["BreaksRollback", "review", "Breaks a rollback", "Only earlier revisions cannot be applied after the upgrade."],
  ["ActBefore", "review", "Act before the upgrade", "The upgrade itself is disturbed, such as the drain of a node."],
  ["Look", "stopped", "Look at it", "A person has to judge."],
];

/** Groups of the plan, in order. @type {[string, string, string][]} */
const groups = [
  ["Before", "Before the cluster", "The installed version blocks the upgrade."],
  ["Either", "Before or after the cluster", ""],
  ["After", "After the cluster", "The next version needs the upgraded cluster."],
  ["Deadlock", "No way out", "The installed version blocks the upgrade, and the next one needs the upgraded cluster."],
  ["", "No version in the catalogs fits", ""],
];

/** @param {{ query: string }} props */
export function ReadinessScreen({ query }) {
  const { version = "", extension = "", plan = "" } = Object.fromEntries(new URLSearchParams(query));
  const narrowed = (/** @type {Record<string, string>} */ more) => new URLSearchParams(Object.entries({ version, extension, plan, ...more }).filter(([, value]) => value));
  const asked = useAsk(`/api/readiness?${narrowed({})}`), found = /** @type {import("./api").Readiness | null} */ (asked.found.value);
  const answer = found?.answer, typed = useSignal(version);
  // Penstock may render packages before it answers.
  useEffect(() => {
    if (!answer?.pending) return;
    const next = setTimeout(asked.again, 1000);
    return () => clearTimeout(next);
  }, [answer]);
  const look = () => { location.hash = `#/ready?${narrowed({ version: typed.value.trim() })}`; };
  return html`${extension && html`<p class="crumbs"><a href="#/">Overview</a> · <a href=${`#/x/${extension}`}>${extension}</a> · <a href=${`#/ready?${narrowed({ extension: "" })}`}>all extensions</a></p>`}
    <h1 tabindex="-1">Upgrade readiness${extension && ` of ${extension}`}</h1>
    <p class="quiet">Findings about an upgrade of the cluster, from revisions, plans, kinds of charts, and the statements of packages.</p>
    <p class="standing"><label>Version of Kubernetes or OpenShift <input id="version" maxlength="7" size="8" placeholder="next minor" defaultValue=${version} onInput=${(/** @type {any} */ e) => (typed.value = e.currentTarget.value)} onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter") look(); }}/></label>
      <button type="button" id="show" onClick=${look}>Show</button></p>
    <${Asked} of=${asked} doing="The readiness cannot be shown"/>
    ${answer && html`<${Verdict} answer=${answer}/>
      ${severities.map(([severity, signal, title, meaning]) => html`<${Findings} key=${severity} of=${answer.findings?.filter((one) => one.severity === severity) ?? []} severity=${severity} signal=${signal} title=${title} meaning=${meaning}/>`)}
      ${answer.omitted ? html`<p class="quiet">${count(answer.omitted, "more finding")} left out.</p>` : null}
      <${Steps} answer=${answer} planned=${plan !== ""} show=${`#/ready?${narrowed({ plan: "yes" })}`}/>
      <${Extensions} answer=${answer}/>`}`;
}

/** @param {{ answer: Answer }} props */
function Verdict({ answer }) {
  return html`<p id="verdict"><${State} ...${verdicts[answer.verdict] ?? { signal: "review", word: answer.verdict }}/> ${answer.message.replace(/^nothing found that blocks(; )?/, "")}</p>
    <dl class="facts"><dt>Upgrade</dt><dd>${answer.current ? `Kubernetes ${answer.current} → ${answer.target}` : `Kubernetes ${answer.target}`}</dd>
      <dt>Removals</dt><dd>as the libraries of Kubernetes ${answer.lifecycle} state them</dd></dl>`;
}

/** The subject of a finding, as a link if it has a screen. @param {Finding} one */
function subject(one) {
  if (one.kind && one.revision && one.name && isName(one.revision)) {
    const of = { apiVersion: one.apiVersion ?? "", kind: one.kind, namespace: one.namespace, name: one.name };
    return html`<a href=${objectPlace(one.revision, of)}>${soft(objectName(of))}</a><span class="more">${one.kind} of ${soft(one.revision)}</span>`;
  }
  if (one.extension && isName(one.extension)) return html`<a href=${`#/x/${one.extension}`}>${soft(one.extension)}</a>`;
  if (one.plan && isName(one.plan)) return html`<span class="quiet">plan</span> <a href=${`#/plan/${one.plan}`}>${soft(one.plan)}</a>`;
  return html`${soft(one.chartKind ? `ChartKind ${one.chartKind}` : one.extension ?? one.plan)}`;
}

/** @param {{ of: Finding[], severity: string, signal: string, title: string, meaning: string }} props */
function Findings({ of, severity, signal, title, meaning }) {
  if (!of.length) return null;
  return html`<section aria-labelledby=${severity}><h2 id=${severity}>${title} <span class="quiet number">${of.length}</span></h2><p class="quiet">${meaning}</p>
    <table class="rows findings"><thead><tr><th scope="col" class="subject">Object</th><th scope="col">Finding</th></tr></thead>
    <tbody>${of.map((one, i) => html`<tr key=${i} class=${one.acknowledged ? "stopped" : signal}><th scope="row">${subject(one)}</th>
      <td>${one.evidence}${one.replacement && html`. Use <code>${one.replacement}</code>`} <span class="quiet">${{ Certain: "certain", Declared: "announced", Guess: "a guess" }[one.certainty] ?? one.certainty}</span>
        ${one.acknowledged && html`<span class="more"><strong>Acknowledged</strong> by ${one.acknowledged.by} <${Ago} at=${one.acknowledged.at} ago/>: ${one.acknowledged.reason}</span>`}
        ${one.fix && html`<span class="more"><code>${one.fix}</code></span>`}</td></tr>`)}</tbody></table></section>`;
}

/** @param {{ answer: Answer, planned: boolean, show: string }} props */
function Steps({ answer, planned, show }) {
  if (!planned) return html`<section aria-labelledby="order"><h2 id="order">Steps of the upgrade</h2><p><a id="steps" href=${show}>Show the steps</a> <span class="quiet">Penstock pulls and renders the packages of the next versions, which takes a while.</span></p></section>`;
  const steps = answer.steps ?? [];
  return html`<section aria-labelledby="order"><h2 id="order">Steps of the upgrade</h2>
    ${answer.pending ? html`<p class="quiet">${count(answer.pending, "package")} not rendered yet…</p>` : null}
    ${!steps.length && !answer.pending && html`<p>No extension has to be upgraded with the cluster.</p>`}
    <ol class="steps">${groups.map(([order, title, meaning]) => {
      const of = steps.filter((one) => (one.order ?? "") === order);
      return html`${order === "After" && html`<li key="cluster"><strong>The cluster</strong>, to Kubernetes ${answer.target}</li>`}
        ${of.length > 0 && html`<li key=${title}><strong>${title}</strong>${meaning && html` <span class="quiet">${meaning}</span>`}
          <ul>${of.map((one) => html`<li key=${one.extension}>${isName(one.extension) ? html`<a href=${`#/x/${one.extension}`}>${soft(one.extension)}</a>` : one.extension} ${one.version}${one.next && ` → ${one.next}`}
            ${one.passed && html`<span class="more">Not ${one.passed}</span>`}${one.command && order !== "Deadlock" && html`<span class="more"><code>${one.command}</code></span>`}</li>`)}</ul></li>`}`;
    })}</ol></section>`;
}

/** @param {{ answer: Answer }} props */
function Extensions({ answer }) {
  const all = answer.extensions ?? [];
  if (!all.length) return null;
  const signalOf = (/** @type {import("./api").ExtensionReadiness} */ one) => (one.notLooked ? "review" : severities.find(([severity]) => severity === one.severity)?.[1] ?? "well");
  return html`<section aria-labelledby="extensions-of"><h2 id="extensions-of">Extensions <span class="quiet number">${all.length}</span></h2>
    <table class="rows"><thead><tr><th scope="col">Extension</th><th scope="col" class="sign">Finding</th><th scope="col" class="wide ver">Supports</th><th scope="col" class="wide ver">Next version</th></tr></thead>
    <tbody>${all.map((one) => html`<tr key=${one.name} class=${signalOf(one)}><th scope="row">${isName(one.name) ? html`<a data-row href=${`#/x/${one.name}`}>${soft(one.name)}</a>` : one.name} <span class="quiet">${one.version}</span>
        ${one.notLooked && html`<span class="more">Not looked at: ${one.notLooked}</span>`}<span class="thin">${one.statement}${one.next && ` · next ${one.next}`}</span></th>
      <td><${State} signal=${signalOf(one)} word=${one.notLooked ? "Not looked at" : one.severity ? inWords(one.severity) : "None"}/></td>
      <td class="wide">${one.statement || html`<span class="quiet">no statement</span>`}</td>
      <td class="wide">${one.next || html`<span class="quiet">–</span>`}${one.order && html` <span class="quiet">${inWords(one.order).toLowerCase()} the cluster</span>`}</td></tr>`)}</tbody></table></section>`;
}
