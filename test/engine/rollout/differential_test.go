//go:build integration

package rollout_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/accepted"
	"github.com/penstock-project/penstock/pkg/rollout/definition"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// specimens are manifests of all kinds that updates are judged of, with what their kinds are
// refused for in them.
func specimens() []string {
	const pods = `"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"annotations":{"note":"1"},"labels":{"app":"x","version":"1"}},"spec":{"containers":[` +
		`{"args":["-v"],"env":[{"name":"A","value":"1"},{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}],"image":"i:1","name":"a","ports":[{"containerPort":80,"name":"http"}],"resources":{"limits":{"cpu":"1"}},"volumeMounts":[{"mountPath":"/x","name":"v"}]},` +
		`{"command":["y"],"image":"i:1","name":"b"}],"initContainers":[{"image":"i:1","name":"init"}],"volumes":[{"emptyDir":{},"name":"v"}]}}`
	const rules = `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]},{"apiGroups":["apps"],"resourceNames":["x"],"resources":["deployments"],"verbs":["*"]}]`
	const metadata = `"metadata":{"annotations":{"note":"1"},"labels":{"app":"x"},"name":"NAME","namespace":"NS"}`
	const cluster = `"metadata":{"annotations":{"note":"1"},"labels":{"app":"x"},"name":"NAME"}`
	const binding = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{"kind":"ServiceAccount","name":"x","namespace":"NS"}]`
	return []string{
		`{"apiVersion":"v1","kind":"ConfigMap",` + metadata + `,"data":{"a":"1","b.yaml":"x: y"},"binaryData":{"c":"AAE="}}`,
		`{"apiVersion":"v1","kind":"ConfigMap",` + metadata + `,"data":{"a":"1"},"immutable":true}`,
		`{"apiVersion":"v1","kind":"Secret",` + metadata + `,"data":{"a":"MQ=="},"type":"Opaque"}`,
		`{"apiVersion":"v1","kind":"Secret",` + metadata + `,"data":{"a":"MQ=="},"immutable":true}`,
		`{"apiVersion":"v1","kind":"Secret",` + metadata + `,"data":{"tls.crt":"MQ==","tls.key":"MQ=="},"type":"kubernetes.io/tls"}`,
		`{"apiVersion":"v1","kind":"Secret",` + metadata + `,"stringData":{"a":"1"}}`,
		`{"apiVersion":"v1","kind":"ServiceAccount",` + metadata + `,"automountServiceAccountToken":true}`,
		`{"apiVersion":"v1","kind":"Service",` + metadata + `,"spec":{"ports":[{"port":80,"targetPort":"http"}],"selector":{"app":"x"}}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment",` + metadata + `,"spec":{"replicas":1,` + pods + `}}`,
		`{"apiVersion":"apps/v1","kind":"StatefulSet",` + metadata + `,"spec":{"replicas":1,"serviceName":"x",` + pods + `}}`,
		`{"apiVersion":"apps/v1","kind":"DaemonSet",` + metadata + `,"spec":{` + pods + `}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role",` + metadata + `,` + rules + `}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",` + cluster + `,` + rules + `}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",` + cluster + `,"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"NAME"}}]}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",` + metadata + `,` + binding + `}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",` + cluster + `,` + binding + `}`,
		`{"apiVersion":"batch/v1","kind":"CronJob",` + metadata + `,"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"image":"i:1","name":"a"}],"restartPolicy":"Never"}}}},"schedule":"0 0 * * *"}}`,
		`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget",` + metadata + `,"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy",` + metadata + `,"spec":{"podSelector":{"matchLabels":{"app":"x"}},"policyTypes":["Ingress"]}}`,
		`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress",` + metadata + `,"spec":{"defaultBackend":{"service":{"name":"x","port":{"number":80}}}}}`,
		`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",` + metadata + `,"spec":{"maxReplicas":2,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}}}`,
	}
}

// mutation changes a manifest in some way, good or bad.
type mutation struct{ *rand.Rand }

// of returns a changed copy of a manifest.
func (m mutation) of(body map[string]any) map[string]any {
	changed := runtime.DeepCopyJSON(body)
	for range 1 + m.IntN(3) {
		if changed["kind"] == "CustomResourceDefinition" && m.IntN(4) > 0 {
			m.definition(changed)
			if m.IntN(2) == 0 {
				return changed
			}
			continue
		}
		switch m.IntN(4) {
		case 0:
			m.known(changed)
		case 1:
			m.labels(changed)
		default:
			m.anywhere(changed, m.IntN(6))
		}
	}
	return changed
}

// values are good for some fields and bad for others.
func (m mutation) value() any {
	long := strings.Repeat("x", 64)
	return []any{
		"", "1", "x", "y", "a b", " i:2", "i:2", "-1", "é", long, long + long + long + long, "a/b", "example.com/x", "AAE=", "?", "Opaque", "true", "\n", "A=B", "..", "x.", "\x7f", "\u0085\ufffe",
		int64(0), int64(1), int64(-1), int64(1) << 40, 1.5, true, false, nil, map[string]any{}, []any{}, []any{"x"}, []any{int64(1)}, []any{nil}, map[string]any{"a": "1"}, map[string]any{"app": "x"}, map[string]any{"a": int64(1)},
		map[string]any{"name": "A"}, []any{map[string]any{"name": "A"}},
	}[m.IntN(41)]
}

func (m mutation) key() string {
	return []string{"app", "version", "a", "a b", "A", "name", "note", "api-approved.kubernetes.io", "app.kubernetes.io/version", "example.com/x", "example.com/x/y", "kubernetes.io/x", "-", "", "..", "a..b", "é", "env", "args", "image",
		"immutable", "type", "stringData", "binaryData", "data", strings.Repeat("k", 64), strings.Repeat("k", 254)}[m.IntN(27)]
}

// anywhere changes, adds or removes something at some depth.
func (m mutation) anywhere(at any, depth int) {
	switch at := at.(type) {
	case map[string]any:
		keys := make([]string, 0, len(at))
		for key := range at {
			if key != "apiVersion" && key != "kind" && key != "name" && key != "namespace" {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		if len(keys) == 0 || m.IntN(12) == 0 {
			at[m.key()] = m.value()
			return
		}
		key := keys[m.IntN(len(keys))]
		if depth > 0 && (isComposite(at[key])) {
			m.anywhere(at[key], depth-1)
			return
		}
		switch m.IntN(6) {
		case 0:
			delete(at, key)
		case 1:
			at[m.key()] = at[key]
		case 2:
			if list, is := at[key].([]any); is && len(list) > 0 {
				at[key] = append(slices.Clone(list), runtime.DeepCopyJSONValue(list[m.IntN(len(list))]))
				return
			}
			fallthrough
		default:
			at[key] = m.value()
		}
	case []any:
		if len(at) == 0 {
			return
		}
		i := m.IntN(len(at))
		switch {
		case depth > 0 && isComposite(at[i]) && m.IntN(8) > 0:
			m.anywhere(at[i], depth-1)
		case m.IntN(3) == 0:
			j := m.IntN(len(at))
			at[i], at[j] = at[j], at[i]
		default:
			at[i] = m.value()
		}
	}
}

func isComposite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// labels changes labels or annotations, of the object or of its pods.
func (m mutation) labels(body map[string]any) {
	metadata, _ := body["metadata"].(map[string]any)
	if spec, is := body["spec"].(map[string]any); is && m.IntN(2) == 0 {
		if template, is := spec["template"].(map[string]any); is {
			metadata, _ = template["metadata"].(map[string]any)
		}
	}
	kind := []string{"labels", "annotations"}[m.IntN(2)]
	entries, is := metadata[kind].(map[string]any)
	if !is {
		return
	}
	value := m.value()
	if m.IntN(3) > 0 {
		value = []string{"2", "x.y", "v1-2"}[m.IntN(3)]
	}
	if m.IntN(40) == 0 {
		value = strings.Repeat("x", 270<<10)
	}
	entries[m.key()] = value
}

// known changes what upgrades do: images, arguments, variables, replicas, data, rules.
func (m mutation) known(body map[string]any) {
	if data, is := body["data"].(map[string]any); is {
		data[m.key()] = []any{"2", "Mg==", strings.Repeat("x", 300<<10), m.value()}[m.IntN(4)]
	}
	if rules, is := body["rules"].([]any); is && len(rules) > 0 {
		rule, _ := rules[m.IntN(len(rules))].(map[string]any)
		if rule == nil {
			return
		}
		field := []string{"verbs", "resources", "apiGroups", "resourceNames", "nonResourceURLs"}[m.IntN(5)]
		rule[field] = []any{[]any{"x"}, []any{}, []any{"a", "b"}, m.value()}[m.IntN(4)]
	}
	spec, _ := body["spec"].(map[string]any)
	template, is := spec["template"].(map[string]any)
	if !is {
		return
	}
	if m.IntN(4) == 0 {
		spec["replicas"] = []any{int64(0), int64(3), m.value()}[m.IntN(3)]
	}
	pod, _ := template["spec"].(map[string]any)
	containers, _ := pod[[]string{"containers", "initContainers"}[m.IntN(2)]].([]any)
	if len(containers) == 0 {
		return
	}
	container, is := containers[m.IntN(len(containers))].(map[string]any)
	if !is {
		return
	}
	switch m.IntN(4) {
	case 0:
		container["image"] = []any{"i:2", "registry.example.com/a/b@sha256:0", m.value()}[m.IntN(3)]
	case 1:
		container[[]string{"args", "command"}[m.IntN(2)]] = []any{[]any{"-x", ""}, []any{}, m.value()}[m.IntN(3)]
	default:
		env, _ := container["env"].([]any)
		one := map[string]any{"name": []any{"A", "B", "IP", "C.d", "1", m.value()}[m.IntN(6)]}
		if m.IntN(4) > 0 {
			one["value"] = []any{"2", "$(A)", m.value()}[m.IntN(3)]
		}
		if len(env) > 0 && m.IntN(2) == 0 {
			env = slices.Clone(env)
			env[m.IntN(len(env))] = one
		} else {
			env = append(slices.Clone(env), one)
		}
		container["env"] = env
	}
}

// TestKnownChanges compares the judge with a kube-apiserver: what it calls accepted, the server
// accepts by dry-run, onto an object as our last write left it.
func TestKnownChanges(t *testing.T) {
	t.Parallel()
	w := start(t)
	rounds, seed := 60, uint64(1)
	if os.Getenv("FULL") == "1" {
		rounds, seed = 3000, rand.Uint64()
	}
	covered := map[schema.GroupVersionKind]bool{}
	client, err := targetclient.New(targetclient.Options{Config: w.Config()})
	if err != nil {
		t.Fatal(err)
	}
	w.in(t).create(namespace("known"))
	for i, specimen := range slices.Concat(specimens(), definitions()) {
		body := strings.NewReplacer("NAME", fmt.Sprint("known-", i), "NS", "known").Replace(specimen)
		before, err := manifest.Digester{SecretKey: []byte("key of the test")}.FromJSON([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		covered[before.Ref.GroupVersionKind()] = true
		t.Run(fmt.Sprintf("%s-%d", before.Ref.Kind, i), func(t *testing.T) {
			t.Parallel()
			d := differential{t: t, client: client, mutation: mutation{rand.New(rand.NewPCG(seed, uint64(i)))}}
			if definition.Is(before.Ref.APIVersion(), before.Ref.Kind) {
				d.run(before, 4*rounds) // there is more in them
			} else {
				d.run(before, rounds)
			}
			t.Logf("seed %d: of %d changes %d are known to be accepted; the server refused %d of the others", seed, d.tried, d.known, d.refused)
			if d.known == 0 || d.refused == 0 {
				t.Errorf("nothing is known, or nothing was refused: the test sees nothing")
			}
		})
	}
	for _, kind := range accepted.Kinds() {
		if !covered[kind] {
			t.Errorf("%s is judged, and no specimen of it is here", kind)
		}
	}
}

type differential struct {
	t      *testing.T
	client *targetclient.Client
	mutation
	tried, known, refused int
}

func (d *differential) run(before manifest.Object, rounds int) {
	d.t.Helper()
	live, err := d.apply(before, targetclient.ApplyOptions{CreateOnly: true})
	if err != nil {
		d.t.Fatalf("making the specimen: %v", err)
	}
	var content map[string]any
	if err := json.Unmarshal(before.JSON, &content); err != nil {
		d.t.Fatal(err)
	}
	for range rounds {
		raw, err := json.Marshal(d.of(normal(content)))
		if err != nil {
			d.t.Fatal(err)
		}
		after, err := manifest.Digester{SecretKey: []byte("key of the test")}.FromJSON(raw)
		if err != nil || after.Ref.ID != before.Ref.ID || after.Ref.Version != before.Ref.Version || after.Ref.Digest == before.Ref.Digest {
			continue // no manifest, or that of another object
		}
		d.tried++
		verdict := accepted.Judge(after.Ref, before.JSON, after.JSON)
		_, err = d.apply(after, targetclient.ApplyOptions{UID: live.UID, ResourceVersion: live.ResourceVersion, DryRun: true})
		for apierrors.IsConflict(err) {
			// A controller wrote its status meanwhile.
			if live, err = d.client.ReadMetadata(d.t.Context(), before.Ref); err != nil {
				d.t.Fatal(err)
			}
			if seen := names().Observe(live); !seen.Sole {
				d.t.Fatalf("somebody else has written to the specimen: %+v", live.ManagedFields)
			}
			_, err = d.apply(after, targetclient.ApplyOptions{UID: live.UID, ResourceVersion: live.ResourceVersion, DryRun: true})
		}
		switch {
		case verdict.Unknown == "" && err != nil:
			d.t.Errorf("known to be accepted, and refused: %v\nbefore: %s\nafter:  %.4000s", err, before.JSON, after.JSON)
		case verdict.Unknown == "":
			d.known++
		case err != nil:
			d.refused++
		}
	}
}

// normal is a copy with whole numbers, as manifests are decoded.
func normal(content map[string]any) map[string]any {
	raw, err := json.Marshal(content)
	if err != nil {
		panic(err) // it was JSON
	}
	var out map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	if err := decoder.Decode(&out); err != nil {
		panic(err)
	}
	return out
}

// apply is what the engine does: the manifest with our marks.
func (d *differential) apply(object manifest.Object, options targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	d.t.Helper()
	manifests := rollout.Manifests{Bodies: bodies{object.Ref.Digest: object.JSON}, Names: names(), Chain: "known"}
	body, err := manifests.Without(d.t.Context(), stage.Step{Ref: object.Ref}, nil)
	if err != nil {
		return nil, err
	}
	options.FieldManager = cmp.Or(options.FieldManager, names().ManagerPrefix+"known")
	return d.client.Apply(d.t.Context(), object.Ref, body, options)
}

type bodies map[manifest.Digest][]byte

func (b bodies) Body(_ context.Context, ref manifest.Ref) ([]byte, error) { return b[ref.Digest], nil }
