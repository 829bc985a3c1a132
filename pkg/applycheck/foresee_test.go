package applycheck

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// surroundings is a cluster that counts requests.
type surroundings struct {
	versions   map[string][]string
	namespaces map[string]bool
	down       bool
	asked      []string
}

func (s *surroundings) Versions(_ context.Context, kind schema.GroupKind) ([]string, error) {
	s.asked = append(s.asked, kind.String())
	if s.down {
		return nil, errors.New("no connection")
	}
	return s.versions[kind.String()], nil
}

func (s *surroundings) HasNamespace(_ context.Context, name string) (bool, error) {
	s.asked = append(s.asked, name)
	if s.down {
		return false, errors.New("no connection")
	}
	return s.namespaces[name], nil
}

func TestForesee(t *testing.T) {
	builtin, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	const (
		configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"%s"}}`
		lamp      = `{"apiVersion":"example.com/v1","kind":"Lamp","metadata":{"name":"a"}}`
		budget    = `{"apiVersion":"policy/v1beta1","kind":"PodDisruptionBudget","metadata":{"name":"a","namespace":"there"}}`
		role      = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[]}%s}`
		job       = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"there"},"spec":{"ttlSecondsAfterFinished":60}}`
		defined   = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"kind":"Lamp","plural":"lamps"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	)
	for name, tc := range map[string]struct {
		reason  string
		objects []string
		down    bool
		want    []Note
		asked   []string
	}{
		"There":          {reason: "each namespace is asked for once", objects: []string{fmt.Sprintf(configMap, "there"), fmt.Sprintf(configMap, "there")}, asked: []string{"there"}},
		"NoNamespace":    {reason: "nobody creates it", objects: []string{fmt.Sprintf(configMap, "gone")}, asked: []string{"gone"}, want: []Note{{0, "Namespace gone does not exist and is not part of the revision: the rollout waits until it exists"}}},
		"OwnNamespace":   {reason: "the revision creates it", objects: []string{fmt.Sprintf(configMap, "gone"), `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gone"}}`}},
		"Unserved":       {reason: "nobody knows the kind", objects: []string{lamp}, asked: []string{"Lamp.example.com"}, want: []Note{{0, "the cluster does not serve Lamp in example.com/v1, and the revision does not define it: the rollout stops at this object"}}},
		"Defined":        {reason: "the revision defines it", objects: []string{lamp, defined}},
		"AnotherVersion": {reason: "the version is gone", objects: []string{budget}, asked: []string{"PodDisruptionBudget.policy"}, want: []Note{{0, "the cluster does not serve PodDisruptionBudget in policy/v1beta1, but in v1: the rollout stops at this object; write it in a version that is served"}}},
		"Aggregated":     {reason: "the control plane fills the rules", objects: []string{fmt.Sprintf(role, `,"rules":[]`)}, want: []Note{{0, "rules are left out: the control plane fills the rules of a ClusterRole with aggregationRule"}}},
		"Unfilled":       {reason: "nothing is left out", objects: []string{fmt.Sprintf(role, "")}},
		"TTL":            {reason: "it is gone soon", objects: []string{job}, asked: []string{"there"}, want: []Note{{0, "spec.ttlSecondsAfterFinished: the Job deletes itself 60 s after it has finished, and is not run again"}}},
		"Down":           {reason: "a missing answer is no finding", down: true, objects: []string{lamp, fmt.Sprintf(configMap, "gone"), budget}, asked: []string{"Lamp.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := &surroundings{versions: map[string][]string{"PodDisruptionBudget.policy": {"v1"}}, namespaces: map[string]bool{"there": true}, down: tc.down}
			var objects []manifest.Object
			for _, one := range tc.objects {
				objects = append(objects, *object(t, one))
			}
			if diff := cmp.Diff(tc.want, Foresee(t.Context(), builtin, in, objects)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.asked, in.asked); diff != "" {
				t.Errorf("%s: asked: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
