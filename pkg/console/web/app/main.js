// The frame around all screens: the cluster and the user, the navigation, and problems of the
// connection.
import { computed, effect, html, render, signal, useEffect, useSignal } from "./lib.js";
import { Refused, forget, get, hasKey, keep, link, still, takeKey } from "./net.js";
import { answered, authorize, clientID, leave, provider, unexpired } from "./oidc.js";
import { Ago, Button, Problem, announce } from "./parts.js";
import { Overview, SearchScreen, TimelineScreen } from "./overview.js";
import { Review } from "./review.js";
import { ExtensionScreen } from "./extension.js";
import { PlanScreen } from "./plan.js";
import { FleetScreen } from "./fleet.js";
import { MeScreen } from "./me.js";
import { ProfilesScreen } from "./profiles.js";
import { ObjectScreen, PodScreen, TargetScreen } from "./object.js";
import { PackageScreen, PackagesScreen } from "./catalog.js";
import { ReadinessScreen } from "./readiness.js";
import { frozen, into, me } from "./shared.js";

const name = "[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?";
/** Screens by the fragment of the address. Other fragments are invalid. @type {[RegExp, (...names: string[]) => any, (...names: string[]) => string][]} */
const screens = [
  [/^#?\/?$/, () => html`<${Overview}/>`, () => "Overview"],
  [/^#\/me$/, () => html`<${MeScreen}/>`, () => "You"],
  [/^#\/profiles$/, () => html`<${ProfilesScreen}/>`, () => "Profiles"],
  // Names of objects may have other characters: they become query parameters, not parts of a path.
  [new RegExp(`^#/object/(${name})/([A-Za-z0-9.-]+)/(?:([a-z0-9-]*)/)?([^/]+)$`), (revision, kind, namespace = "", object) => html`<${ObjectScreen} key=${location.hash} revision=${revision} kind=${kind} namespace=${namespace} name=${plain(object)}/>`, (_revision, kind, _namespace, object) => `${kind} ${plain(object)}`],
  [new RegExp(`^#/pod/(${name})/(${name})/(${name})$`), (revision, namespace, pod) => html`<${PodScreen} key=${location.hash} revision=${revision} namespace=${namespace} name=${pod}/>`, (_, __, pod) => `Pod ${pod}`],
  [/^#\/timeline(?:\?(.*))?$/, (query = "") => html`<${TimelineScreen} query=${query}/>`, (query = "") => ["Timeline", new URLSearchParams(query).get("extension")].filter(Boolean).join(" of ")],
  [/^#\/search(?:\?(.*))?$/, (query = "") => html`<${SearchScreen} query=${query}/>`, () => "Search"],
  [/^#\/ready(?:\?(.*))?$/, (query = "") => html`<${ReadinessScreen} key=${query} query=${query}/>`, (query = "") => ["Readiness", new URLSearchParams(query).get("extension")].filter(Boolean).join(" of ")],
  [/^#\/packages$/, () => html`<${PackagesScreen}/>`, () => "Catalog"],
  [new RegExp(`^#/package/(${name})$`), (of) => html`<${PackageScreen} key=${of} name=${of}/>`, (of) => `Package ${of}`],
  [new RegExp(`^#/x/(${name})$`), (of) => html`<${ExtensionScreen} key=${of} name=${of}/>`, (of) => of],
  [new RegExp(`^#/diff/((?:${name})?\\.\\.${name})$`), (of) => html`<${Review} key=${of} name=${of}/>`, (of) => `Review ${of}`],
  [new RegExp(`^#/plan/(${name})/([^/]+)$`), (plan, item) => html`<${TargetScreen} key=${location.hash} plan=${plan} item=${plain(item)}/>`, (plan, item) => `${plain(item)} of plan ${plan}`],
  [new RegExp(`^#/fleet/(${name})$`), (of) => html`<${FleetScreen} key=${of} name=${of}/>`, (of) => `Rollout ${of}`],
  [new RegExp(`^#/plan/(${name})$`), (of) => html`<${PlanScreen} key=${of} name=${of}/>`, (of) => `Plan ${of}`],
];

/** A decoded part of the address. @param {string} part */
function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// A link may have a path, which sign-in pages and chats keep. It becomes a fragment.
if (location.pathname !== "/") history.replaceState(null, "", `/#${location.pathname}${location.search}`);

/** On loopback, over HTTP, a console has one user and knows the user's key. Elsewhere many users share it. */
const shared = location.protocol === "https:";
// The answer of an identity provider, if the address has one.
const unanswered = shared ? await answered() : "";
// A link could contain another user's token, so a shared console takes no token from an address.
const keyed = shared ? hasKey() : takeKey();
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const place = signal(shared && /^#key=/.test(location.hash) ? "#/" : location.hash);
const refused = signal(/** @type {Refused | null} */ (null));
addEventListener("hashchange", () => {
  if (!shared && /^#key=/.test(location.hash)) {
    takeKey();
    location.reload();
    return;
  }
  place.value = location.hash;
});

// A screen that opens a stream reports that when it begins.
effect(() => {
  place.value;
  still();
});

const screen = computed(() => {
  for (const [pattern, show, title] of screens) {
    const found = pattern.exec(place.value);
    if (found) return { show: show(...found.slice(1)), title: title(...found.slice(1)) };
  }
  return { show: html`<h1 tabindex="-1">There is nothing here</h1><p><a href="#/">The overview</a> has all there is.</p>`, title: "Nothing here" };
});

async function who() {
  try {
    me.value = await get("/api/me");
    refused.value = null;
  } catch (failure) {
    refused.value = /** @type {Refused} */ (failure);
    if (shared && refused.value.status === 401) {
      const untrusted = unexpired();
      forget();
      render(html`<${SignIn} refused=${refused.value} untrusted=${untrusted}/>`, root);
    }
  }
}

/** @param {string} text */
const sentence = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);

/** A key on loopback stays valid; a refused token of a user does not. */
function signIn() {
  if (shared) forget();
  location.reload();
}

async function signOut() {
  if (!(await leave())) location.reload();
}

function Connection() {
  const { state, message, since } = link.value;
  if (state === "live" || (state === "connecting" && !message)) return null;
  const age = html`The page shows data from <${Ago} at=${new Date(since).toISOString()} ago/>.`;
  /** @type {Record<string, any>} */
  const said = {
    troubled: html`<strong>The cluster does not answer.</strong> ${sentence(message)} ${age} It is tried again.`,
    lost: html`<strong>The connection is lost.</strong> ${sentence(message)} ${age} It is tried again.`,
    refused: html`<strong>You cannot see this.</strong> ${message}`,
    signedOut: html`<strong>You are signed out.</strong> ${message} <button type="button" id="again" onClick=${signIn}>Sign in again</button>`,
  };
  return html`<div class="banner ${state === "refused" ? "review" : "needs"}" role="alert">${said[state]}</div>`;
}

function Frame() {
  const { show, title } = screen.value;
  useEffect(() => {
    document.title = `${title} · Penstock`;
    // The focus moves to the start of the new screen, for keyboards and screen readers.
    if (place.peek() !== first) /** @type {HTMLElement | null} */ (document.querySelector("[data-first]") ?? document.querySelector("h1"))?.focus();
    scrollTo(0, 0);
  }, [title]);
  // Links to subpages are marked, too.
  const mark = (/** @type {string} */ of, /** @type {RegExp} */ below) => (title === of ? "page" : below.test(place.value) ? "true" : undefined);
  return html`
    <a class="skip" href="#content" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); /** @type {HTMLElement | null} */ (document.querySelector("h1"))?.focus(); }}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/"><img src="/icon.svg" alt="" width="22" height="22"/> Penstock</a>
      <nav aria-label="Screens"><a href="#/" aria-current=${mark("Overview", /^#\/(x|diff|plan|fleet|object|pod)\//)}>Overview</a>
        <a href="#/timeline" aria-current=${mark("Timeline", /^#\/timeline/)}>Timeline</a>
        <a href="#/profiles" aria-current=${mark("Profiles", /^#\/profiles/)}>Profiles</a>
        <a href="#/ready" aria-current=${mark("Readiness", /^#\/ready/)}>Readiness</a>
        <a href="#/packages" aria-current=${mark("Catalog", /^#\/package/)}>Catalog</a>
        <a href="#/search" aria-current=${mark("Search", /^#\/search/)}>Search</a></nav>
      ${me.value && html`<p class="who"><span class="cluster" title="cluster">${me.value.cluster}</span> <span class="quiet">as</span> <a class="user" href="#/me">${me.value.username}</a>${me.value.readOnly && html` <span class="chip">read-only</span>`}
        ${shared && keyed && html` <button type="button" id="sign-out" onClick=${signOut}>Sign out</button>`}</p>`}
    </header>
    ${frozen.value && html`<div class="banner review" id="frozen"><strong>‖ Frozen.</strong> Nothing is written until the freeze ends: ${frozen.value}</div>`}
    ${unanswered && html`<div class="banner review" role="alert" id="unanswered"><strong>◆ The sign-in has failed.</strong> ${sentence(unanswered)}</div>`}
    ${refused.value && refused.value.status !== 401 && html`<div class="banner needs" role="alert">${refused.value.message}</div>`}
    <${Connection}/>
    <main class="page" id="content">${show}</main>
    <${Keys}/>`;
}

const first = place.peek();
/** The theme of the page: the system's, unless the user chose another one. */
const theme = signal(localStorage.getItem("penstock.theme") ?? "");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem("penstock.theme", theme.value);
});

const keysOn = signal(sessionStorage.getItem("penstock.keys") !== "off");
const help = signal(false);

/** Keyboard shortcuts for long lists; the user can turn them off. */
function Keys() {
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ e) => {
      const at = /** @type {HTMLElement} */ (e.target);
      if (e.key === "Escape" && at.matches("[data-filter]")) {
        /** @type {HTMLInputElement} */ (at).value = "";
        at.dispatchEvent(new Event("input", { bubbles: true }));
        at.blur();
        e.preventDefault();
      }
      if (e.key === "ArrowDown" && at.matches("[data-filter]")) /** @type {HTMLElement | null} */ (document.querySelector("[data-row]"))?.focus();
      if (!keysOn.value || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || document.querySelector("dialog[open]")) return;
      const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-row]")]);
      const current = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
      if (e.key === "/" || e.key === "s") {
        // The letter must not appear in the focused field.
        e.preventDefault();
        if (e.key === "s") location.hash = "#/search";
        else /** @type {HTMLElement | null} */ (document.querySelector("[data-filter]"))?.focus();
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
    <details open=${help.value} onToggle=${(/** @type {Event} */ e) => { const box = /** @type {HTMLDetailsElement} */ (e.currentTarget); help.value = box.open; if (box.open) box.scrollIntoView({ block: "nearest" }); }}><summary>Keyboard shortcuts</summary>
      <p><kbd>s</kbd> search · <kbd>/</kbd> filter, <kbd>↓</kbd> to its rows · <kbd>j</kbd> <kbd>k</kbd> next and previous row · <kbd>Enter</kbd> open · <kbd>?</kbd> this list · <label><input type="checkbox" checked=${keysOn.value} onChange=${toggle}/> use these keys</label></p></details>
    <label>Theme <select id="theme" value=${theme.value} onChange=${into(theme)}><option value="">as the system</option><option value="light">light</option><option value="dark">dark</option></select></label>
    ${me.value && html`<span class="quiet">console ${me.value.version}</span>`}</footer>`;
}

effect(() => {
  if (link.value.state === "lost" || link.value.state === "troubled") announce(link.value.message);
});

/** In a shared console, each user enters a token or signs in at the identity provider.
 * @param {{ refused: Refused | null, untrusted?: boolean }} props untrusted: the provider has issued the refused token just now */
function SignIn({ refused, untrusted }) {
  const typed = useSignal(""), failed = useSignal(unanswered), leaving = useSignal(false);
  const enter = () => {
    if (!typed.value.trim()) return;
    keep(typed.value.trim());
    location.reload();
  };
  const leaveForProvider = async () => {
    leaving.value = true;
    failed.value = await authorize().then(() => "", (failure) => failure.message);
    leaving.value = !failed.value;
  };
  return html`<header class="top"><span class="brand"><img src="/icon.svg" alt="" width="22" height="22"/> Penstock</span></header>
  <main class="page" id="content"><h1 tabindex="-1">Sign in</h1>
    <p>This console acts as you, with your token, and has no rights of its own.</p>
    ${untrusted
      ? html`<div class="note needs" role="alert" id="untrusted"><p><strong>✗ kube-apiserver does not accept the token of ${provider}.</strong> The sign-in at ${provider} has worked. Ask your administrator: kube-apiserver must trust this issuer with the client ID <code>${clientID}</code>, and the token must have the claim of the user name.</p></div>`
      : html`<${Problem} refused=${refused} doing="The cluster does not accept your token"/>`}
    ${failed.value && html`<div class="note needs" role="alert" id="failed"><p><strong>✗ The sign-in has failed.</strong> ${sentence(failed.value)}</p></div>`}
    ${provider && html`<div class="actions"><${Button} id="provider" kind="main" busy=${leaving.value} onClick=${leaveForProvider}>Sign in at ${provider}<//></div>`}
    <section aria-labelledby="with-token"><h2 id="with-token">${provider ? "Or enter a token" : "Enter a token"}</h2>
    <p>A token is what <code>kubectl create token</code> prints, or what your identity provider gives you.</p>
    <label class="field">Token <input id="token" type="password" autocomplete="off" spellcheck=${false} onInput=${into(typed)} onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter") enter(); }}/></label>
    <p class="quiet">This tab alone keeps the token, until you sign out or close the tab, and sends it to this console with each request.</p>
    <div class="actions"><${Button} id="enter" kind=${provider ? "" : "main"} onClick=${enter}>Sign in with this token<//></div></section></main>`;
}

/** Shows the overview, or asks for a token unless a proxy in front adds one. */
async function begin() {
  root.replaceChildren();
  if (shared && /^#key=/.test(location.hash)) history.replaceState(null, "", "/#/");
  if (keyed) {
    render(html`<${Frame}/>`, root);
    who();
  } else if (shared) {
    try {
      me.value = await get("/api/me");
      render(html`<${Frame}/>`, root);
    } catch (failure) {
      const said = /** @type {Refused} */ (failure);
      render(html`<${SignIn} refused=${said.reason === "Token" ? null : said}/>`, root);
    }
  } else {
    render(html`<main class="page"><h1 tabindex="-1">This tab has no key</h1>
      <p>Open the address that <code>kubectl penstock console</code> prints in this tab: it has the key of this console, and leads to this page. A new tab does not get the key from another tab.</p></main>`, root);
  }
}

begin();
