//go:build integration

package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const (
	revisionsPath = "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions"
	asJSON        = "application/json"
	asYAML        = "application/yaml"
	asMerge       = "application/merge-patch+json"
	asStrategic   = "application/strategic-merge-patch+json"
	asJSONPatch   = "application/json-patch+json"
	asApply       = "application/apply-patch+yaml"

	notAllowed = "a revision may only do what its requester may do"
)

// Bounds of the cost of a request without rights: access reviews at the host, and bytes of the
// answer.
const maxQuestions, maxAnswer = 30, 64 << 10

// attempt is a request of an attacker. It must fail with one of the codes and with a text.
type attempt struct {
	// who is the user. "creator" may only create revisions, "writer" has all rights to revisions
	// and no others, "nobody" has no credentials.
	who string
	// direct sends the request to Penstock's port, past kube-apiserver.
	direct                          bool
	method, path, contentType, body string
	headers                         map[string]string
	codes                           []int
	says                            string
}

// evil returns a revision as JSON, with objects in JSON.
func evil(name string, objects ...string) string {
	number := name[strings.LastIndex(name, "-")+1:]
	return fmt.Sprintf(`{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":%q},"spec":{"revision":%s,"phases":[{"name":"all","objects":[%s]}]}}`,
		name, number, strings.Join(objects, ","))
}

// evilObject must never exist in the cluster.
const evilObject = `{"object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"evil"}}}`

func create(who, body, says string, codes ...int) attempt {
	return attempt{who: who, method: http.MethodPost, path: revisionsPath, contentType: asJSON, body: body, codes: codes, says: says}
}

func patch(who, name, contentType, body, says string, codes ...int) attempt {
	path := revisionsPath + "/" + name
	if contentType == asApply {
		path += "?fieldManager=evil&force=true"
	}
	return attempt{who: who, method: http.MethodPatch, path: path, contentType: contentType, body: body, codes: codes, says: says}
}

// directly sends an attempt to Penstock's port, with headers as names and values. The error has
// another text there.
func (a attempt) directly(says string, headers ...string) attempt {
	a.direct, a.says, a.headers = true, says, map[string]string{}
	for i := 0; i+1 < len(headers); i += 2 {
		a.headers[headers[i]] = headers[i+1]
	}
	return a
}

// threats lists all attacks. docs/reference/threat-model.md says what each would achieve.
func threats(mapDigest string) map[string][]attempt {
	const forbidden, invalid, bad = http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusBadRequest
	inline := create("creator", evil("evil-1", evilObject), "creator cannot create,patch namespaces evil", forbidden)
	dryRun := inline
	dryRun.path += "?dryRun=All"
	generated := strings.Replace(evil("evil-1", evilObject), `"name":"evil-1"`, `"generateName":"evil-"`, 1)
	digest := func(name string) string {
		return evil(name, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"first","digest":%q}`, mapDigest))
	}
	object := func(apiVersion, kind, name, rest string) string {
		return fmt.Sprintf(`{"object":{"apiVersion":%q,"kind":%q,"metadata":{"name":%q}%s}}`, apiVersion, kind, name, rest)
	}
	succeeded := `{"status":{"conditions":[{"type":"Succeeded","status":"True","reason":"RolledOut","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	forged := strings.Replace(succeeded, "{", `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"victim-1"},`, 1)
	sub := func(method, path, body string) attempt {
		return attempt{who: "creator", method: method, path: revisionsPath + "/" + path, contentType: asJSON, body: body,
			codes: []int{forbidden, http.StatusNotFound, http.StatusMethodNotAllowed}}
	}
	activate := `{"spec":{"lifecycleState":"Active"}}`
	labelled := strings.Replace(evil("evil-1"), `"name":"evil-1"`, `"name":"evil-1","labels":{"penstock.dev/chain":"victim"}`, 1)
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"DELETE"}}`
	webhooks := func(path string, codes ...int) attempt {
		return attempt{who: "nobody", direct: true, method: http.MethodPost, path: path, contentType: asJSON, body: review, codes: codes}
	}
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	celBomb := func(expression string) string {
		probe := fmt.Sprintf(`{"selector":{"groupKind":{"kind":"ConfigMap"}},"assertions":[{"cel":{"expression":%q,"message":"m"}}]}`, expression)
		return strings.Replace(evil("evil-1", evilObject), `"phases":`, `"progressionProbes":[`+probe+`],"phases":`, 1)
	}
	manyPhases := "[" + strings.TrimSuffix(strings.Repeat(`{"name":"p"},`, 20_000), ",") + "]"
	yaml := create("creator", laughs, "", bad, invalid, http.StatusRequestEntityTooLarge)
	yaml.contentType = asYAML
	return map[string][]attempt{
		"Inline":         {inline},
		"DryRun":         {dryRun},
		"GenerateName":   {create("creator", generated, "", forbidden, invalid)},
		"DigestOfOthers": {create("creator", digest("evil-1"), "no revision of this extension holds", invalid), create("creator", digest("victim-3"), notAllowed, forbidden)},
		"Rollback": {
			sub(http.MethodPost, "victim-1/rollback", "{}"),
			{who: "writer", method: http.MethodPost, path: revisionsPath + "/victim-1/rollback", contentType: asJSON, body: "{}", codes: []int{forbidden}, says: notAllowed},
		},
		"Status": {
			{who: "creator", method: http.MethodPatch, path: revisionsPath + "/victim-1/status", contentType: asMerge, body: `{"status":{"requestedBy":{"username":"root"}}}`, codes: []int{forbidden}},
			{who: "writer", method: http.MethodPatch, path: revisionsPath + "/victim-1/status", contentType: asMerge, body: succeeded, codes: []int{forbidden}, says: "nobody but Penstock writes it"},
			{who: "writer", method: http.MethodPatch, path: revisionsPath + "/victim-1/status?fieldManager=x&force=true", contentType: asApply, body: forged, codes: []int{forbidden}, says: "nobody but Penstock writes it"},
		},
		"Subresources": {
			sub(http.MethodGet, "victim-1", ""), sub(http.MethodGet, "victim-1/manifests", ""), sub(http.MethodGet, "victim-1/diff", ""), sub(http.MethodGet, "victim-1/history", ""),
			sub(http.MethodPost, "victim-1/manifests", evilObject), sub(http.MethodPost, "victim-1/status", "{}"), sub(http.MethodPost, "victim-1/proxy", ""), sub(http.MethodGet, "victim-1/exec", ""),
			sub(http.MethodPost, "victim-1/import", "{}"), sub(http.MethodDelete, "victim-1", ""), sub(http.MethodDelete, "", ""), sub(http.MethodGet, "?watch=true&timeoutSeconds=1", ""),
		},
		"Patches": {
			patch("creator", "held-1", asMerge, activate, "", forbidden),
			patch("writer", "held-1", asMerge, activate, notAllowed, forbidden),
			patch("writer", "held-1", asStrategic, activate, notAllowed, forbidden),
			patch("writer", "held-1", asJSONPatch, `[{"op":"replace","path":"/spec/lifecycleState","value":"Active"}]`, notAllowed, forbidden),
			patch("writer", "held-1", asApply, `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"held-1"},"spec":{"lifecycleState":"Active"}}`, notAllowed, forbidden),
			// The content of a revision is immutable for every user.
			patch("writer", "held-1", asJSONPatch, `[{"op":"add","path":"/spec/phases/0/objects/-","value":`+evilObject+`}]`, "immutable", invalid),
			patch("writer", "held-1", asMerge, `{"spec":{"phases":[]}}`, "immutable", invalid),
			patch("writer", "held-1", "application/protobuf", "x", "", http.StatusUnsupportedMediaType),
		},
		"ServerSideApply": {
			patch("writer", "evil-1", asApply, evil("evil-1", evilObject), notAllowed, forbidden),
			patch("creator", "evil-1", asApply, evil("evil-1", evilObject), "", forbidden),
		},
		"PutCreates": {{who: "writer", method: http.MethodPut, path: revisionsPath + "/evil-1", contentType: asJSON, body: evil("evil-1", evilObject),
			codes: []int{forbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict, invalid}}},
		"Impersonation": {
			inline.directly("cannot impersonate", "Impersonate-User", "admin", "Impersonate-Group", "system:masters"),
			inline.directly("cannot impersonate", "Impersonate-User", "system:apiserver"),
			inline.directly("cannot impersonate", "Impersonate-User", "system:serviceaccount:penstock-system:penstock-engine"),
		},
		"FrontProxyHeaders": {
			inline.directly("creator cannot create,patch", "X-Remote-User", "system:apiserver", "X-Remote-Group", "system:masters"),
			func() attempt {
				a := inline.directly("", "X-Remote-User", "admin", "X-Remote-Group", "system:masters", "X-Remote-Extra-Scopes", "all")
				a.who, a.codes = "nobody", []int{forbidden, http.StatusUnauthorized}
				return a
			}(),
		},
		"OwnToken": {func() attempt {
			a := inline.directly("", "Authorization", "Bearer ")
			a.who, a.codes = "nobody", []int{forbidden, http.StatusUnauthorized}
			return a
		}()},
		"Oversized": {create("creator", strings.Repeat(" ", 64<<20+1)+evil("evil-1", evilObject), "", http.StatusRequestEntityTooLarge, http.StatusTooManyRequests)},
		"Deep": {
			create("creator", evil("evil-1", `{"object":`+strings.Repeat(`{"a":`, 200_000)+"1"+strings.Repeat("}", 200_000)+`}`), "", bad, invalid, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests),
			create("creator", strings.Repeat("[", 1<<20), "", bad, invalid, http.StatusTooManyRequests),
		},
		"YAMLBomb": {yaml},
		"CELBomb": {
			create("creator", celBomb("[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, a*b*c))).size() == "+strings.Repeat("(", 1000)+"9"+strings.Repeat(")", 1000)), "", invalid, forbidden),
			create("creator", celBomb("true"+strings.Repeat(" && true", 50_000)), "must have at most 4096", invalid),
			create("creator", celBomb("self."+strings.Repeat("a.", 20_000)+"b == 1"), "must have at most 4096", invalid),
			create("creator", celBomb("'x'.matches(self.data.p + 'x')"), "must be a text in quotes", invalid),
			create("creator", celBomb("self.kind.matches('"+strings.Repeat("(?:aaaaaaaaaa){999}", 50)+"')"), "must have at most 1000", invalid),
			create("creator", celBomb(strings.Repeat("[", 150)+strings.Repeat("]", 150)+" == []"), "150 deep", invalid),
		},
		"ManyAssertions": {
			create("creator", strings.Replace(evil("evil-1", evilObject), `"phases":`, `"progressionProbes":[{"selector":{"groupKind":{"kind":"ConfigMap"}},"assertions":[{}`+strings.Repeat(`,{"cel":{"expression":"true"}}`, 100_000)+`]}],"phases":`, 1),
				"a revision has at most 128 assertions in all", invalid),
		},
		"ManyPhases": {
			patch("writer", "victim-1", asMerge, `{"spec":{"phases":`+manyPhases+`}}`, "at most 64 phases", invalid),
			patch("writer", "victim-1", asStrategic, `{"spec":{"phases":`+manyPhases+`}}`, "at most 64 phases", invalid),
			patch("writer", "victim-1", asApply, `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"victim-1"},"spec":{"phases":`+manyPhases+`}}`, "at most 64 phases", invalid),
			patch("writer", "victim-1", asJSONPatch, `[{"op":"test","path":"/spec/revision","value":1}`+strings.Repeat(`,{"op":"add","path":"/spec/phases/-","value":{"name":"p"}}`, 9000)+`]`, "at most 64 phases", invalid),
			create("creator", strings.Replace(evil("evil-1"), `[{"name":"all","objects":[]}]`, manyPhases, 1), "at most 64 phases", invalid),
		},
		"ManyQuestions": {
			create("creator", evil("evil-1", manyObjects(4000, "v1")), "creator cannot create,patch configmaps default/m0;", forbidden),
			create("creator", evil("evil-1", manyObjects(4000, "g%d.example.com/v1")), "creator cannot create,patch", forbidden),
		},
		"ForgedReviews": {
			webhooks("/webhooks/governed/", forbidden, http.StatusUnauthorized), webhooks("/webhooks/governed/../../metrics", forbidden, http.StatusUnauthorized, http.StatusNotFound),
			webhooks("/webhooks/other", forbidden, http.StatusUnauthorized), webhooks("/webhooks", forbidden, http.StatusUnauthorized),
			webhooks("/webhooks/governed%2f..%2f..%2fmetrics", forbidden, http.StatusUnauthorized, http.StatusNotFound),
			webhooks(revisionsPath, forbidden, http.StatusUnauthorized),
			create("creator", review, "", bad),
		},
		"CollidingNames": {
			create("creator", evil("victim-03", evilObject), "", invalid, bad), create("creator", strings.Replace(evil("victim--3", evilObject), `-3,`, `3,`, 1), "", invalid, bad, forbidden),
			create("creator", evil("Victim-3", evilObject), "", invalid), create("creator", evil("victim.-3", evilObject), "", invalid),
			create("creator", evil("victim-1-3", evilObject), notAllowed, forbidden), create("creator", strings.Replace(evil("victim-3", evilObject), `"revision":3`, `"revision":4`, 1), "", invalid),
			create("creator", evil("victim-1", evilObject), "", forbidden, http.StatusConflict),
			create("creator", evil("victim-9223372036854775807", evilObject), "", invalid, forbidden),
		},
		"Labels": {
			create("creator", labelled, "penstock.dev/chain", invalid),
			patch("writer", "held-1", asMerge, `{"metadata":{"labels":{"penstock.dev/chain":"victim"}}}`, "penstock.dev/chain", invalid),
			create("creator", evil("evil-1", `{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","labels":{"penstock.dev/chain":"victim"}}}}`), "reserved", invalid),
			create("creator", evil("evil-1", `{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","annotations":{"penstock.dev/applied":"x"}}}}`), "reserved", invalid),
		},
		"HandedOn": {
			create("creator", evil("evil-1", object("rbac.authorization.k8s.io/v1", "ClusterRole", "evil", `,"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`)), "", forbidden),
			create("creator", evil("evil-1", object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "evil", `,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"creator"}]`)), notAllowed, forbidden),
			create("creator", evil("evil-1", object("certificates.k8s.io/v1", "CertificateSigningRequest", "evil", `,"spec":{"request":"eA==","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}`)), notAllowed, forbidden),
			create("creator", evil("evil-1", object("olm.operatorframework.io/v1alpha1", "ClusterExtensionRevision", "other-1", `,"spec":{"revision":1}`)), "", forbidden, invalid),
			create("creator", evil("evil-1", object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "evil", "")), notAllowed, forbidden),
		},
		"Prunes":      {create("creator", evil("victim-3"), notAllowed, forbidden)},
		"Acknowledge": {create("creator", strings.Replace(evil("evil-1"), `"name":"evil-1"`, `"name":"evil-1","annotations":{"penstock.dev/allow-crd-deletion":"apps.example.com"}`, 1), "delete customresourcedefinitions.apiextensions.k8s.io apps.example.com", forbidden)},
	}
}

// manyObjects returns n ConfigMaps, or n objects with different API groups.
func manyObjects(n int, apiVersion string) string {
	objects := make([]string, n)
	for i := range objects {
		version := apiVersion
		if strings.Contains(version, "%d") {
			version = fmt.Sprintf(version, i)
		}
		objects[i] = fmt.Sprintf(`{"object":{"apiVersion":%q,"kind":"ConfigMap","metadata":{"name":"m%d","namespace":"default"}}}`, version, i)
	}
	return strings.Join(objects, ",")
}

// threats tries every attack.
func (d door) threats() {
	d.MustKubectlInput(roleFor("creator", `[{apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create]}]`), "create", "-f", "-")
	d.MustKubectlInput(roleFor("writer", `[{apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions, clusterextensionrevisions/rollback, clusterextensionrevisions/status], verbs: ["*"]}]`), "create", "-f", "-")
	d.MustKubectlInput(revision("victim", 1), "create", "-f", "-")
	d.MustKubectlInput(strings.Replace(revision("victim", 2), "  - name: deploy", "    - object: "+guessedSecret("yaml")+"\n  - name: deploy", 1), "create", "-f", "-")
	d.MustKubectlInput(strings.Replace(revision("held", 1), "revision: 1", "revision: 1\n  lifecycleState: Paused", 1), "create", "-f", "-")
	// Penstock's own later writes must not look like an effect of an attack.
	d.MustKubectl("wait", "--for=jsonpath={.spec.lifecycleState}=Archived", "cer/victim-1", poll.TimeoutFlag)
	before := d.MustKubectl("get", "cer", "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec} {.metadata.labels}{"\n"}{end}`)
	mapDigest := d.MustKubectl("get", "cer", "victim-1", "-o", "jsonpath={.spec.phases[0].objects[0].digest}")
	r := d.intruders()
	eventually(d.t, "the rights of both", func() error {
		for _, who := range []string{"creator", "writer"} {
			if code, text := r.send(d.t, create(who, evil("evil-1", evilObject), "")); !strings.Contains(text, notAllowed) {
				return fmt.Errorf("%s: %d %.200s", who, code, text)
			}
		}
		return nil
	})

	tried := threats(mapDigest)
	for name, attempts := range tried {
		d.t.Run(name, func(t *testing.T) {
			for i, a := range attempts {
				mark := d.Audit().Mark()
				code, text := r.send(t, a)
				if asked := d.Audit().Since(mark, func(r plane.Request) bool { return strings.HasSuffix(r.UserAgent, "/privilege") }); len(asked) > maxQuestions {
					t.Errorf("%d: %d access reviews, want %d at most", i, len(asked), maxQuestions)
				}
				if len(text) > maxAnswer {
					t.Errorf("%d: the answer has %d bytes, want %d at most", i, len(text), maxAnswer)
				}
				if !slices.Contains(a.codes, code) || !strings.Contains(text, a.says) {
					t.Errorf("%d: %s %s as %s: %d %.500s, want %v and %q", i, a.method, a.path, a.who, code, text, a.codes, a.says)
				}
			}
		})
	}
	d.t.Run("GuessedDigest", func(t *testing.T) { r.guess(t) })
	secretDigest := d.MustKubectl("get", "cer", "victim-2", "-o", `jsonpath={.spec.phases[*].objects[?(@.kind=="Secret")].digest}`)
	d.t.Run("GuessedSecret", func(t *testing.T) { r.bring(t, secretDigest) })

	if after := d.MustKubectl("get", "cer", "-o", `jsonpath={range .items[*]}{.metadata.name} {.spec} {.metadata.labels}{"\n"}{end}`); after != before {
		d.t.Errorf("revisions were\n%s\nand are\n%s", before, after)
	}
	if out := d.Kubectl("get", "namespace/evil", "clusterrole/evil", "clusterrolebinding/evil", "--ignore-not-found", "-o", "name"); strings.TrimSpace(out.Stdout) != "" {
		d.t.Errorf("an attack created objects: %s", out)
	}
	if strings.Contains(d.server.Log(), "panic") {
		d.t.Errorf("the server panicked:\n%s", d.server.Log())
	}
	d.listed(tried)
	d.t.Run("AtTheSameTime", func(t *testing.T) { d.in(t).atTheSameTime(t, r) })
	d.t.Run("Collection", func(t *testing.T) { d.in(t).collection(t, r) })
}

// guessedSecret returns a Secret whose content an attacker guesses.
func guessedSecret(form string) string {
	if form == "yaml" {
		return `{apiVersion: v1, kind: Secret, metadata: {name: creds, namespace: default}, data: {password: aHVudGVyMg==}}`
	}
	return `{"apiVersion":"v1","data":{"password":"aHVudGVyMg=="},"kind":"Secret","metadata":{"name":"creds","namespace":"default"}}`
}

// guess: the answer to a digest of a guessed Secret does not reveal whether the guess is right.
func (r intruders) guess(t *testing.T) {
	answer := func(digest string) string {
		entry := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","namespace":"default","name":"creds","digest":%q}`, digest)
		code, text := r.send(t, create("creator", evil("victim-3", entry), ""))
		return fmt.Sprint(code, strings.ReplaceAll(text, digest, "DIGEST"))
	}
	right, wrong := sha256.Sum256([]byte(guessedSecret("json"))), sha256.Sum256([]byte("something else"))
	for _, form := range []string{"sha256:%x", "hmac-sha256:%x", "keyed:%x"} {
		one, other := answer(fmt.Sprintf(form, right)), answer(fmt.Sprintf(form, wrong))
		if one != other || !strings.HasPrefix(one, "422") {
			t.Errorf("%s: the answer to the right guess is\n%s\nand to a wrong guess\n%s", form, one, other)
		}
	}
}

// bring: a writer sends the guessed Secret itself, also with the digest. The answer does not reveal
// whether the guess is right.
func (r intruders) bring(t *testing.T, digest string) {
	const guessed, other = "aHVudGVyMg==", "b3RoZXI="
	entry := func(password string) string {
		return fmt.Sprintf(`{"digest":%q,"object":%s}`, digest, strings.Replace(guessedSecret("json"), guessed, password, 1))
	}
	object := func(password string) string {
		return `{"object":` + strings.Replace(guessedSecret("json"), guessed, password, 1) + `}`
	}
	phases := func(password string) string {
		return `{"spec":{"phases":[{"name":"all","objects":[` + object(password) + `]}]}}`
	}
	for name, way := range map[string]func(password string) attempt{
		"Merge":     func(p string) attempt { return patch("writer", "victim-2", asMerge, phases(p), "") },
		"Strategic": func(p string) attempt { return patch("writer", "victim-2", asStrategic, phases(p), "") },
		"JSONPatch": func(p string) attempt {
			return patch("writer", "victim-2", asJSONPatch, `[{"op":"add","path":"/spec/phases/0/objects/-","value":`+object(p)+`}]`, "")
		},
		"Apply": func(p string) attempt { return patch("writer", "victim-2", asApply, evil("victim-2", object(p)), "") },
		"PUT": func(p string) attempt {
			return attempt{who: "writer", method: http.MethodPut, path: revisionsPath + "/victim-2", contentType: asJSON, body: evil("victim-2", object(p))}
		},
		"Create": func(p string) attempt { return create("creator", evil("evil-1", entry(p)), "") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, dryRun := range []bool{true, false} {
				answer := func(password string) string {
					a := way(password)
					if dryRun {
						a.path += map[bool]string{true: "&", false: "?"}[strings.Contains(a.path, "?")] + "dryRun=All"
					}
					code, text := r.send(t, a)
					return fmt.Sprint(code, " ", text)
				}
				right, wrong := answer(guessed), answer(other)
				if right != wrong || !strings.HasPrefix(right, "403") || strings.Contains(right, "hmac-") {
					t.Errorf("the answer to the right guess is\n%s\nand to a wrong guess\n%s", right, wrong)
				}
			}
		})
	}
}

// intruders has HTTP clients for every user of the attacks.
type intruders struct {
	hosted, direct map[string]*http.Client
	host, port     string
}

func (d door) intruders() intruders {
	d.t.Helper()
	var service struct {
		Spec struct{ Ports []struct{ Port int } }
	}
	if err := json.Unmarshal([]byte(d.MustKubectl("get", "service", "penstock", "-n", "penstock-system", "-o", "json")), &service); err != nil {
		d.t.Fatal(err)
	}
	var api struct{ Spec struct{ CABundle []byte } }
	if err := json.Unmarshal([]byte(d.MustKubectl("get", "apiservice", "v1alpha1.olm.operatorframework.io", "-o", "json")), &api); err != nil {
		d.t.Fatal(err)
	}
	r := intruders{hosted: map[string]*http.Client{}, direct: map[string]*http.Client{}, host: d.Config().Host, port: fmt.Sprintf("https://127.0.0.1:%d", service.Spec.Ports[0].Port)}
	for _, who := range []string{"creator", "writer", "nobody"} {
		config := d.User(who).Config()
		if who == "nobody" {
			config = rest.AnonymousClientConfig(config)
		}
		hosted, err := rest.HTTPClientFor(rest.CopyConfig(config))
		if err != nil {
			d.t.Fatal(err)
		}
		config.ServerName, config.CAData, config.CAFile = "localhost", api.Spec.CABundle, ""
		direct, err := rest.HTTPClientFor(config)
		if err != nil {
			d.t.Fatal(err)
		}
		r.hosted[who], r.direct[who] = hosted, direct
	}
	return r
}

func (r intruders) send(t *testing.T, a attempt) (int, string) {
	t.Helper()
	host, client := r.host, r.hosted[a.who]
	if a.direct {
		host, client = r.port, r.direct[a.who]
	}
	request, err := http.NewRequestWithContext(t.Context(), a.method, host+a.path, bytes.NewReader([]byte(a.body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", a.contentType)
	for name, value := range a.headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("%s %s: %v", a.method, a.path, err)
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s %s: %v", a.method, a.path, err)
	}
	return response.StatusCode, string(text)
}

// listed checks that the threat model lists exactly the attacks of this test.
func (d door) listed(tried map[string][]attempt) {
	page, err := os.ReadFile("../../docs/reference/threat-model.md")
	if err != nil {
		d.t.Fatal(err)
	}
	said := map[string]bool{"GuessedDigest": false, "GuessedSecret": false, "AtTheSameTime": false, "Collection": false}
	for name := range tried {
		said[name] = false
	}
	for _, found := range regexp.MustCompile("`TestDoor/Threats/([A-Za-z]+)`").FindAllStringSubmatch(string(page), -1) {
		if _, ok := said[found[1]]; !ok {
			d.t.Errorf("the page names a test that does not exist: %s", found[0])
		}
		said[found[1]] = true
	}
	for name, named := range said {
		if !named {
			d.t.Errorf("docs/reference/threat-model.md does not name TestDoor/Threats/%s", name)
		}
	}
}
