package olm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const manifests = group + "/revisionmanifests"

func TestManifestByName(t *testing.T) {
	s := newServer(t, settings{})
	clusterRole := object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": "system:x:y"}}
	coreEvent := object{"apiVersion": "v1", "kind": "Event", "metadata": object{"name": "e", "namespace": "default"}}
	event := object{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": object{"name": "e", "namespace": "default"}}
	thing := func(group string) object {
		return object{"apiVersion": group + "/v1", "kind": "Thing", "metadata": object{"name": "t", "namespace": "default"}}
	}
	s.create(with(file("e-1", nil), []any{
		object{"name": "one", "objects": inline(configMap("a", "1"), secret("b", "x"), clusterRole)},
		object{"name": "two", "objects": inline(event, coreEvent, thing("a.io"), thing("b.io"))},
	}, "spec", "phases")).want(t, http.StatusCreated)
	s.rules.set("bob", nil)

	for name, tc := range map[string]struct {
		reason string
		user   string
		name   string
		code   int
		phase  string
		want   any
	}{
		"Namespaced":    {reason: "revision, kind, namespace, name", name: "e-1:ConfigMap:default:a", code: 200, phase: "one", want: configMap("a", "1")},
		"AnyCase":       {reason: "as kubectl takes kinds", name: "e-1:configmap:default:a", code: 200, phase: "one", want: configMap("a", "1")},
		"ClusterScoped": {reason: "no namespace; the object's name may have colons", name: "e-1:ClusterRole.rbac.authorization.k8s.io::system:x:y", code: 200, phase: "one", want: clusterRole},
		"WithoutGroup":  {reason: "where it is clear", name: "e-1:ClusterRole::system:x:y", code: 200, phase: "one", want: clusterRole},
		"CoreGroup":     {reason: "the core group has no name: it goes first", name: "e-1:Event:default:e", code: 200, phase: "two", want: coreEvent},
		"OtherGroup":    {reason: "the other one has", name: "e-1:Event.events.k8s.io:default:e", code: 200, phase: "two", want: event},
		"Ambiguous":     {reason: "two groups, neither the core group", name: "e-1:Thing:default:t", code: 400},
		"Secret":        {reason: "for who may get it", name: "e-1:Secret:default:b", code: 200, phase: "one", want: secret("b", "x")},
		"SecretOfBob":   {reason: "not for who cannot", user: "bob", name: "e-1:Secret:default:b", code: 403},
		"NoSecretOfBob": {reason: "who cannot get it does not learn whether it is there", user: "bob", name: "e-1:secret:default:nothing", code: 403},
		"NoNamespace":   {reason: "an empty namespace is none, not any", name: "e-1:ConfigMap::a", code: 404},
		"NoObject":      {reason: "not in this revision", name: "e-1:ConfigMap:default:z", code: 404},
		"NoRevision":    {reason: "no such revision", name: "e-9:ConfigMap:default:a", code: 404},
		"NoKind":        {reason: "not a name of a manifest", name: "e-1:default:a", code: 400},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			got := s.do(call{method: http.MethodGet, user: tc.user, path: manifests + "/" + tc.name}).want(t, tc.code)
			if tc.code != http.StatusOK {
				if strings.Contains(got.raw, "password") {
					t.Errorf("%s: the answer has what is secret: %s", tc.reason, got.raw)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got.body["object"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := got.body["phase"]; got != tc.phase {
				t.Errorf("%s: phase %v, want %s", tc.reason, got, tc.phase)
			}
		})
	}

	table := s.do(call{method: http.MethodGet, accept: asTable, path: manifests + "/e-1:configmap:default:a?includeObject=Object"}).want(t, http.StatusOK)
	want := [][]any{{"e-1:ConfigMap:default:a", "one", at(entry(s.get("e-1"), 0), "digest"), 101.0}}
	if diff := cmp.Diff(want, cellsOf(table)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	s.bodies.lose = errLost
	s.do(call{method: http.MethodGet, path: manifests + "/e-1:ConfigMap:default:a"}).want(t, http.StatusInternalServerError)
}
