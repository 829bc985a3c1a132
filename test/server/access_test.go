//go:build integration

package server_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// identity is an impersonated user with RBAC rights.
type identity struct {
	groups []string
	// rules are the rules of the user's ClusterRole, in YAML.
	rules string
	// sees lists the words that the user may see.
	sees []string
}

// These words are planted in the readable content.
const (
	secretValue  = hush + "plain"
	secretName   = "alpha-credentials"
	alphaContent = "alpha-content"
	betaContent  = "beta-content"
	betaName     = "beta-settings"
	betaCause    = "beta-cause"
)

func marks() []string {
	return []string{hush, hushEncoded, secretName, alphaContent, betaContent, betaName, betaCause}
}

func identities() map[string]identity {
	const group = "apiGroups: [olm.operatorframework.io]"
	all := "[" + strings.Join([]string{"diff", "history", "manifests", "status"}, ", clusterextensionrevisions/") + "]"
	all = strings.Replace(all, "[", "[clusterextensionrevisions/", 1)
	ofAlpha := "resourceNames: [alpha-1, alpha-2]"
	return map[string]identity{
		"system:anonymous": {groups: []string{"system:unauthenticated"}},
		"nobody":           {groups: []string{"system:authenticated"}},
		"lister": {
			groups: []string{"system:authenticated"},
			rules:  `[{` + group + `, resources: [clusterextensionrevisions], verbs: [get, list, watch]}]`,
			sees:   []string{secretName, betaName, betaCause},
		},
		"reader": {
			groups: []string{"system:authenticated"},
			rules: `[{` + group + `, resources: [clusterextensionrevisions, revisiondiffs, revisionhistories, revisionmanifests], verbs: [get, list, watch]},
 {` + group + `, resources: ` + all + `, verbs: [get]}, {` + group + `, resources: [clusterextensionrevisions, clusterextensionrevisions/rollback, clusterextensionrevisions/proposal], verbs: [create]}]`,
			sees: []string{secretName, alphaContent, betaContent, betaName, betaCause},
		},
		"alpha": {
			groups: []string{"system:authenticated"},
			rules: `[{` + group + `, resources: [clusterextensionrevisions], ` + ofAlpha + `, verbs: [get, list, watch]},
 {` + group + `, resources: ` + all + `, ` + ofAlpha + `, verbs: [get]},
 {` + group + `, resources: [clusterextensionrevisions/rollback], ` + ofAlpha + `, verbs: [create]}, {` + group + `, resources: [clusterextensionrevisions], verbs: [create]},
 {` + group + `, resources: [revisionhistories], resourceNames: [alpha], verbs: [get]}, {` + group + `, resources: [revisiondiffs, revisionmanifests], verbs: [get]}]`,
			sees: []string{secretName, alphaContent},
		},
		// These users can write Secrets, but not read them.
		"operator": {
			groups: []string{"system:authenticated"},
			rules: `[{` + group + `, resources: [clusterextensionrevisions, clusterextensionrevisions/rollback, clusterextensionrevisions/proposal], verbs: [get, create]},
 {` + group + `, resources: [clusterextensionrevisions/diff], verbs: [get]},
 {apiGroups: [""], resources: [configmaps], verbs: [get, create, patch, delete]}, {apiGroups: [""], resources: [secrets], verbs: [create, patch, delete]}]`,
			sees: []string{secretName, alphaContent, betaContent, betaName, betaCause},
		},
		"admin": {groups: []string{"system:masters"}, sees: marks()},
	}
}

// read is a read, and the users who get an answer. Other users get 403.
type read struct {
	path string
	body string // for a POST
	may  []string
	// answers is the status code of an answer, if it is not 200.
	answers int
	// hiddenFields are hidden from all users, also from users who get an answer.
	hiddenFields []string
	// refused users get 403, with the names of the objects that they cannot write.
	refused []string
	// hidesName lists the users who cannot get the Secret. Its name is hidden from them.
	hidesName []string
}

func reads() []read {
	const at = "/apis/olm.operatorframework.io/v1alpha1"
	const cers = at + "/clusterextensionrevisions"
	values := []string{hush, hushEncoded}
	everybody, readers, whole := []string{"lister", "reader", "alpha", "admin"}, []string{"reader", "alpha", "admin"}, []string{"reader", "admin"}
	differs, wholeDiffs := append(slices.Clone(readers), "operator"), append(slices.Clone(whole), "operator")
	blind := []string{"reader", "alpha", "operator"}
	// alpha-3 would delete all objects of alpha-2.
	const proposed = `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"alpha-3"},"spec":{"revision":3,"lifecycleState":"Paused"}}`
	return []read{
		{path: cers, may: []string{"lister", "reader", "admin"}, hiddenFields: values},
		{path: cers + "?watch=true&timeoutSeconds=1", may: []string{"lister", "reader", "admin"}, hiddenFields: values},
		{path: cers + "?fieldSelector=metadata.name%3Dalpha-1", may: everybody, hiddenFields: values},
		{path: cers + "?fieldSelector=metadata.name%3Dalpha-1&watch=true&timeoutSeconds=1", may: everybody, hiddenFields: values},
		{path: cers + "?fieldSelector=metadata.name%3Dbeta-1", may: []string{"lister", "reader", "admin"}},
		{path: cers + "?labelSelector=penstock.dev/chain%3Dbeta", may: []string{"lister", "reader", "admin"}},
		{path: cers + "/alpha-1", may: append(slices.Clone(everybody), "operator"), hiddenFields: values},
		{path: cers + "/beta-1", may: []string{"lister", "reader", "operator", "admin"}},
		{path: cers + "/alpha-2/status", may: readers, hiddenFields: values},
		{path: cers + "/beta-2/status", may: whole},

		{path: cers + "/alpha-2/diff", may: differs, hiddenFields: values, hidesName: blind},
		{path: cers + "/alpha-1/diff", may: differs, hiddenFields: values, hidesName: blind},
		{path: cers + "/alpha-2/diff?objectKind=Secret&objectName=" + secretName, may: differs, hiddenFields: values, hidesName: blind},
		{path: cers + "/beta-2/diff", may: wholeDiffs},
		{path: cers + "/beta-9/diff", may: wholeDiffs, answers: 404},
		{path: at + "/revisiondiffs/alpha-1..alpha-2", may: readers, hiddenFields: values, hidesName: blind},
		{path: at + "/revisiondiffs/alpha-2..alpha-1", may: readers, hiddenFields: values, hidesName: blind},
		{path: at + "/revisiondiffs/alpha-1..", may: readers, hiddenFields: values, hidesName: blind},
		{path: at + "/revisiondiffs/..alpha-2", may: readers, hiddenFields: values, hidesName: blind},
		{path: at + "/revisiondiffs/..alpha-1", may: readers, hiddenFields: values, hidesName: blind},
		{path: at + "/revisiondiffs/alpha-1..beta-1", may: whole, hiddenFields: values, hidesName: blind},
		{path: at + "/revisiondiffs/beta-1..alpha-1", may: whole, hiddenFields: values, hidesName: blind},
		{path: at + "/revisiondiffs/beta-1..beta-2", may: whole},
		{path: at + "/revisiondiffs/beta-1..", may: whole},
		{path: at + "/revisiondiffs/..beta-2", may: whole},
		{path: at + "/revisiondiffs/alpha-1..beta-9", may: whole, answers: 404},
		{path: at + "/revisiondiffs/beta-9..alpha-1", may: whole, answers: 404},

		{path: cers + "/alpha-1/history", may: readers, hiddenFields: append(slices.Clone(values), secretName)},
		{path: cers + "/beta-1/history", may: whole},
		{path: at + "/revisionhistories/alpha", may: readers, hiddenFields: append(slices.Clone(values), secretName)},
		{path: at + "/revisionhistories/beta", may: whole},

		{path: cers + "/alpha-1/manifests", may: readers},
		{path: cers + "/alpha-1/manifests?objectKind=Secret", may: readers},
		{path: cers + "/beta-1/manifests", may: whole},
		{path: at + "/revisionmanifests/alpha-1:ConfigMap:default:alpha-settings", may: readers, hiddenFields: append(slices.Clone(values), secretName)},
		{path: at + "/revisionmanifests/alpha-1:Secret:default:" + secretName, may: []string{"admin"}},
		{path: at + "/revisionmanifests/alpha-1:Secret:default:no-such-secret", may: []string{"admin"}, answers: 404},
		{path: at + "/revisionmanifests/beta-1:ConfigMap:default:" + betaName, may: whole},
		{path: at + "/revisionmanifests/beta-1:ConfigMap:default:no-such-map", may: whole, answers: 404},

		{path: cers + "/alpha-1/rollback?dryRun=All", body: "{}", may: []string{"operator", "admin"}, refused: []string{"reader", "alpha"}, answers: 201, hiddenFields: values, hidesName: blind},
		{path: cers + "/beta-1/rollback?dryRun=All", body: "{}", may: []string{"operator", "admin"}, refused: []string{"reader"}, answers: 201},
		{path: cers + "/alpha-3/proposal", body: proposed, may: []string{"operator", "admin"}, refused: []string{"reader"}, answers: 201, hiddenFields: values, hidesName: []string{"operator"}},
		{path: cers + "/beta-2/rollback?dryRun=All", body: "{}", may: []string{"reader", "operator", "admin"}, answers: 409},
	}
}

// live also reads the cluster. A user who cannot get and patch an object sees nothing of it. A user
// who cannot read the revision is refused.
func live() []read {
	const at = "/apis/olm.operatorframework.io/v1alpha1"
	return []read{
		{path: at + "/revisiondiffs/alpha-2..live", may: []string{"reader", "alpha", "admin"}, hiddenFields: []string{hush, hushEncoded}, hidesName: []string{"reader", "alpha"}},
		{path: at + "/revisiondiffs/beta-2..live", may: []string{"reader", "admin"}},
	}
}

// identities sends each read as each user. No answer, table, warning or error may show a user
// forbidden content.
func (s secrecy) identities() {
	for name, content := range map[string]string{"alpha": alphaContent, "beta": betaContent} {
		for number := 1; number <= 2; number++ {
			s.MustKubectlInput(chainRevision(name, number, content), "create", "-f", "-")
		}
	}
	known := identities()
	for name, who := range known {
		if who.rules != "" {
			s.MustKubectlInput(roleFor(name, who.rules), "create", "-f", "-")
		}
	}
	clients := map[string]*http.Client{}
	for name, who := range known {
		config := s.Config()
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: who.groups}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			s.t.Fatal(err)
		}
		clients[name] = client
	}
	host := s.Config().Host
	eventually(s.t, "the roles", func() error {
		for _, name := range []string{"lister", "reader", "alpha", "operator"} {
			got := ask(s.t, clients[name], host, "application/json", read{path: "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/alpha-1"})
			if got.code != http.StatusOK {
				return fmt.Errorf("%s: %d", name, got.code)
			}
		}
		return nil
	})

	seen := map[string]map[string]bool{}
	for _, r := range append(reads(), live()...) {
		s.t.Run(strings.TrimPrefix(r.path, "/apis/olm.operatorframework.io/v1alpha1/"), func(t *testing.T) {
			names := slices.Sorted(maps.Keys(known))
			answers := make([][]answer, len(names))
			var asking sync.WaitGroup
			for i, name := range names {
				asking.Go(func() {
					for _, accept := range []string{"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
						answers[i] = append(answers[i], ask(t, clients[name], host, accept, r))
					}
				})
			}
			asking.Wait()
			for i, name := range names {
				if seen[name] == nil {
					seen[name] = map[string]bool{}
				}
				for _, got := range answers[i] {
					r.judge(t, name, known[name], got)
					for _, mark := range marks() {
						seen[name][mark] = seen[name][mark] || strings.Contains(got.told, mark)
					}
				}
			}
		})
	}
	// Each user must also see the permitted content. Otherwise the test proves nothing.
	for name, who := range known {
		for _, mark := range who.sees {
			if !seen[name][mark] && mark != hush {
				s.t.Errorf("%s may see %q and never does", name, mark)
			}
		}
	}
}

// answer is the complete answer that a user gets.
type answer struct {
	code int
	told string
}

func ask(t *testing.T, client *http.Client, host, accept string, r read) answer {
	t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if r.body != "" {
		method, body = http.MethodPost, strings.NewReader(r.body)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, host+r.path, body)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("%s: %v", r.path, err)
		return answer{}
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil && !strings.Contains(r.path, "watch=true") {
		t.Errorf("%s: %v", r.path, err)
	}
	told := string(content) + strings.Join(response.Header.Values("Warning"), "\n")
	// An error may repeat parts of the request.
	for _, part := range strings.FieldsFunc(r.path, func(c rune) bool { return strings.ContainsRune("/?&=:", c) }) {
		if response.StatusCode >= http.StatusBadRequest {
			told = strings.ReplaceAll(told, part, "")
		}
	}
	return answer{response.StatusCode, told}
}

func (r read) judge(t *testing.T, name string, who identity, got answer) {
	t.Helper()
	want := http.StatusForbidden
	if slices.Contains(r.may, name) {
		want = http.StatusOK
		if r.answers != 0 {
			want = r.answers
		}
	}
	if got.code != want {
		t.Errorf("%s gets %d, want %d: %s", name, got.code, want, got.told)
	}
	for _, mark := range marks() {
		hidden := !slices.Contains(who.sees, mark) || slices.Contains(r.hiddenFields, mark) ||
			want == http.StatusForbidden && !slices.Contains(r.refused, name) || want != http.StatusForbidden && mark == secretName && slices.Contains(r.hidesName, name)
		if hidden && strings.Contains(got.told, mark) {
			t.Errorf("%s sees %q: %s", name, mark, got.told)
		}
	}
}

// chainRevision returns a revision with names and content of its chain only. It is paused, so
// nothing is rolled out.
func chainRevision(chain string, number int, content string) string {
	settings := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-settings, namespace: default}, data: {a: %s-%d}}", chain, content, number)
	objects := "    - object: " + settings
	if chain == "alpha" {
		objects += fmt.Sprintf("\n    - object: {apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: default}, stringData: {a: %s%d}, data: {b: %s}}",
			secretName, secretValue, number, encoded(secretValue+fmt.Sprint(number)))
	}
	return fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata:
  name: %[1]s-%[2]d
  annotations: {kubernetes.io/change-cause: %[1]s-cause}
spec:
  revision: %[2]d
  lifecycleState: Paused
  phases:
  - name: all
    objects:
%[3]s
`, chain, number, objects)
}

func roleFor(name, rules string) string {
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: secrecy-%[1]s}
rules: %[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: secrecy-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: secrecy-%[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, name, rules)
}
