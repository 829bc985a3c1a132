// The frame around all screens: whose cluster this is, where one is, and what is wrong with the
// connection.
import { computed, effect, html, render, signal, useEffect } from "./lib.js";
import { Refused, get, link, takeKey } from "./net.js";
import { Ago, announce } from "./parts.js";
import { Overview } from "./overview.js";
import { Review } from "./review.js";
import { ExtensionScreen } from "./extension.js";
import { PlanScreen } from "./plan.js";
import { MeScreen } from "./me.js";
import { frozen, me } from "./shared.js";

const name = "[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?";
/** Screens by the fragment of the address. Nothing else is a place here. @type {[RegExp, (name: string) => any, (name: string) => string][]} */
const screens = [
  [/^#?\/?$/, () => html`<${Overview}/>`, () => "Overview"],
  [/^#\/me$/, () => html`<${MeScreen}/>`, () => "You"],
  [new RegExp(`^#/x/(${name})$`), (of) => html`<${ExtensionScreen} key=${of} name=${of}/>`, (of) => of],
  [new RegExp(`^#/diff/((?:${name})?\\.\\.${name})$`), (of) => html`<${Review} key=${of} name=${of}/>`, (of) => `Review ${of}`],
  [new RegExp(`^#/plan/(${name})$`), (of) => html`<${PlanScreen} key=${of} name=${of}/>`, (of) => `Plan ${of}`],
];

const keyed = takeKey();
const place = signal(location.hash);
const refused = signal(/** @type {Refused | null} */ (null));
addEventListener("hashchange", () => {
  if (/^#key=/.test(location.hash)) {
    takeKey();
    location.reload();
    return;
  }
  place.value = location.hash;
});

const screen = computed(() => {
  for (const [pattern, show, title] of screens) {
    const found = pattern.exec(place.value);
    if (found) return { show: show(found[1]), title: title(found[1]) };
  }
  return { show: html`<main class="page"><h1 tabindex="-1">There is nothing here</h1><p><a href="#/">The overview</a> has all there is.</p></main>`, title: "Nothing here" };
});

async function who() {
  try {
    me.value = await get("/api/me");
    refused.value = null;
  } catch (failure) {
    refused.value = /** @type {Refused} */ (failure);
  }
}

/** @param {string} text */
const sentence = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);

function Connection() {
  const { state, message, since } = link.value;
  if (state === "live" || (state === "connecting" && !message)) return null;
  const age = html`What is shown is from <${Ago} at=${new Date(since).toISOString()} ago/>.`;
  /** @type {Record<string, any>} */
  const said = {
    troubled: html`<strong>The cluster does not answer.</strong> ${sentence(message)} ${age} It is tried again.`,
    lost: html`<strong>The connection is lost.</strong> ${sentence(message)} ${age} It is tried again.`,
    refused: html`<strong>You may not see this.</strong> ${message}`,
    signedOut: html`<strong>You are signed out.</strong> ${message} <button type="button" id="again" onClick=${() => location.reload()}>Sign in again</button>`,
  };
  return html`<div class="banner ${state === "refused" ? "review" : "needs"}" role="alert">${said[state]}</div>`;
}

function Frame() {
  const { show, title } = screen.value;
  useEffect(() => {
    document.title = `${title} · Penstock`;
    // Who uses the keyboard or listens is at the beginning of the new screen.
    if (place.peek() !== first) /** @type {HTMLElement | null} */ (document.querySelector("h1"))?.focus();
    scrollTo(0, 0);
  }, [place.value]);
  return html`
    <a class="skip" href="#content" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); /** @type {HTMLElement | null} */ (document.querySelector("h1"))?.focus(); }}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/"><img src="/icon.svg" alt="" width="22" height="22"/> Penstock</a>
      <nav aria-label="Screens"><a href="#/" aria-current=${title === "Overview" ? "page" : undefined}>Overview</a></nav>
      ${me.value && html`<p class="who"><span class="cluster" title="context of the kubeconfig">${me.value.cluster}</span> <span class="quiet">as</span> <a class="user" href="#/me">${me.value.username}</a>${me.value.readOnly && html` <span class="chip">read-only</span>`}</p>`}
    </header>
    ${frozen.value && html`<div class="banner review" id="frozen"><strong>‖ Frozen.</strong> Nothing is written until that ends: ${frozen.value}</div>`}
    ${refused.value && refused.value.status !== 401 && html`<div class="banner needs" role="alert">${refused.value.message}</div>`}
    <${Connection}/>
    ${show}
    <${Keys}/>`;
}

const first = place.peek();
const keysOn = signal(sessionStorage.getItem("penstock.keys") !== "off");
const help = signal(false);

/** Keys for who has many rows to go through; they can be turned off. */
function Keys() {
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ e) => {
      const at = /** @type {HTMLElement} */ (e.target);
      if (!keysOn.value || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || document.querySelector("dialog[open]")) return;
      const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-row]")]);
      const current = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
      if (e.key === "/") {
        /** @type {HTMLElement | null} */ (document.querySelector("[data-filter]"))?.focus();
        e.preventDefault();
      } else if (e.key === "j") rows[Math.min(current + 1, rows.length - 1)]?.focus();
      else if (e.key === "k") rows[Math.max(current - 1, 0)]?.focus();
      else if (e.key === "?") help.value = !help.value;
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const toggle = () => {
    keysOn.value = !keysOn.value;
    sessionStorage.setItem("penstock.keys", keysOn.value ? "on" : "off");
  };
  return html`<footer class="foot">
    <details open=${help.value} onToggle=${(/** @type {Event} */ e) => (help.value = /** @type {HTMLDetailsElement} */ (e.currentTarget).open)}><summary>Keys</summary>
      <p><kbd>/</kbd> filter · <kbd>j</kbd> <kbd>k</kbd> next and previous row · <kbd>Enter</kbd> open · <kbd>?</kbd> this
      <label><input type="checkbox" checked=${keysOn.value} onChange=${toggle}/> use these keys</label></p></details>
    ${me.value && html`<span class="quiet">console ${me.value.version}</span>`}</footer>`;
}

effect(() => {
  if (link.value.state === "lost" || link.value.state === "troubled") announce(link.value.message);
});

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
if (keyed) {
  render(html`<${Frame}/>`, root);
  who();
} else {
  render(html`<main class="page"><h1 tabindex="-1">This tab has no key</h1>
    <p>Open the address that <code>kubectl penstock console</code> prints: it has the key of this console. A new tab does not get it from another one.</p></main>`, root);
}
