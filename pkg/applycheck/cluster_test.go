package applycheck

import (
	"context"
	"errors"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// fakeCluster has the types of a document, and counts requests.
type fakeCluster struct {
	document    string
	err         error
	asked, anew int
}

func (c *fakeCluster) TypeOf(_ context.Context, kind runtimeschema.GroupVersionKind, fresh bool) (*Type, error) {
	c.asked++
	if fresh {
		c.anew++
	}
	if c.err != nil || c.document == "" {
		return nil, c.err
	}
	types, err := NewOpenAPI([]byte(c.document))
	if err != nil {
		return nil, err
	}
	return types.TypeOf(kind), nil
}

// newerConfigMaps is a document in which ConfigMap has one more field.
const newerConfigMaps = `{"components":{"schemas":{"ConfigMap":{"type":"object","x-kubernetes-group-version-kind":[{"group":"","kind":"ConfigMap","version":"v1"}],"properties":{
"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"data":{"type":"object","additionalProperties":{"type":"string"}},"novelty":{"type":"string"}}}}}}`

// lamps is a document with a custom resource whose schema has no status. An API server adds the
// status path if the kind has the subresource.
func lamps(path string) string {
	return `{"components":{"schemas":{"Lamp":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Lamp","version":"v1"}],"properties":{
"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}},
"paths":{"/apis/example.com/v1/namespaces/{namespace}/lamps/{name}` + path + `":{"parameters":[],"get":{"x-kubernetes-group-version-kind":{"group":"example.com","kind":"Lamp","version":"v1"}}}}}`
}

// TestCheckWithCluster: findings by this program's types count if the cluster's types agree.
func TestCheckWithCluster(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	lamp := "apiVersion: example.com/v1\nkind: Lamp\nmetadata: {name: a}\nstatus: {on: true}\n"
	thing := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {a: 1}\n"
	cases := map[string]struct {
		reason, object string
		cluster        *fakeCluster
		found          int
		unsure         bool
		asked, anew    int
	}{
		"Fine":      {reason: "what is fine costs no question", object: configMap + "data: {a: b}\n", cluster: &fakeCluster{}},
		"Newer":     {reason: "a newer cluster has the field", object: configMap + "novelty: x\n", cluster: &fakeCluster{document: newerConfigMaps}, asked: 1, anew: 1},
		"Agrees":    {reason: "the cluster does not have it either", object: configMap + "nonsense: x\n", cluster: &fakeCluster{document: newerConfigMaps}, found: 1, asked: 1, anew: 1},
		"Silent":    {reason: "nobody knows whether the cluster is newer", object: configMap + "novelty: x\n", cluster: &fakeCluster{err: errors.New("away")}, found: 1, unsure: true, asked: 1, anew: 1},
		"Duplicate": {reason: "keys of lists stay what they are", object: pod("env: [{name: A}, {name: A}]"), cluster: &fakeCluster{err: errors.New("away")}, found: 1, asked: 1, anew: 1},
		"Value":     {reason: "documents do not say what a quantity is", object: pod("resources: {limits: {cpu: many}}"), cluster: &fakeCluster{}, found: 1, asked: 1, anew: 1},
		"Content":   {reason: "status of a kind without the subresource is a field as any other", object: lamp, cluster: &fakeCluster{document: lamps("")}, found: 1, asked: 2, anew: 1},
		"Status":    {reason: "status of a kind with the subresource is not applied", object: lamp, cluster: &fakeCluster{document: lamps("/status")}, asked: 1},
		"Foreign":   {reason: "a kind that the cluster does not have is not checked", object: thing, cluster: &fakeCluster{}, asked: 1},
		"Away":      {reason: "nor one of a cluster that is away", object: thing, cluster: &fakeCluster{err: errors.New("away")}, asked: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refusals, err := Check(context.Background(), builtin(t), tc.cluster, []manifest.Object{*object(t, tc.object)})
			if err != nil {
				t.Fatal(err)
			}
			found, unsure := 0, false
			for _, refusal := range refusals {
				found += len(refusal.List)
				unsure = unsure || refusal.Unsure
			}
			if found != tc.found || unsure != tc.unsure {
				t.Errorf("%s: %d findings, unsure %t: %v", tc.reason, found, unsure, refusals)
			}
			if tc.cluster.asked != tc.asked || tc.cluster.anew != tc.anew {
				t.Errorf("%s: asked %d times, %d of them for fresh types", tc.reason, tc.cluster.asked, tc.cluster.anew)
			}
		})
	}
}

// TestCheckAsksOnce: an unavailable cluster is asked once, for any number of kinds.
func TestCheckAsksOnce(t *testing.T) {
	var objects []manifest.Object
	for _, group := range []string{"a.io", "b.io", "c.io"} {
		objects = append(objects, *object(t, "apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: a}\n"))
	}
	away := &fakeCluster{err: errors.New("away")}
	if _, err := Check(context.Background(), builtin(t), away, objects); err != nil || away.asked != 1 {
		t.Errorf("asked %d times: %v", away.asked, err)
	}
}
