package authz

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestString(t *testing.T) {
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	for want, right := range map[string]Right{
		"create deployments.apps lighthouse/web":        On(deployments, "create", "lighthouse", "web"),
		"list deployments.apps in namespace lighthouse": On(deployments, "list", "lighthouse", ""),
		"get namespaces lighthouse":                     {Verb: "get", Resource: "namespaces", Name: "lighthouse"},
		"watch secrets":                                 {Verb: "watch", Resource: "secrets"},
		"patch deployments/scale.apps lighthouse/web":   {Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "lighthouse", Name: "web"},
		"get /metrics":                                  {Verb: "get", Path: "/metrics"},
	} {
		if got := right.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestQuestions: the attributes for an authorizer and for an access review are equal.
func TestQuestions(t *testing.T) {
	alice := &user.DefaultInfo{Name: "alice"}
	for name, tc := range map[string]struct {
		right   Right
		version string
	}{
		"Version":  {Right{Verb: "get", Group: "g", Version: "v1", Resource: "r", Subresource: "s", Namespace: "ns", Name: "n"}, "v1"},
		"Versions": {Right{Verb: "get", Group: "g", Resource: "r"}, "*"},
	} {
		t.Run(name, func(t *testing.T) {
			of, review := tc.right.Of(alice), tc.right.Attributes()
			again := Right{Verb: review.Verb, Group: review.Group, Version: review.Version, Resource: review.Resource, Subresource: review.Subresource, Namespace: review.Namespace, Name: review.Name}
			if !reflect.DeepEqual(of, again.Of(alice)) || !of.ResourceRequest || of.APIVersion != tc.version {
				t.Errorf("an authorizer is asked %+v, a review %+v", of, review)
			}
		})
	}
	if of := (Right{Verb: "get", Path: "/metrics"}).Of(alice); of.ResourceRequest || of.Path != "/metrics" || of.Verb != "get" {
		t.Errorf("a right on a path is asked for by %+v", of)
	}
}

// TestHas: a missing answer allows nothing. An error of one authorizer does not matter if another
// one allows.
func TestHas(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		decision authorizer.Decision
		err      error
		allowed  bool
		want     error
	}{
		"Allowed":    {authorizer.DecisionAllow, nil, true, nil},
		"Partly":     {authorizer.DecisionAllow, broken, true, nil},
		"No":         {authorizer.DecisionNoOpinion, nil, false, nil},
		"Denied":     {authorizer.DecisionDeny, nil, false, nil},
		"Unanswered": {authorizer.DecisionNoOpinion, broken, false, broken},
	} {
		t.Run(name, func(t *testing.T) {
			by := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return tc.decision, "", tc.err
			})
			allowed, err := Right{Verb: "get"}.Has(t.Context(), by, &user.DefaultInfo{})
			if allowed != tc.allowed || !errors.Is(err, tc.want) {
				t.Errorf("%v, %v", allowed, err)
			}
		})
	}
}
