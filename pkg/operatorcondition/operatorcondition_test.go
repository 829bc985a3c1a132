package operatorcondition

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	read := &unstructured.Unstructured{}
	content, err := yaml.YAMLToJSON([]byte("apiVersion: operators.coreos.com/v2\nkind: OperatorCondition\n" + text))
	if err == nil {
		err = read.UnmarshalJSON(content) // integers are int64, as clients decode them
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestHolds(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	const no = "spec: {conditions: [{type: Upgradeable, status: 'False', reason: Migrating, message: moving}]"
	for name, tc := range map[string]struct {
		reason, object string
		// says lists parts of the expected message; empty if the condition does not hold the
		// upgrade.
		says []string
	}{
		"None":             {"an operator that says nothing can be upgraded", "spec: {}", nil},
		"Other":            {"other conditions hold nothing", "spec: {conditions: [{type: Ready, status: 'False'}]}", nil},
		"True":             {"the operator can be upgraded", "spec: {conditions: [{type: Upgradeable, status: 'True'}]}", nil},
		"False":            {"it cannot", no + "}", []string{"OperatorCondition ns/op", "Upgradeable=False (Migrating): moving"}},
		"Unknown":          {"unknown holds", "spec: {conditions: [{type: Upgradeable, status: Unknown}]}", []string{"Upgradeable=Unknown"}},
		"Unset":            {"a condition without a status holds", "spec: {conditions: [{type: Upgradeable}]}", []string{"Upgradeable="}},
		"Unreadable":       {"one that cannot be read holds", "spec: {conditions: none}", []string{"cannot be read"}},
		"Status":           {"v1 has the condition in status", "status: {conditions: [{type: Upgradeable, status: 'False', observedGeneration: 3}]}", []string{"Upgradeable=False"}},
		"StatusTrue":       {"a current one releases", "status: {conditions: [{type: Upgradeable, status: 'True', observedGeneration: 3}]}", nil},
		"Outdated":         {"an outdated one holds, also when it is True", "status: {conditions: [{type: Upgradeable, status: 'True', observedGeneration: 2}]}", []string{"generation 2", "generation 3"}},
		"SpecFirst":        {"the copy in status does not count where spec has the condition", "spec: {conditions: [{type: Upgradeable, status: 'True'}]}\nstatus: {conditions: [{type: Upgradeable, status: 'False', observedGeneration: 3}]}", nil},
		"Override":         {"an override releases", no + ", overrides: [{type: Upgradeable, status: 'True', lastTransitionTime: '2026-11-28T11:00:00Z'}]}", nil},
		"OverrideLast":     {"it counts until its end", no + ", overrides: [{type: Upgradeable, status: 'True', lastTransitionTime: '2026-11-21T12:00:01Z'}]}", nil},
		"OverrideEnded":    {"it ends", no + ", overrides: [{type: Upgradeable, status: 'True', lastTransitionTime: '2026-11-21T12:00:00Z'}]}", []string{"Upgradeable=False", "2026-11-28T12:00:00Z"}},
		"OverrideFuture":   {"it does not begin in the future: it would last longer", no + ", overrides: [{type: Upgradeable, status: 'True', lastTransitionTime: '2036-11-21T12:00:00Z'}]}", []string{"Upgradeable=False", "2036-11-21"}},
		"OverrideNoTime":   {"one that has no end does not count", no + ", overrides: [{type: Upgradeable, status: 'True'}]}", []string{"lastTransitionTime"}},
		"OverrideFalse":    {"an override holds without an end", "spec: {conditions: [{type: Upgradeable, status: 'True'}], overrides: [{type: Upgradeable, status: 'False', lastTransitionTime: '2020-11-28T11:00:00Z'}]}", []string{"override", "Upgradeable=False"}},
		"OverrideUnneeded": {"an override that ended holds nothing by itself", "spec: {conditions: [{type: Upgradeable, status: 'True'}], overrides: [{type: Upgradeable, status: 'True', lastTransitionTime: '2020-11-28T11:00:00Z'}]}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Holds(object(t, "metadata: {namespace: ns, name: op, generation: 3}\n"+tc.object), now)
			if (got == "") != (tc.says == nil) {
				t.Fatalf("%s: it says %q", tc.reason, got)
			}
			for _, part := range tc.says {
				if !strings.Contains(got, part) {
					t.Errorf("%s: it says %q, without %q", tc.reason, got, part)
				}
			}
		})
	}
	if long := Holds(object(t, "metadata: {namespace: ns, name: op}\nspec: {conditions: [{type: Upgradeable, status: 'False', reason: "+strings.Repeat("r", 5000)+", message: '"+strings.Repeat("m\u0020\n\n  ", 5000)+"'}]}"), now); len(long) > 1000 || strings.Contains(long, "\n") {
		t.Errorf("the operator's words are %d bytes: %q", len(long), long)
	}
}

func TestOwns(t *testing.T) {
	installed := Installed{
		{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "op"}:      "1",
		{Group: Group, Kind: Kind, Namespace: "ns", Name: "own"}:              "2",
		{Group: Group, Kind: Kind, Namespace: "ns", Name: "intent"}:           "",
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "op"}: "3",
	}
	const deployment = "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: op, uid: '1'}]"
	for name, tc := range map[string]struct {
		reason, metadata string
		want             bool
	}{
		"Own":          {"the extension installed it", "namespace: ns, name: own, uid: '2'", true},
		"Replaced":     {"another object took its name", "namespace: ns, name: own, uid: '9'", false},
		"NotWritten":   {"the extension has not created it yet", "namespace: ns, name: intent", false},
		"Created":      {"its operator created it", "namespace: ns, name: x, uid: '8', " + deployment, true},
		"NoOwner":      {"anybody created it", "namespace: ns, name: op, uid: '8'", false},
		"Elsewhere":    {"an owner of another namespace is none", "namespace: evil, name: x, uid: '8', " + deployment, false},
		"OtherUID":     {"the owner is gone, and another object has its name", "namespace: ns, name: x, uid: '8', ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: op, uid: '7'}]", false},
		"OtherKind":    {"the uid is of another object", "namespace: ns, name: x, uid: '8', ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: op, uid: '1'}]", false},
		"ClusterOwner": {"any namespace can name an owner without one", "namespace: evil, name: x, uid: '8', ownerReferences: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: op, uid: '3'}]", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := installed.Owns(object(t, "metadata: {"+tc.metadata+"}")); got != tc.want {
				t.Errorf("%s: it counts: %t", tc.reason, got)
			}
		})
	}
	if got := strings.Join(installed.Namespaces(), " "); got != "ns" {
		t.Errorf("the namespaces are %q", got)
	}
}

func TestResource(t *testing.T) {
	for served, want := range map[string]string{"v1 v2": "v2", "v1": "v1", "v3": "", "": ""} {
		got, known := Resource(strings.Fields(served))
		if got.Version != want || known != (want != "") {
			t.Errorf("of %q it reads %q, want %q", served, got.Version, want)
		}
	}
}
