// Sign-in at an OpenID Connect provider: the authorization code flow with PKCE, as a public client.
// It happens only in this tab. The server of the console gets the ID token like any other token, but
// never the verifier or the refresh token. The code is in the address to which the provider redirects;
// it is worthless without the verifier.

/** @param {string} name */
const named = (name) => document.querySelector(`meta[name="oidc-${name}"]`)?.getAttribute("content") ?? "";

/** The provider of this console; without an issuer there is none. */
const issuer = named("issuer"), client = named("client-id"), scope = named("scope");

/** The host of the provider; empty without a provider. */
export const provider = issuer && new URL(issuer).host;

/** The client ID of the console at the provider. */
export const clientID = client;

const tokenSlot = "penstock.key", sessionSlot = "penstock.oidc", pendingSlot = "penstock.oidc.pending";

/** The address to which the provider redirects the browser. */
const home = `${location.origin}/`;

/** @typedef {{ refresh: string, subject: string, renewAt: number, endsAt: number }} Session a sign-in of this tab; times are of the browser's clock */
/** @typedef {{ state: string, nonce: string, verifier: string, place: string }} Pending a sign-in that this tab has begun */

/** @template T @param {string} slot @returns {T | null} */
const stored = (slot) => JSON.parse(sessionStorage.getItem(slot) ?? "null");

/** Whether the ID token of this tab is valid by its own times. */
export const unexpired = () => Date.now() < (/** @type {Session | null} */ (stored(sessionSlot))?.endsAt ?? 0);

/** Bytes in base64url. @param {Uint8Array} bytes */
const encoded = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

/** A value of 256 bits that nobody can guess. */
const random = () => encoded(crypto.getRandomValues(new Uint8Array(32)));

/** The provider has refused the request; a retry cannot help. */
class Rejected extends Error {}

const patience = 10000;

/** @param {string} url @param {Record<string, string>} [form] @returns {Promise<any>} */
async function ask(url, form) {
  let response;
  try {
    response = await fetch(url, { credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(patience), ...(form ? { method: "POST", body: new URLSearchParams(form) } : {}) });
  } catch {
    throw new Error(`${provider} does not answer this page. It must be reachable from the browser, and allow requests of the origin ${location.origin}`);
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const said = `${provider} answers ${response.status}: ${[answer.error, answer.error_description].filter(Boolean).join(": ") || "no reason"}`;
  // Other errors, such as too many requests, may be temporary.
  throw response.status === 400 || response.status === 401 ? new Rejected(said) : new Error(said);
}

/** The addresses of the provider. Tokens are sent only to its own origin, as the content policy
 * demands. */
async function discover() {
  const found = await ask(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (found.issuer !== issuer) throw new Rejected(`the provider of ${issuer} calls itself ${found.issuer}`);
  for (const [name, origin] of [["token_endpoint", new URL(issuer).origin], ["authorization_endpoint", "https:"]]) {
    if (!`${found[name]}/`.startsWith(`${origin}/`)) throw new Rejected(`${name} of ${issuer} is ${found[name]}: want an address at ${origin}`);
  }
  return found;
}

/** @param {string} address @param {Record<string, string>} query */
function leaveFor(address, query) {
  const to = new URL(address);
  for (const [name, value] of Object.entries(query)) to.searchParams.set(name, value);
  location.assign(to);
}

/** Opens the sign-in page of the provider. */
export async function authorize() {
  const { authorization_endpoint: address } = await discover();
  const pending = { state: random(), nonce: random(), verifier: random(), place: location.hash };
  sessionStorage.setItem(pendingSlot, JSON.stringify(pending));
  const challenge = encoded(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier))));
  leaveFor(address, { response_type: "code", client_id: client, redirect_uri: home, scope, state: pending.state, nonce: pending.nonce, code_challenge: challenge, code_challenge_method: "S256" });
}

/** Reads the provider's answer from the address, restores the address from before the sign-in, and
 * requests the tokens. @returns {Promise<string>} the reason why that failed; empty otherwise */
export async function answered() {
  const given = new URLSearchParams(location.search);
  if (!provider || !(given.has("code") || given.has("error"))) return "";
  const pending = /** @type {Pending | null} */ (stored(pendingSlot));
  // A code is used once, and so is its pending sign-in.
  sessionStorage.removeItem(pendingSlot);
  const ours = pending !== null && given.get("state") === pending.state;
  history.replaceState(null, "", `/${ours ? pending.place : location.hash}`);
  if (!ours) return "this link carries the answer to a sign-in that did not begin in this tab. The answer was not used";
  try {
    if (given.has("iss") && given.get("iss") !== issuer) throw new Rejected(`the answer is of ${given.get("iss")}, and this console signs in at ${issuer}`);
    if (given.has("error")) throw new Rejected(`${provider} says ${[given.get("error"), given.get("error_description")].filter(Boolean).join(": ")}`);
    const found = await discover();
    if (found.authorization_response_iss_parameter_supported && !given.has("iss")) throw new Rejected(`the answer does not say that it is of ${issuer}`);
    const got = await ask(found.token_endpoint, { grant_type: "authorization_code", code: given.get("code") ?? "", redirect_uri: home, client_id: client, code_verifier: pending.verifier });
    keep(got, (claims) => claims.nonce === pending.nonce || "the nonce of another sign-in");
    return "";
  } catch (failure) {
    return /** @type {Error} */ (failure).message;
  }
}

/** Keeps the tokens in an answer of the token endpoint. They came over TLS from the provider itself;
 * kube-apiserver checks the signature. @param {any} got @param {(claims: any) => true | string} check returns the fault */
function keep(got, check) {
  const [, payload = ""] = `${got.id_token}`.split(".");
  let claims;
  try {
    claims = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(payload.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0))));
  } catch {
    throw new Rejected(`${provider} has sent no ID token`);
  }
  const audiences = [claims.aud].flat();
  const wrong = claims.iss !== issuer ? `the issuer ${claims.iss}` : !audiences.includes(client) ? `the audience ${audiences.join(", ")}, not ${client}` : check(claims);
  if (wrong !== true) throw new Rejected(`${provider} has sent an ID token with ${wrong}`);
  if (!Number.isFinite(claims.exp) || !Number.isFinite(claims.iat)) throw new Rejected(`${provider} has sent an ID token without the times exp and iat`);
  // The length of a token's life does not depend on a wrong clock. It is renewed at half its life.
  const life = 1000 * (claims.exp - claims.iat), now = Date.now();
  const session = /** @type {Session} */ ({ refresh: got.refresh_token ?? "", subject: claims.sub, renewAt: now + life / 2, endsAt: now + life });
  sessionStorage.setItem(sessionSlot, JSON.stringify(session));
  sessionStorage.setItem(tokenSlot, got.id_token);
}

/** @type {Promise<void> | undefined} */
let renewing;

/** The token of this tab, or null. A token of the provider is renewed in time. */
export async function token() {
  const session = /** @type {Session | null} */ (stored(sessionSlot));
  if (session?.refresh && Date.now() >= session.renewAt) await (renewing ??= renew(session).finally(() => (renewing = undefined)));
  return sessionStorage.getItem(tokenSlot);
}

const tryAgainAfter = 10000;

/** @param {Session} session */
async function renew(session) {
  const known = sessionStorage.getItem(sessionSlot);
  let refresh = session.refresh;
  try {
    const found = await discover();
    const got = await ask(found.token_endpoint, { grant_type: "refresh_token", refresh_token: session.refresh, client_id: client });
    // The user has signed out meanwhile.
    if (sessionStorage.getItem(sessionSlot) !== known) return;
    keep({ refresh_token: session.refresh, ...got }, (claims) => claims.sub === session.subject || `the user ${claims.sub}, not ${session.subject}`);
    return;
  } catch (failure) {
    // The provider has ended the session: the token is valid until it expires.
    if (failure instanceof Rejected) refresh = "";
  }
  if (sessionStorage.getItem(sessionSlot) === known) sessionStorage.setItem(sessionSlot, JSON.stringify({ ...session, refresh, renewAt: Date.now() + tryAgainAfter }));
}

/** Signs out in this tab at once, and then at the provider. @returns {Promise<boolean>} whether the browser leaves for the provider */
export async function leave() {
  const session = /** @type {Session | null} */ (stored(sessionSlot));
  sessionStorage.clear();
  if (!session) return false;
  try {
    const found = await discover();
    if (session.refresh && `${found.revocation_endpoint}`.startsWith(`${new URL(issuer).origin}/`)) {
      await ask(found.revocation_endpoint, { token: session.refresh, token_type_hint: "refresh_token", client_id: client }).catch(() => {});
    }
    if (!`${found.end_session_endpoint}`.startsWith("https://")) return false;
    leaveFor(found.end_session_endpoint, { client_id: client, post_logout_redirect_uri: home });
    return true;
  } catch {
    return false; // the provider does not answer
  }
}
