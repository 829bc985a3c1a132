package accepted

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/right"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":"ns","labels":{"app":"x"}},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"x"}},` +
	`"template":{"metadata":{"labels":{"app":"x","version":"1"}},"spec":{"containers":[{"name":"a","image":"i:1","args":["-v"],"env":[{"name":"A","value":"1"},{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}]},{"name":"b","image":"i:1"}]}}}}`

// case of an update: the manifest before, and what is replaced in it, pair by pair.
type change struct {
	reason string
	before string
	edits  []string
	// unknown is a part of the answer; empty is that the update is accepted.
	unknown string
}

func cases() map[string]change {
	const (
		configMap = `{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"annotations":{"note":"1"},"labels":{"app":"x"},"name":"x","namespace":"ns"}}`
		sealed    = `{"apiVersion":"v1","data":{"a":"1"},"immutable":true,"kind":"ConfigMap","metadata":{"labels":{"app":"x"},"name":"x","namespace":"ns"}}`
		secret    = `{"apiVersion":"v1","data":{"a":"MQ=="},"kind":"Secret","metadata":{"name":"x","namespace":"ns"},"type":"Opaque"}`
		role      = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"x","namespace":"ns"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`
		cluster   = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`
		service   = `{"apiVersion":"v1","kind":"Service","metadata":{"labels":{"app":"x"},"name":"x","namespace":"ns"},"spec":{"ports":[{"port":80}],"selector":{"app":"x"}}}`
		account   = `{"apiVersion":"v1","automountServiceAccountToken":true,"kind":"ServiceAccount","metadata":{"name":"x","namespace":"ns"}}`
	)
	return map[string]change{
		"same":                {"what does not change is taken", configMap, nil, ""},
		"label":               {"a label is a label", configMap, []string{`"app":"x"`, `"app":"y"`}, ""},
		"label-new":           {"one more", configMap, []string{`"app":"x"`, `"app":"x","app.kubernetes.io/version":"v2"`}, ""},
		"labels-gone":         {"or none any more", configMap, []string{`"labels":{"app":"x"},`, ``}, ""},
		"label-bad-value":     {"values of labels are short names", configMap, []string{`"app":"x"`, `"app":"not a label"`}, "refuse a label"},
		"label-bad-key":       {"and so are keys", configMap, []string{`"app":"x"`, `"app/b/c":"x"`}, "refuse a label"},
		"label-number":        {"values are strings", configMap, []string{`"app":"x"`, `"app":1`}, "no map of strings"},
		"label-null":          {"null is no string", configMap, []string{`"app":"x"`, `"app":null`}, "no map of strings"},
		"label-of-kubernetes": {"of Kubernetes' domains nothing is known", configMap, []string{`"app":"x"`, `"topology.kubernetes.io/zone":"a"`}, "topology.kubernetes.io/zone may mean"},
		"annotation":          {"text is text", configMap, []string{`"note":"1"`, `"note":"2"`}, ""},
		"annotation-bad-key":  {"keys have a form", configMap, []string{`"note":"1"`, `"no te":"2"`}, "refuse an annotation"},
		"annotation-large":    {"annotations are bounded", configMap, []string{`"note":"1"`, `"note":"` + strings.Repeat("x", mostAnnotations) + `"`}, "are not judged"},
		"annotation-of-kubernetes": {"annotations of Kubernetes may be validated", configMap,
			[]string{`"note":"1"`, `"app.kubernetes.io/x":"2"`}, "app.kubernetes.io/x may mean"},
		"annotation-of-approval": {"also one whose key is such a domain: definitions in groups of Kubernetes need it", configMap,
			[]string{`"note":"1"`, `"api-approved.kubernetes.io":"2"`}, "api-approved.kubernetes.io may mean"},
		"finalizer": {"finalizers are not judged", configMap, []string{`"name":"x"`, `"finalizers":["example.com/x"],"name":"x"`}, "metadata.finalizers"},
		"owner":     {"nor are owners", configMap, []string{`"name":"x"`, `"name":"x","ownerReferences":[]`}, "metadata.ownerReferences"},

		"data":           {"values of a ConfigMap are free", configMap, []string{`"a":"1"`, `"a":"2","b.txt":"3"`}, ""},
		"data-key":       {"keys are not", configMap, []string{`"a":"1"`, `"a b":"1"`}, "refuse a key"},
		"data-number":    {"values are strings", configMap, []string{`"a":"1"`, `"a":1`}, "no map of strings"},
		"data-null":      {"no data is not the same as null", configMap, []string{`{"a":"1"}`, `null`}, "no map of strings"},
		"binary":         {"base64 is binary data", configMap, []string{`"data"`, `"binaryData":{"z":"AAE="},"data"`}, ""},
		"binary-text":    {"other text is not", configMap, []string{`"data"`, `"binaryData":{"z":"?"},"data"`}, "no base64"},
		"binary-twice":   {"a key is in one of both", configMap, []string{`"data"`, `"binaryData":{"a":"AAE="},"data"`}, "has a key of data"},
		"data-large":     {"objects have a size", configMap, []string{`"a":"1"`, `"a":"` + strings.Repeat("x", mostBytes) + `"`}, "are not judged"},
		"immutable":      {"what is immutable is refused", sealed, []string{`"a":"1"`, `"a":"2"`}, "immutable is set"},
		"immutable-now":  {"becoming so is not judged", configMap, []string{`"kind"`, `"immutable":true,"kind"`}, "immutable"},
		"immutable-meta": {"labels of it may change", sealed, []string{`"app":"x"`, `"app":"y"`}, ""},

		"secret":             {"an opaque Secret is like a ConfigMap", secret, []string{`"MQ=="`, `"Mg=="`}, ""},
		"secret-text":        {"its data are base64", secret, []string{`"MQ=="`, `"?"`}, "no base64"},
		"secret-type":        {"its type is immutable", secret, []string{`"Opaque"`, `"kubernetes.io/tls"`}, "type"},
		"secret-typed":       {"others have a form", strings.Replace(secret, "Opaque", "kubernetes.io/tls", 1), []string{`"MQ=="`, `"Mg=="`}, "type of the Secret"},
		"secret-string":      {"stringData is not judged", secret, []string{`"type"`, `"stringData":{"b":"1"},"type"`}, "stringData"},
		"secret-string-data": {"nor is data beside it", strings.Replace(secret, `"type"`, `"stringData":{"b":"1"},"type"`, 1), []string{`"MQ=="`, `"Mg=="`}, "stringData is set"},

		"account":       {"a boolean is one of two", account, []string{`true`, `false`}, ""},
		"account-text":  {"and no text", account, []string{`true`, `"false"`}, "no boolean"},
		"account-other": {"other fields are not judged", account, []string{`"kind"`, `"imagePullSecrets":[],"kind"`}, "imagePullSecrets"},

		"service-label": {"labels of a Service", service, []string{`"labels":{"app":"x"}`, `"labels":{"app":"y"}`}, ""},
		"service-port":  {"nothing else of it", service, []string{`80`, `81`}, "spec"},

		"image":            {"an image is a reference", deployment, []string{`i:1`, `i:2`}, ""},
		"image-empty":      {"that is not empty", deployment, []string{`"i:1"`, `""`}, "no reference"},
		"image-space":      {"and has no space around it", deployment, []string{`"i:1"`, `" i:1"`}, "no reference"},
		"image-gone":       {"there is one", deployment, []string{`"image":"i:1",`, ``}, "no reference"},
		"args":             {"arguments are words", deployment, []string{`"-v"`, `"-v","--w"`}, ""},
		"args-gone":        {"or none", deployment, []string{`"args":["-v"],`, ``}, ""},
		"args-number":      {"they are strings", deployment, []string{`"-v"`, `1`}, "no list of strings"},
		"args-null":        {"in a list", deployment, []string{`["-v"]`, `null`}, "no list of strings"},
		"command":          {"so is a command", deployment, []string{`"args"`, `"command":["x"],"args"`}, ""},
		"env":              {"a value of a variable", deployment, []string{`"value":"1"`, `"value":"2"`}, ""},
		"env-new":          {"one more variable", deployment, []string{`{"name":"A","value":"1"}`, `{"name":"A","value":"1"},{"name":"B"}`}, ""},
		"env-gone":         {"one less", deployment, []string{`{"name":"A","value":"1"},`, ``}, ""},
		"env-name":         {"with a name that is one", deployment, []string{`"name":"A"`, `"name":"1 A"`}, "not just a name"},
		"env-number":       {"values are strings", deployment, []string{`"value":"1"`, `"value":1`}, "not just a name"},
		"env-twice":        {"server-side apply refuses what is there twice", deployment, []string{`{"name":"A","value":"1"}`, `{"name":"A","value":"1"},{"name":"A"}`}, "occur once"},
		"env-from":         {"what comes from elsewhere is not judged", deployment, []string{`status.podIP`, `status.hostIP`}, "not just a name"},
		"env-from-gone":    {"nor that it goes", deployment, []string{`,{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}`, ``}, "that goes"},
		"replicas":         {"a number of replicas", deployment, []string{`"replicas":1`, `"replicas":0`}, ""},
		"replicas-minus":   {"that is not negative", deployment, []string{`"replicas":1`, `"replicas":-1`}, "no number"},
		"replicas-text":    {"and a number", deployment, []string{`"replicas":1`, `"replicas":"1"`}, "no number"},
		"replicas-half":    {"a whole one", deployment, []string{`"replicas":1`, `"replicas":1.5`}, "no number"},
		"replicas-many":    {"of 32 bits", deployment, []string{`"replicas":1`, `"replicas":4294967296`}, "no number"},
		"replicas-daemon":  {"a DaemonSet has none", strings.Replace(strings.Replace(deployment, "Deployment", "DaemonSet", 1), `"replicas":1,`, ``, 1), []string{`"selector"`, `"replicas":1,"selector"`}, "spec.replicas"},
		"template-label":   {"a label of the pods", deployment, []string{`"version":"1"`, `"version":"2"`}, ""},
		"template-bad":     {"is valid", deployment, []string{`"version":"1"`, `"version":"a b"`}, "refuse a label"},
		"template-escapes": {"the selector goes on selecting them", deployment, []string{`"labels":{"app":"x","version":"1"}`, `"labels":{"app":"y","version":"1"}`}, "does not select"},
		"template-note":    {"annotations of the pods", deployment, []string{`"template":{"metadata":{`, `"template":{"metadata":{"annotations":{"checksum":"2"},`}, ""},
		"template-profile": {"some of which are validated", deployment,
			[]string{`"template":{"metadata":{`, `"template":{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"?"},`}, "may mean"},
		"selector":          {"the selector is immutable", deployment, []string{`"matchLabels":{"app":"x"}`, `"matchLabels":{"app":"y"}`}, "spec.selector"},
		"container-new":     {"no container comes", deployment, []string{`{"name":"b","image":"i:1"}`, `{"name":"b","image":"i:1"},{"name":"c","image":"i:1"}`}, "added or removed"},
		"container-renamed": {"none has another name", deployment, []string{`"name":"b"`, `"name":"c"`}, "other names"},
		"container-port":    {"ports are not judged", deployment, []string{`"args"`, `"ports":[],"args"`}, "ports"},
		"volumes":           {"nor are volumes", deployment, []string{`"spec":{"containers"`, `"spec":{"volumes":[],"containers"`}, "volumes"},
		"strategy":          {"nor the strategy", deployment, []string{`"replicas"`, `"strategy":{"type":"Recreate"},"replicas"`}, "strategy"},

		"role":            {"rules are rules", role, []string{`"get"`, `"get","list"`}, ""},
		"role-verbs":      {"with verbs", role, []string{`["get"]`, `[]`}, "would refuse"},
		"role-groups":     {"of groups", role, []string{`"apiGroups":[""],`, ``}, "would refuse"},
		"role-field":      {"no other fields", role, []string{`"verbs"`, `"verb":["x"],"verbs"`}, "no field"},
		"role-url":        {"a Role has no URLs", role, []string{`"apiGroups":[""],"resources":["pods"]`, `"nonResourceURLs":["/healthz"]`}, "would refuse"},
		"role-null":       {"null is no list", role, []string{`["get"]`, `null`}, "no list"},
		"role-gone":       {"no rules at all are not judged", role, []string{`,"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`, ``}, "no list of rules"},
		"clusterrole-url": {"a ClusterRole has", cluster, []string{`"apiGroups":[""],"resources":["pods"]`, `"nonResourceURLs":["/healthz"]`}, ""},
		"clusterrole-both": {"but not beside resources", cluster,
			[]string{`"resources":["pods"]`, `"resources":["pods"],"nonResourceURLs":["/healthz"]`}, "would refuse"},
		"aggregation": {"what is aggregated is not judged", cluster, []string{`"kind"`, `"aggregationRule":{},"kind"`}, "aggregationRule"},

		"binding": {"labels of a binding", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"labels":{"app":"x"},"name":"x","namespace":"ns"}}`,
			[]string{`"app":"x"`, `"app":"y"`}, ""},

		"custom": {"custom resources have rules of their own", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","namespace":"ns"}}`, nil, "nothing is known"},
		"namespace": {"labels of namespaces mean something", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}`,
			nil, "nothing is known"},
		"version": {"another version of the API is another kind", `{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{"name":"x","namespace":"ns"}}`,
			nil, "nothing is known"},
	}
}

func refOf(t testing.TB, body string) manifest.Ref {
	t.Helper()
	var o struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	group, version, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped {
		group, version = "", group
	}
	return manifest.Ref{ID: manifest.ID{Group: group, Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}, Version: version}
}

func (c change) after(t *testing.T) string {
	t.Helper()
	after := c.before
	for i := 0; i < len(c.edits); i += 2 {
		if !strings.Contains(after, c.edits[i]) {
			t.Fatalf("the case edits %s, which is not there", c.edits[i])
		}
		after = strings.Replace(after, c.edits[i], c.edits[i+1], 1)
	}
	return after
}

func TestJudge(t *testing.T) { judgeAll(t, cases()) }

func judgeAll(t *testing.T, cases map[string]change) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			after := c.after(t)
			got := Judge(refOf(t, after), []byte(c.before), []byte(after))
			if (c.unknown == "") != (got.Unknown == "") || !strings.Contains(got.Unknown, c.unknown) {
				t.Errorf("%s: got %q, want %q", c.reason, got.Unknown, c.unknown)
			}
		})
	}
}

// TestVerdict: what the manifests do not tell is passed on.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		of     string
		quota  bool
		images bool
		right  right.Right
	}{
		"service-label": {of: "services", quota: true}, "image": {of: "deployments", images: true}, "replicas": {of: "deployments"},
		"binding": {of: "rolebindings", right: roleRights("bind", "clusterroles")[0]},
		"role":    {of: "roles", right: roleRights("escalate", "roles")[0]}, "label": {of: "configmaps"},
	} {
		update := cases()[name]
		after := update.after(t)
		got := Judge(refOf(t, after), []byte(update.before), []byte(after))
		if got.Unknown != "" || got.Resource.Resource != c.of || got.Quota != c.quota || got.Images != c.images || (len(got.Rights) > 0) != (c.right.Verb != "") || c.right.Verb != "" && got.Rights[len(got.Rights)-1] != c.right {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNoValues: what is not known is said without values, which may be those of a Secret.
func TestNoValues(t *testing.T) {
	before := `{"apiVersion":"v1","data":{"a":"MQ=="},"kind":"Secret","metadata":{"name":"x","namespace":"ns"}}`
	after := strings.Replace(before, "MQ==", "?hunter2", 1)
	if got := Judge(refOf(t, after), []byte(before), []byte(after)); got.Unknown == "" || strings.Contains(got.Unknown, "hunter2") {
		t.Errorf("%q", got.Unknown)
	}
}

// BenchmarkJudge is of an upgrade of 48 objects: a new image and a new label for each.
func BenchmarkJudge(b *testing.B) {
	after := strings.ReplaceAll(strings.Replace(deployment, `"labels":{"app":"x"}`, `"labels":{"app":"y"}`, 1), "i:1", "i:2")
	ref := manifest.Ref{ID: manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "x"}, Version: "v1"}
	for b.Loop() {
		for range 48 {
			if v := Judge(ref, []byte(deployment), []byte(after)); v.Unknown != "" {
				b.Fatal(v.Unknown)
			}
		}
	}
}

func FuzzJudge(f *testing.F) {
	all := cases()
	maps.Copy(all, definitionCases())
	for _, c := range all {
		f.Add([]byte(c.before), []byte(strings.NewReplacer(c.edits...).Replace(c.before)))
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		for gvk := range kinds {
			Judge(manifest.Ref{ID: manifest.ID{Group: gvk.Group, Kind: gvk.Kind}, Version: gvk.Version}, before, after)
		}
	})
}
