// Parts that several screens use.
import { html, signal, useEffect, useRef, useSignal } from "./lib.js";

/** The time, for elements that show how long ago an event was. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 10000);

/** The glyph and the word of each signal; the colour adds no information.
 * @type {Record<string, [string, string]>} */
const signals = { well: ["✓", "Healthy"], moving: ["◐", "In progress"], needs: ["✗", "Stuck"], stopped: ["‖", "Stopped"], review: ["◆", "To review"] };

/** @param {string} name */
export const glyphOf = (name) => signals[name]?.[0] ?? "·";

/** @param {string} name */
export const wordOf = (name) => signals[name]?.[1] ?? name;

/** The name of a reason or a state in words: "RollingOut" is "Rolling out". Other words stay.
 * @param {string | undefined} name */
export const inWords = (name) => (name ?? "").replace("ReviewRequired", "To review").replace(/\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b/g, (one) => one[0] + one.slice(1).replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));

/** A state: a word, or the name of a reason, which is shown in words. @param {{ signal: string, word?: string }} props */
export function State({ signal, word }) {
  return html`<span class="state ${signal}"><span class="glyph" aria-hidden="true">${glyphOf(signal)}</span> ${inWords(word) || wordOf(signal)}</span>`;
}

/** @param {number} ms */
export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 2 * 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** The time since an event. @param {{ at?: string, ago?: boolean }} props */
export function Ago({ at, ago }) {
  if (!at) return html`<span class="quiet">–</span>`;
  const past = now.value - Date.parse(at);
  // A recent time may be later than the last reading of the clock.
  const text = past < -15000 ? `in ${span(-past)}` : !ago ? span(past) : past < 5000 ? "just now" : `${span(past)} ago`;
  return html`<time datetime=${at} title=${at.replace("T", " ")}>${text}</time>`;
}

/** The time of a request without a stream, and a button that repeats it. @param {{ at?: string, onAsk: () => void }} props */
export function ReadAt({ at, onAsk }) {
  return html`<p class="standing quiet"><span>Read <${Ago} at=${at} ago/></span> <button type="button" id="ask" onClick=${onAsk}>Refresh</button></p>`;
}

/** The state of a screen's request, until it has an answer. @param {{ of: import("./shared.js").Asked<any>, doing: string }} props */
export function Asked({ of: { found, refused, again }, doing }) {
  return html`<${Problem} refused=${refused.value} doing=${doing}/>
    ${!found.value && !refused.value && html`<p class="quiet" id="loading">Asking the cluster…</p>`}
    ${found.value?.asked && html`<${ReadAt} at=${found.value.asked} onAsk=${again}/>`}`;
}

/** A note that the page shows an old state. @param {{ children?: any, onLook: () => void }} props */
export function Outdated({ children, onLook }) {
  return html`<div class="note review" role="alert" id="changed"><p><strong>◆ This is not up to date.</strong> ${children}</p><button type="button" id="look" onClick=${onLook}>Look again</button></div>`;
}

/** @param {{ children?: any, text: string, label?: string }} props */
export function Manifest({ text, label = "Lines of the manifest" }) {
  return html`<pre class="unified manifest" tabindex="0" role="region" aria-label=${label}><code>${text}</code></pre>`;
}

/** Signals in the order of their urgency. @type {Record<string, number>} */
export const urgency = { needs: 0, review: 1, moving: 2, stopped: 3, well: 4 };

/** The number of rows of each signal; its button shows only these. @param {{ rows: { signal: string }[], only: { value: string } }} props */
export function Tally({ rows, only }) {
  /** @type {Record<string, number>} */
  const n = {};
  for (const row of rows) n[row.signal] = (n[row.signal] ?? 0) + 1;
  return html`<div class="tally" role="group" aria-label="Show only">
    <button type="button" aria-pressed=${!only.value} onClick=${() => (only.value = "")}>All <span class="number">${rows.length}</span></button>
    ${Object.keys(urgency).filter((key) => n[key]).map((key) => html`<button type="button" key=${key} aria-pressed=${only.value === key} onClick=${() => (only.value = only.value === key ? "" : key)}>
      <${State} signal=${key} word=${wordOf(key)}/> <span class="number">${n[key]}</span></button>`)}</div>`;
}

const page = 200;

/** The rows that match a filter, a page at a time. @template R @param {R[]} rows @param {(row: R) => unknown[]} words @param {(row: R) => boolean} [also] */
export function useFilter(rows, words, also) {
  const filter = useSignal(""), most = useSignal(page), needle = filter.value.trim().toLowerCase();
  const found = rows.filter((row) => (!also || also(row)) && (!needle || words(row).filter(Boolean).join(" ").toLowerCase().includes(needle))), left = found.length - most.value;
  return {
    shown: found.slice(0, most.value),
    field: (/** @type {string} */ label, /** @type {string} */ hint) => html`<label class="filter"><span class="unseen">${label}</span><input data-filter type="search" placeholder=${hint} value=${filter.value} onInput=${(/** @type {any} */ e) => { filter.value = e.currentTarget.value; most.value = page; }}/></label>`,
    rest: html`${!found.length && html`<p class="quiet">None of ${rows.length} matches.</p>`}${left > 0 && html`<p><button type="button" id="more" onClick=${() => (most.value += page)}>Show ${Math.min(page, left)} more of ${left}</button></p>`}`,
  };
}

/** A name that wraps only at dots, dashes and slashes. @param {string | undefined} name */
export const soft = (name) => (name ?? "").split(/(?<=[-./])/).flatMap((part, i) => (i ? [html`<wbr/>`, part] : [part]));

/** @param {number} n @param {string} noun */
export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Announces a text to screen readers, at most once in five seconds. */
let spoken = 0, waiting = "";
/** @param {string} text */
export function announce(text) {
  const place = document.getElementById("said");
  if (!place) return;
  const due = spoken + 5000 - Date.now();
  if (due > 0) {
    if (!waiting) setTimeout(() => { const next = waiting; waiting = ""; announce(next); }, due);
    waiting = text;
    return;
  }
  spoken = Date.now();
  place.textContent = text;
}

/** A refusal with the server's message. @param {{ refused?: import("./net.js").Refused | null, doing?: string }} props */
export function Problem({ refused, doing }) {
  if (!refused) return null;
  return html`<div class="note needs" role="alert"><p><strong>✗ ${doing ?? "It was refused"}.</strong> ${refused.message}</p></div>`;
}

/**
 * A button that shows why it is disabled, and keeps its place.
 * @param {{ children?: any, why?: string, kind?: string, busy?: boolean, onClick: () => void, id: string }} props
 */
export function Button({ children, why, kind, busy, onClick, id }) {
  const reason = busy ? "it is being done" : why;
  return html`<span class="act">
    <button type="button" id=${id} class=${kind ?? ""} aria-disabled=${reason ? "true" : "false"} aria-describedby=${reason ? `${id}-why` : undefined}
      onClick=${() => { if (!reason) onClick(); }}>${children}</button>
    ${reason && html`<span class="why" id=${`${id}-why`}>${reason}</span>`}
  </span>`;
}

/**
 * A question before a change of the cluster: it repeats the change and the cluster.
 * @param {{ title: string, children?: any, verb: string, why?: string, busy?: boolean, danger?: boolean, onYes: () => void, onNo: () => void }} props
 */
export function Confirm({ title, children, verb, why, busy, danger, onYes, onNo }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const dialog = box.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return html`<dialog ref=${box} aria-labelledby="question" onCancel=${(/** @type {Event} */ e) => { e.preventDefault(); onNo(); }}>
    <h2 id="question">${title}</h2>
    ${children}
    <div class="actions">
      <${Button} id="yes" kind=${danger ? "main danger" : "main"} why=${why} busy=${busy} onClick=${onYes}>${verb}<//>
      <${Button} id="no" onClick=${onNo}>Cancel<//>
    </div>
  </dialog>`;
}

/** @param {{ namespace?: string, name?: string }} of */
export const objectName = (of) => (of.namespace ? `${of.namespace}/${of.name}` : `${of.name}`);

/** @param {string} apiVersion @param {string} kind */
export const kindOf = (apiVersion, kind) => (apiVersion.includes("/") ? `${kind}.${apiVersion.split("/")[0]}` : kind);

/** A message without commands for approvals and decisions, which have buttons. @param {string | undefined} message */
export const remark = (message) => (message ?? "").replace(/[;:,.]?\s*review status\.items[\s\S]*$/, "").replace(/: kubectl penstock fleet .*?(?= \(|;|$)/g, "");

/** The screen of an object of a revision: an address in this console, for any names. @param {string} revision @param {{ apiVersion: string, kind: string, namespace?: string, name: string }} of */
export const objectPlace = (revision, of) => `#/object/${[revision, kindOf(of.apiVersion, of.kind), ...(of.namespace ? [of.namespace] : []), of.name].map(encodeURIComponent).join("/")}`;

/** The state of an object, and a sentence about it. @param {import("./api").RevisionObjectStatus} one */
export function objectState(one) {
  if (one.reason === "Paused") return { signal: "review", word: "Differs", said: "It differs from the manifest, and is not repaired while the revision is paused." };
  return { signal: objectStates[one.state] ?? "stopped", word: one.state, said: [one.reason !== one.state && inWords(one.reason), one.message, one.detail].filter(Boolean).join(" · ") };
}

/** @type {Record<string, string>} */
export const objectStates = { Available: "well", Pending: "stopped", Superseded: "stopped", Gone: "stopped", Unready: "moving", Leaving: "moving", Failing: "needs", Unknown: "needs" };

/** @type {Record<string, [string, string]>} */
const severities = { Critical: ["✗", "needs"], Warning: ["!", "review"], Info: ["·", "stopped"] };

/** @param {string} text */
const arrows = (text) => text.replaceAll(" -> ", " → ");

/** Notes in words, most severe first. @param {{ notes?: import("./api").DiffNote[] | null }} props */
export function Notes({ notes }) {
  if (!notes?.length) return null;
  return html`<ul class="notes" aria-label="Notes">
    ${notes.map((note) => html`<li class=${severities[note.severity]?.[1] ?? ""}>
      <span class="severity"><span aria-hidden="true">${severities[note.severity]?.[0]}</span> ${note.severity}</span>
      <span>${arrows(note.message)}${note.kind && html` <code class="quiet">${note.group ? `${note.kind}.${note.group}` : note.kind} ${objectName(note)}</code>`}</span>
    </li>`)}
  </ul>`;
}

/** The reason why a version is not chosen. @param {import("./api").BlockedVersion} not @param {string} [range] */
export const notChosen = (not, range) => `${not.version} is not chosen: it ${not.cause === "Range" && range ? `is outside ${range}` : not.message}`;

/** @param {import("./api").DiffSummary} summary */
export const counts = (summary) => `${summary.added} added, ${summary.changed} changed, ${summary.removed} deleted, ${summary.unchanged} unchanged`;

/** The change of an object, in a word. @param {string} change */
const become = (change) => (change === "Removed" ? "Deleted" : change);

/** @param {import("./api").RevisionDiff} diff @returns {string[]} */
export function missing(diff) {
  const said = [];
  if (diff.summary.withheld) said.push(`${count(diff.summary.withheld, "object")} not shown: you cannot read them.`);
  const cut = diff.truncated;
  if (cut) {
    const parts = [[cut.objects, "object"], [cut.fields, "field"], [cut.values, "value"], [cut.lines, "line"], [cut.notes, "note"]];
    const left = parts.filter(([n]) => n).map(([n, noun]) => count(Number(n), String(noun)));
    if (left.length) said.push(`${left.join(", ")} left out here: the diff is too large. Open an object to see all of its changes: it cannot be ticked before.`);
  }
  return said;
}

/** The lines of a unified diff. In a replaced line, the differences are marked. @param {{ text: string }} props */
export function Unified({ text }) {
  const rows = text.replace(/\n$/, "").split("\n");
  const out = [];
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i];
    if (row.startsWith("---") || row.startsWith("+++")) continue;
    if (row.startsWith("@@")) {
      out.push(html`<span class="hunk">${row}${"\n"}</span>`);
      continue;
    }
    if (!row.startsWith("-")) {
      out.push(line(row));
      continue;
    }
    let gone = i, come;
    while (gone < rows.length && rows[gone].startsWith("-")) gone++;
    for (come = gone; come < rows.length && rows[come].startsWith("+"); ) come++;
    const pairs = gone - i === come - gone;
    for (let k = i; k < gone; k++) out.push(line(rows[k], pairs ? rows[k + gone - i] : undefined));
    for (let k = gone; k < come; k++) out.push(line(rows[k], pairs ? rows[k - (gone - i)] : undefined));
    i = come - 1;
  }
  return html`<pre class="unified" tabindex="0" role="region" aria-label="Changed lines"><code>${out}</code></pre>`;
}

/** @param {string} row @param {string} [other] */
function line(row, other) {
  const kind = row.startsWith("+") ? "add" : row.startsWith("-") ? "del" : "same";
  if (other === undefined) return html`<span class=${kind}>${row}${"\n"}</span>`;
  let from = 1, back = 0;
  while (from < row.length && from < other.length && row[from] === other[from]) from++;
  while (back < row.length - from && back < other.length - from && row[row.length - 1 - back] === other[other.length - 1 - back]) back++;
  const end = row.length - back;
  return html`<span class=${kind}>${row.slice(0, from)}${end > from && html`<mark>${row.slice(from, end)}</mark>`}${row.slice(end)}${"\n"}</span>`;
}

/** @param {unknown} value */
const shown = (value) => (value === undefined || value === null ? "" : plain(typeof value === "string" ? value : JSON.stringify(value)));

/** A text with escapes for letters of another script within a Latin word, because they look like Latin letters. @param {string} text */
const plain = (text) => text.replace(/[\p{L}\p{M}\p{N}]+/gu, (word) => (/\p{Script=Latin}/u.test(word)
  ? word.replace(/[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/gu, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`) : word));

/** Whether a part of an object's change is hidden, so that the user has not seen it. @param {import("./api").ObjectChange | string | undefined} change */
const isCut = (change) => typeof change === "string" || !!change && (!!change.truncated || !!change.notCompared);

/** The changed fields of one object. @param {{ change: import("./api").ObjectChange }} props */
export function Fields({ change }) {
  if (!change.fields?.length) return html`<p class="quiet">${change.change === "Changed" ? "No field is shown." : `The whole object is ${become(change.change).toLowerCase()}.`}</p>`;
  return html`<table class="fields"><thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr></thead><tbody>
    ${change.fields.map((field) => html`<tr><td><code>${field.path}</code></td>
      <td>${field.redacted ? "hidden" : html`<del>${shown(field.old)}</del>`}</td>
      <td>${field.redacted ? "hidden" : html`<ins>${shown(field.new)}</ins>`}${field.truncatedBytes ? ` ${field.truncatedBytes} bytes left out` : ""}</td></tr>`)}
  </tbody></table>`;
}

const slot = "penstock.seen", mostMarks = 4000;
const marks = signal(/** @type {Set<string>} */ (new Set(JSON.parse(sessionStorage.getItem(slot) ?? "[]"))));
const known = new WeakMap();

/** The mark of an object that the user has seen: the comparison, and a hash of the object's change.
 * @param {import("./api").RevisionDiff} diff @param {import("./api").ObjectChange} change @returns {string} */
function markOf(diff, change) {
  let mark = known.get(change);
  if (!mark) {
    let hash = 0;
    for (const one of JSON.stringify({ ...change, unified: "" })) hash = (Math.imul(hash, 31) + one.charCodeAt(0)) | 0;
    known.set(change, (mark = `${diff.from}..${diff.to} ${change.kind} ${objectName(change)} ${hash}`));
  }
  return mark;
}

/** @param {import("./api").RevisionDiff} diff @param {import("./api").ObjectChange[]} changes @param {boolean} is */
function see(diff, changes, is) {
  const all = new Set(marks.value);
  for (const mark of changes.map((change) => markOf(diff, change))) is ? all.add(mark) : all.delete(mark);
  marks.value = all;
  sessionStorage.setItem(slot, JSON.stringify([...marks.value].slice(-mostMarks)));
}

/** @param {import("./api").RevisionDiff} diff */
const seenOf = (diff) => (diff.changes ?? []).filter((change) => marks.value.has(markOf(diff, change))).length;

/** The objects that change only version labels, by these labels: two or more objects share a row.
 * @param {import("./api").ObjectChange[]} changes @returns {Map<string, number[]>} */
function foldsOf(changes) {
  /** @type {Map<string, number[]>} */
  const folds = new Map();
  changes.forEach((change, i) => { if (change.onlyLabels && !isCut(change)) folds.set(change.onlyLabels, [...(folds.get(change.onlyLabels) ?? []), i]); });
  for (const [labels, of] of folds) if (of.length < 2) folds.delete(labels);
  return folds;
}

const mostNamed = 10;

/** The risks that a question repeats: all notes above Info, deleted objects, and the number of objects
 * that the user has not seen. The user ticks each critical note.
 * @param {{ diff: import("./api").RevisionDiff, ticked: { value: Set<number> } }} props */
export function Risks({ diff, ticked }) {
  const notes = (diff.notes ?? []).filter((note) => note.severity !== "Info");
  const gone = (diff.changes ?? []).filter((change) => change.change === "Removed").slice(0, mostNamed), { removed } = diff.summary;
  const all = (diff.changes?.length ?? 0) + (diff.truncated?.objects ?? 0), left = all - seenOf(diff);
  return html`${criticalOf(diff).map((note, i) => html`<p class="tickline" key=${i}><label><input type="checkbox" checked=${ticked.value.has(i)} onChange=${(/** @type {any} */ e) => {
      const now = new Set(ticked.value);
      if (e.currentTarget.checked) now.add(i); else now.delete(i);
      ticked.value = now;
    }}/> <span class="needs">I have read: <strong class="severity">✗ Critical</strong> ${note.kind} ${objectName(note)} ${arrows(note.message)}</span></label></p>`)}
    <${Notes} notes=${notes.filter((note) => note.severity !== "Critical")}/>
    ${diff.truncated?.notes ? html`<p class="note review">${count(diff.truncated.notes, "note")} left out: read the objects.</p>` : null}
    ${removed > 0 && html`<p class="needs"><strong>${count(removed, "object")} deleted:</strong></p><ul class="terms" id="deleted">${gone.map((one) => html`<li key=${markOf(diff, one)}>− <code>${one.kind} ${objectName(one)}</code></li>`)}
      ${removed > gone.length && html`<li>and ${removed - gone.length} more</li>`}</ul>`}
    ${left > 0 && html`<p class="note review">! ${left} of ${count(all, "object")} not looked at.</p>`}`;
}

/** @param {import("./api").RevisionDiff | null | undefined} diff */
const criticalOf = (diff) => (diff?.notes ?? []).filter((note) => note.severity === "Critical");

/** The reason why a question cannot be answered yet. @param {import("./api").RevisionDiff | null | undefined} diff @param {Set<number>} ticked */
export function unticked(diff, ticked) {
  const left = criticalOf(diff).length - ticked.size;
  return left < 1 ? "" : `tick the ${ticked.size ? "next " : ""}critical change first${left > 1 ? `: ${left} left` : ""}`;
}

/** The changed objects as a folded checklist; lines are loaded when an object is opened. An object's
 * screen is in the revision to, or in from if it is deleted; without these it has none. of names one of several lists.
 * @param {{ diff: import("./api").RevisionDiff, from?: string, to?: string, of?: string, load: (change: import("./api").ObjectChange) => Promise<import("./api").ObjectChange | undefined> }} props */
export function Checklist({ diff, from = "", to = "", of = "", load }) {
  const lines = useSignal(/** @type {Record<number, import("./api").ObjectChange | string>} */ ({}));
  const unified = useSignal(true);
  const changes = diff.changes ?? [];
  /** @param {number} i */
  const open = async (i) => {
    if (lines.value[i]) return void see(diff, [changes[i]], !isCut(lines.value[i]));
    try {
      const found = changes[i].unified && !isCut(changes[i]) ? changes[i] : await load(changes[i]);
      lines.value = { ...lines.value, [i]: found ?? "It does not change any more." };
      see(diff, [changes[i]], !isCut(found));
    } catch (failure) {
      lines.value = { ...lines.value, [i]: String(/** @type {Error} */ (failure).message) };
    }
  };
  if (!changes.length) return html`<p class="quiet">No object changes.</p>`;
  const folds = foldsOf(changes);
  /** @param {number} i */
  const row = (i) => {
    const change = changes[i], kind = change.change.toLowerCase(), loaded = lines.value[i], seen = marks.value.has(markOf(diff, change)), cut = isCut(loaded ?? change);
    return html`<li key=${i}><input type="checkbox" checked=${seen} disabled=${cut} aria-label=${`${cut ? "Not all is shown of" : "Looked at"} ${change.kind} ${objectName(change)}`} onChange=${() => see(diff, [change], !seen)}/><details onToggle=${(/** @type {Event} */ e) => { if (/** @type {HTMLDetailsElement} */ (e.currentTarget).open) open(i); }}>
        <summary><span class="change ${kind}">${{ added: "+", removed: "−", changed: "~" }[kind]} ${become(change.change)}</span>
          <span class="object"><span class="quiet">${soft(kindOf(change.apiVersion, change.kind))}</span> ${soft(objectName(change))}</span>
          <span class="quiet number lines"><span>+${change.linesAdded ?? 0}</span> <span>−${change.linesRemoved ?? 0}</span></span></summary>
        ${typeof loaded === "object" && loaded.truncated && html`<p class="note review">! Not all that changes is shown: it is too much to be read here.</p>`}
        ${loaded && to && html`<p class="whole"><a href=${objectPlace(kind === "removed" ? from : to, change)}>the whole object<span class="unseen"> ${change.kind} ${objectName(change)}</span></a></p>`}
        ${!loaded ? html`<p class="quiet">…</p>` : typeof loaded === "string" ? html`<p class="note review">${loaded}</p>`
          : loaded.notCompared ? html`<p class="note review">${loaded.notCompared}</p>`
          : unified.value ? html`<${Unified} text=${loaded.unified ?? ""}/>` : html`<${Fields} change=${loaded}/>`}
      </details></li>`;
  };
  /** A row for many objects, which it shows when it is opened. Only its tick marks them as seen. @param {string} labels @param {number[]} of */
  const folded = (labels, of) => {
    const all = of.map((i) => changes[i]), seen = all.every((change) => marks.value.has(markOf(diff, change))), said = `${count(of.length, "object")} change only ${labels}`;
    return html`<li key=${labels}><input type="checkbox" checked=${seen} aria-label=${`Looked at: ${said}`} onChange=${() => see(diff, all, !seen)}/><details>
        <summary><span class="change changed">~ Changed</span> <span class="object">${said}</span></summary>
        <ul class="objects">${of.map(row)}</ul></details></li>`;
  };
  return html`<section aria-label=${of ? `Objects of ${of}` : "Objects"}>
    <div class="head"><h2>Objects <span class="quiet number">seen ${seenOf(diff)} of ${changes.length}</span></h2>
      <fieldset class="choice"><legend class="unseen">Show changes as</legend>
        <label><input type="radio" name=${`as${of}`} checked=${unified.value} onChange=${() => (unified.value = true)}/> lines</label>
        <label><input type="radio" name=${`as${of}`} checked=${!unified.value} onChange=${() => (unified.value = false)}/> fields</label>
      </fieldset></div>
    <ul class="objects">${changes.map((change, i) => {
      const of = folds.get(change.onlyLabels ?? "");
      return of?.includes(i) ? i === of[0] && folded(change.onlyLabels ?? "", of) : row(i);
    })}</ul></section>`;
}
