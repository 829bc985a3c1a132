package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

func TestClassify(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	terminating := apierrors.NewForbidden(configMaps, "x", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}}
	cases := map[string]struct {
		reason string
		err    error
		want   Failure
	}{
		"invalid": {
			"the manifest is wrong", apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", nil),
			Failure{Reason: ReasonRejected, NeedsPerson: true},
		},
		"forbidden": {
			"somebody has to grant it", apierrors.NewForbidden(configMaps, "x", errors.New("no")),
			Failure{Reason: ReasonRejected, NeedsPerson: true},
		},
		"namespace terminating": {
			"it will be gone, and then the answer is another one", terminating,
			Failure{Reason: ReasonRejected},
		},
		"no such namespace": {
			"somebody has to make it", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"),
			Failure{Reason: ReasonRejected, NeedsPerson: true},
		},
		"unknown field": {
			"server-side apply answers a 500", apierrors.NewInternalError(errors.New("failed to create typed patch object (a/x; /v1): .data.a: field not declared in schema")),
			Failure{Reason: ReasonRejected, NeedsPerson: true},
		},
		"webhook down": {
			"the cluster has answered, and the webhook may come back", apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`)),
			Failure{Reason: ReasonRejected},
		},
		"too many requests": {"the server is busy", apierrors.NewTooManyRequests("later", 1), Failure{Reason: ReasonUnreachable}},
		"timeout":           {"it may answer next time", apierrors.NewTimeoutError("too slow", 1), Failure{Reason: ReasonUnreachable}},
		"broken":            {"something else is broken there", apierrors.NewInternalError(errors.New("etcd is away")), Failure{Reason: ReasonUnreachable}},
		"no connection":     {"it may come back", errors.New("connection refused"), Failure{Reason: ReasonUnreachable}},
		"conflict":          {"the next event finds it settled", apierrors.NewConflict(configMaps, "x", errors.New("changed")), Failure{Reason: ReasonWaiting}},
		"scope":             {"the manifest is wrong", &targetclient.ScopeError{}, Failure{Reason: ReasonRejected, NeedsPerson: true}},
		"kind":              {"its definition may come", &targetclient.KindUnknownError{}, Failure{Reason: ReasonNotServed}},
		"body":              {"our own store is broken", &bodyError{err: errors.New("gone")}, Failure{Reason: ReasonMissingBody, NeedsPerson: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Classify(manifest.Ref{ID: manifest.ID{Kind: "ConfigMap"}}, fmt.Errorf("applying it: %w", tc.err))
			if diff := cmp.Diff(tc.want, Failure{Reason: got.Reason, NeedsPerson: got.NeedsPerson}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(got.Message, tc.err.Error()) {
				t.Errorf("the message %q does not say what the server said", got.Message)
			}
		})
	}
}

// TestSecretsStayOutOfMessages: no value of a Secret gets into status, even if the server's message
// quotes it.
func TestSecretsStayOutOfMessages(t *testing.T) {
	const value = "hunter2"
	secrets := schema.GroupResource{Resource: "secrets"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "x", field.ErrorList{
		field.Invalid(field.NewPath("data").Key("password"), value, "is too short: "+value),
		field.Required(field.NewPath("type"), ""),
	})
	cases := map[string]struct {
		err  error
		says []string
	}{
		"invalid":       {invalid, []string{"Invalid", "data[password]", "type"}},
		"denied":        {apierrors.NewForbidden(secrets, "x", errors.New("the password "+value+" is weak")), []string{"Forbidden"}},
		"bad request":   {apierrors.NewBadRequest(`json: cannot unmarshal "` + value + `"`), []string{"BadRequest"}},
		"unknown field": {apierrors.NewInternalError(errors.New("failed to create typed patch object: .password: " + value)), []string{"InternalError"}},
		"conflict":      {apierrors.NewConflict(secrets, "x", errors.New(value)), []string{"Conflict"}},
		"wrapped twice": {fmt.Errorf("one %s: %w", value, fmt.Errorf("two: %w", invalid)), []string{"Invalid"}},
		"joined":        {errors.Join(errors.New("first"), invalid), []string{"Invalid"}},
		"no status":     {fmt.Errorf("decoding %s: %w", value, errors.New("illegal base64 "+value)), nil},
	}
	ref := manifest.Ref{ID: manifest.ID{Kind: "Secret", Namespace: "a", Name: "x"}, Version: "v1"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Classify(ref, tc.err)
			if strings.Contains(got.Message, value) {
				t.Errorf("the message has a value of the Secret: %s", got.Message)
			}
			for _, part := range tc.says {
				if !strings.Contains(got.Message, part) {
					t.Errorf("the message does not say %q: %s", part, got.Message)
				}
			}
		})
	}
	other := manifest.Ref{ID: manifest.ID{Group: "example.com", Kind: "Secret", Name: "x"}, Version: "v1"}
	if got := Classify(other, invalid); !strings.Contains(got.Message, value) {
		t.Errorf("a kind that is only called so has nothing to hide: %s", got.Message)
	}
}

// TestTimePassesDuringAPass: the next try of an object may become due during a pass. Then the pass
// must request another pass.
func TestTimePassesDuringAPass(t *testing.T) {
	for tick := 50 * time.Millisecond; tick < 2*time.Second; tick += 50 * time.Millisecond {
		s := newSaga()
		s.engine.Clock = &clocktesting.SimpleIntervalClock{Time: s.clock.Now(), Duration: tick}
		s.refuse = func(_ string, ref manifest.Ref) error {
			return apierrors.NewForbidden(resourceOf(ref), ref.Name, errors.New("no"))
		}
		s.become(s.revision(1).phase("a", "ConfigMap a/x=1", "ConfigMap a/y=1"))
		for n := range 10 {
			report, err := s.pass()
			if err != nil {
				t.Fatal(err)
			}
			if report.RequeueAfter <= 0 {
				t.Errorf("with %s between two looks at the clock nothing follows pass %d", tick, n+1)
				break
			}
		}
	}
}

// TestRefusalKeepsItsReason: a refusal with a long value still names the field and the reason.
func TestRefusalKeepsItsReason(t *testing.T) {
	long := strings.Repeat(`{"matchLabels":{"app":"x"}}`, 300)
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	selector := field.Invalid(field.NewPath("spec", "selector"), long, "field is immutable")
	cases := map[string]struct {
		err  error
		want []string
	}{
		"one": {apierrors.NewInvalid(kind, "x", field.ErrorList{selector}), []string{"spec.selector: Invalid value: ", "field is immutable"}},
		"several": {
			apierrors.NewInvalid(kind, "x", field.ErrorList{selector, field.Required(field.NewPath("spec", "template"), "is missing")}),
			[]string{"spec.selector: Invalid value: ", "field is immutable; spec.template: Required value: is missing"},
		},
		"stored object": {
			apierrors.NewInternalError(errors.New("StorageError: corrupt object, Code: 7, Key: /away.example.com/converteds/" + strings.Repeat("n", 200) + ", ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=7: conversion webhook for example.com/v1, Kind=Lamp failed: connection refused")),
			[]string{"conversion webhook for example.com/v1, Kind=Lamp failed: connection refused"},
		},
		"webhook": {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("admission webhook \"p\" denied the request: "+long+": no privileged containers")), []string{"pods \"x\" is forbidden", ": no privileged containers"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Explain(manifest.Ref{}, tc.err)
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("it does not say %q: %s", want, got)
				}
			}
			if len(got) > 480 {
				t.Errorf("it has %d bytes, so that the condition cuts it again: %s", len(got), got)
			}
		})
	}
}
