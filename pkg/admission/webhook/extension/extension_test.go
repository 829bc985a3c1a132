package extension

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/admission/webhook/webhooktest"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

var at = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func key() author.Key { return author.NewKey([]byte("secret")) }

func of(now time.Time) authored.Stamps {
	return authored.Stamps{
		Subject: author.ClusterExtensions(), Key: func() (author.Key, error) { return key(), nil }, Now: func() time.Time { return now },
	}
}

var (
	alice   = authenticationv1.UserInfo{Username: "alice", UID: "1", Groups: []string{"team-a"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"x"}}}
	mallory = authenticationv1.UserInfo{Username: "mallory"}
)

// written returns an extension of generation 1 with annotations, as kube-apiserver sends it.
func written(version string, annotations map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"namespace": "argocd", "source": map[string]any{"catalog": map[string]any{"packageName": "argocd-operator", "version": version}}},
		"status": map[string]any{"a": "b"},
	}}
	object.SetGroupVersionKind(extension.Kind)
	object.SetName("argocd")
	object.SetUID("u1")
	object.SetGeneration(1)
	object.SetAnnotations(annotations)
	return object
}

// patched returns the object after an answer, with the generation that kube-apiserver would set.
func patched(t *testing.T, object *unstructured.Unstructured, given webhook.Answer, generation int64) *unstructured.Unstructured {
	t.Helper()
	if given.Refusal != nil {
		t.Fatalf("refused: %s", given.Refusal.Message)
	}
	object = object.DeepCopy()
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for name, value := range given.Annotations {
		if value == nil {
			delete(annotations, name)
		} else {
			annotations[name] = *value
		}
	}
	object.SetAnnotations(annotations)
	object.SetGeneration(generation)
	return object
}

func stored(t *testing.T, who authenticationv1.UserInfo, now time.Time) *unstructured.Unstructured {
	t.Helper()
	old := written("0.9.0", nil)
	old.SetGeneration(0)
	object := written("1.0.0", nil)
	return patched(t, object, of(now).Stamp(webhooktest.Review(t, who, object, old), false), 1)
}

func author1(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	stamp, err := author.ClusterExtensions().Written(key(), object)
	if err != nil {
		return ""
	}
	if stamp.Generation != object.GetGeneration() {
		t.Errorf("generation %d is stamped as %d", object.GetGeneration(), stamp.Generation)
	}
	return stamp.User
}

// TestStampAndCheck: the annotation of a request is ignored. The user of a relevant change becomes
// the author. The last check detects changes by another webhook.
func TestStampAndCheck(t *testing.T) {
	long := at.Add(-time.Hour)
	old := stored(t, alice, long)
	before := old.GetAnnotations()[extension.AuthorAnnotation]
	for name, tc := range map[string]struct {
		reason     string
		object     *unstructured.Unstructured
		generation int64
		by         string
	}{
		"Nothing":      {"labels only", written("1.0.0", map[string]string{extension.AuthorAnnotation: before, "a": "b"}), 1, "alice"},
		"Dropped":      {"a client that knows no annotations", written("1.0.0", nil), 1, "alice"},
		"Forged":       {"made up", written("1.0.0", map[string]string{extension.AuthorAnnotation: `{"user":"admin"}`}), 1, "alice"},
		"Spec":         {"mallory wrote another", written("1.1.0", map[string]string{extension.AuthorAnnotation: before}), 2, "mallory"},
		"SpecForged":   {"mallory wrote another", written("1.1.0", map[string]string{extension.AuthorAnnotation: `{"user":"admin"}`}), 2, "mallory"},
		"Annotation":   {"the generation stays", written("1.0.0", map[string]string{extension.AuthorAnnotation: before, extension.OnFailureAnnotation: "Rollback"}), 1, "mallory"},
		"Renewed":      {"mallory says so", written("1.0.0", map[string]string{extension.AuthorAnnotation: author.Renew}), 1, "mallory"},
		"OtherNothing": {"an annotation of otbefore", written("1.0.0", map[string]string{extension.AuthorAnnotation: before, "example.com/penstock.dev/on-failure": "x"}), 1, "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := of(at).Stamp(webhooktest.Review(t, mallory, tc.object, old), false)
			result := patched(t, tc.object, answer, tc.generation)
			if got := author1(t, result); got != tc.by {
				t.Errorf("%s: the author is %q, want %q", tc.reason, got, tc.by)
			}
			if (len(answer.Warnings) > 0) != (tc.by == "mallory") {
				t.Errorf("%s: warnings %v", tc.reason, answer.Warnings)
			}
			if checked := of(at).Check(webhooktest.Review(t, mallory, result, old), validate); checked.Refusal != nil {
				t.Errorf("%s: %s", tc.reason, checked.Refusal.Message)
			}
			if again := of(at).Stamp(webhooktest.Review(t, mallory, result, old), false); len(again.Annotations) > 0 || again.Refusal != nil {
				t.Errorf("%s: asked again it says %v", tc.reason, again)
			}
			if _, set := tc.object.GetAnnotations()[extension.AuthorAnnotation]; answer.Annotations != nil || !set {
				if checked := of(at).Check(webhooktest.Review(t, mallory, tc.object, old), validate); checked.Refusal == nil && author1(t, tc.object) != "alice" {
					t.Errorf("%s: admitted without the stamp", tc.reason)
				}
			}
			changed := result.DeepCopy()
			_ = unstructured.SetNestedField(changed.Object, "9.9.9", "spec", "source", "catalog", "version")
			changed.SetGeneration(2)
			if checked := of(at).Check(webhooktest.Review(t, mallory, changed, old), validate); checked.Refusal == nil {
				t.Errorf("%s: another webhook changed the spec after the stamp", tc.reason)
			}
			if tc.by == "mallory" {
				if checked := of(at).Check(webhooktest.Review(t, alice, result, old), validate); checked.Refusal == nil || checked.Refusal.Code != http.StatusForbidden {
					t.Errorf("%s: it passes for a write of alice", tc.reason)
				}
			}
		})
	}
}

func TestCreation(t *testing.T) {
	object := written("1.0.0", map[string]string{extension.AuthorAnnotation: stored(t, alice, at).GetAnnotations()[extension.AuthorAnnotation]})
	object.SetUID("")
	object.SetGeneration(0)
	made := patched(t, object, of(at).Stamp(webhooktest.Review(t, mallory, object, nil), true), 1)
	made.SetUID("u2")
	stamp, err := author.ClusterExtensions().Written(key(), made)
	if err != nil || stamp.User != "mallory" || !stamp.Bypass || stamp.Extension != "" || stamp.Generation != 1 {
		t.Errorf("%+v %v", stamp, err)
	}
	if checked := of(at).Check(webhooktest.Review(t, mallory, made, nil), validate); checked.Refusal != nil {
		t.Error(checked.Refusal.Message)
	}
	if checked := of(at).Check(webhooktest.Review(t, mallory, object, nil), validate); checked.Refusal == nil {
		t.Error("admitted with the stamp of somebody else")
	}
	// An older stamp of the same user does not count as new.
	if later := of(at.Add(time.Hour)).Check(webhooktest.Review(t, mallory, made, nil), validate); later.Refusal == nil {
		t.Error("admitted with a stamp of an hour ago")
	}
	object.SetName("")
	object.SetGenerateName("argo-")
	made = patched(t, object, of(at).Stamp(webhooktest.Review(t, mallory, object, nil), false), 1)
	made.SetName("argo-x7")
	if got := author1(t, made); got != "mallory" {
		t.Errorf("with a generated name the author is %q", got)
	}
}

// TestWrittenForOthers: an extension in a revision or a plan of another user would have no author.
// It is refused, and writes that do not change it pass.
func TestWrittenForOthers(t *testing.T) {
	engine := authenticationv1.UserInfo{Username: "system:serviceaccount:penstock-system:penstock-engine"}
	s := of(at)
	s.ForOthers = func(who string) bool { return who == engine.Username }
	old := stored(t, alice, at)
	labelled := old.DeepCopy()
	labelled.SetLabels(map[string]string{"a": "b"})
	for name, tc := range map[string]struct {
		who         authenticationv1.UserInfo
		object, old *unstructured.Unstructured
		refused     bool
	}{
		"Created":   {engine, written("1.0.0", nil), nil, true},
		"Changed":   {engine, written("2.0.0", old.GetAnnotations()), old, true},
		"TakenOver": {engine, written("1.0.0", map[string]string{extension.AuthorAnnotation: author.Renew}), old, true},
		"Labels":    {engine, labelled, old, false},
		"Alice":     {alice, written("2.0.0", nil), old, false},
	} {
		given := s.StampForThemselves(webhooktest.Review(t, tc.who, tc.object, tc.old), false)
		if (given.Refusal != nil) != tc.refused || tc.refused && !strings.Contains(given.Refusal.Message, "writes for other users") {
			t.Errorf("%s: %+v", name, given)
		}
	}
}

// TestWithoutKey: without the key, every write is refused with the reason.
func TestWithoutKey(t *testing.T) {
	s := of(time.Now())
	s.Key = func() (author.Key, error) { return author.Key{}, errors.New("the store is another one") }
	for name, do := range map[string]func(webhook.Review) webhook.Answer{"check": func(r webhook.Review) webhook.Answer { return s.Check(r, validate) }, "stamp": func(r webhook.Review) webhook.Answer { return s.Stamp(r, false) }} {
		given := do(webhooktest.Review(t, alice, written("1.0.0", nil), nil))
		if given.Refusal == nil || given.Refusal.Code != http.StatusServiceUnavailable || !strings.Contains(given.Refusal.Message, "the store is another one") {
			t.Errorf("%s: %v", name, given.Refusal)
		}
	}
}

// FuzzStamp: no request creates a stamp of another user.
func FuzzStamp(f *testing.F) {
	f.Add(`{"metadata":{"name":"a"},"spec":{}}`, `{"metadata":{"name":"a","uid":"u"},"spec":{"a":1}}`)
	f.Add(`{"metadata":{"annotations":{"penstock.dev/author":"me"}}}`, `{"metadata":{"annotations":null}}`)
	f.Add(`null`, `{}`)
	f.Add(`{"metadata":1}`, `{"metadata":[]}`)
	f.Fuzz(func(t *testing.T, object, old string) {
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			given := of(at).Stamp(webhook.Review{Operation: operation, Group: extension.Kind.Group, Kind: extension.Kind.Kind, User: mallory, ObjectJSON: []byte(object), OldJSON: []byte(old)}, false)
			if value := given.Annotations[extension.AuthorAnnotation]; value != nil {
				var stamp author.Stamp
				if err := json.Unmarshal([]byte(*value), &stamp); err == nil && stamp.User != "mallory" && !strings.Contains(old, "author") {
					t.Errorf("%s %s: a stamp of %s", object, old, stamp.User)
				}
			}
		}
	})
}

// TestYield: the annotation follows the rules of spec.yield. An invalid value that was stored
// before may stay.
func TestYield(t *testing.T) {
	const wrong = "[{selector: {groupKind: {group: apps}}, fields: ['spec.containers[0]']}]"
	object := written("1.0.0", map[string]string{extension.YieldAnnotation: wrong})
	got := validate(&authored.Write{Object: object}).ToAggregate()
	for _, want := range []string{"metadata.annotations[penstock.dev/yield][0].selector.groupKind.kind: Required value", "metadata.annotations[penstock.dev/yield][0].fields[0]: Invalid value"} {
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if errs := validate(&authored.Write{Object: object, Old: object}); len(errs) > 0 {
		t.Errorf("nobody can write it any more: %v", errs)
	}
	right := written("1.0.0", map[string]string{extension.YieldAnnotation: "[{selector: {groupKind: {group: apps, kind: Deployment}}, fields: [spec.replicas]}]"})
	if errs := validate(&authored.Write{Object: right}); len(errs) > 0 {
		t.Errorf("the rules are allowed: %v", errs)
	}
}

// TestMetricChecks: the annotation lists names of MetricChecks. An invalid value that was stored
// before may stay.
func TestMetricChecks(t *testing.T) {
	named := func(value string) *unstructured.Unstructured {
		return written("1.0.0", map[string]string{extension.MetricChecksAnnotation: value})
	}
	if errs := validate(&authored.Write{Object: named("error-rate, latency")}); len(errs) > 0 {
		t.Errorf("the names are allowed: %v", errs)
	}
	wrong := named("error-rate;latency")
	got := validate(&authored.Write{Object: wrong}).ToAggregate()
	if got == nil || !strings.Contains(got.Error(), "metadata.annotations[penstock.dev/metric-checks][0]: Invalid value") {
		t.Errorf("%v", got)
	}
	if errs := validate(&authored.Write{Object: wrong, Old: wrong}); len(errs) > 0 {
		t.Errorf("nobody can write it any more: %v", errs)
	}
}

// TestReportDriftUntil: the end of reported drift is at most seven days ahead. An invalid value
// that was stored before may stay.
func TestReportDriftUntil(t *testing.T) {
	until := func(ahead time.Duration) *authored.Write {
		return &authored.Write{Object: written("1.0.0", map[string]string{extension.ReportDriftUntilAnnotation: at.Add(ahead).Format(time.RFC3339)})}
	}
	if errs := drift(until(7*24*time.Hour), at); len(errs) > 0 {
		t.Errorf("seven days are allowed: %v", errs)
	}
	for _, ahead := range []time.Duration{-time.Second, 7*24*time.Hour + time.Second} {
		if errs := drift(until(ahead), at); len(errs) != 1 || !strings.Contains(errs[0].Error(), "metadata.annotations[penstock.dev/report-drift-until]: Invalid value") {
			t.Errorf("%s ahead: %v", ahead, errs)
		}
	}
	past := until(-time.Hour)
	past.Old = past.Object
	if errs := drift(past, at); len(errs) > 0 {
		t.Errorf("nobody can write it any more: %v", errs)
	}
}
