package chartkind

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/admission/webhook/webhooktest"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

var at = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

const ours = "system:serviceaccount:penstock-system:"

func of(now time.Time) stamps {
	return stamps{authored.Stamps{
		Subject: chartkind.Author(), Key: func() (author.Key, error) { return author.NewKey([]byte("secret")), nil }, Now: func() time.Time { return now },
		ForOthers: func(username string) bool { return strings.HasPrefix(username, ours) },
	}}
}

func note(s stamps, r webhook.Review) webhook.Answer  { return s.StampForThemselves(r, false) }
func check(s stamps, r webhook.Review) webhook.Answer { return s.Check(r, validate) }

func someone(name string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: name}
}

// kind returns a ChartKind of generation 1, as kube-apiserver sends it.
func kind(account string, annotations map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"resource": map[string]any{"group": "platform.stackrox.io", "version": "v1alpha1", "kind": "Central"},
		"chart":    map[string]any{"ref": "registry.example.com/charts/central:1"}, "serviceAccount": map[string]any{"namespace": "rhacs", "name": account},
	}}}
	object.SetGroupVersionKind(chartkind.Kind)
	object.SetName("central")
	object.SetUID("u1")
	object.SetGeneration(1)
	object.SetAnnotations(annotations)
	return object
}

// noted returns an object with the annotations of an answer.
func noted(t *testing.T, object *unstructured.Unstructured, given webhook.Answer) *unstructured.Unstructured {
	t.Helper()
	if given.Refusal != nil {
		t.Fatalf("refused: %s", given.Refusal.Message)
	}
	out := object.DeepCopy()
	annotations := map[string]string{}
	for name, value := range given.Annotations {
		if value != nil {
			annotations[name] = *value
		}
	}
	out.SetAnnotations(annotations)
	return out
}

// TestWrittenForOthers: a ChartKind in a revision or a plan is refused. The engine can impersonate
// every ServiceAccount, and the author of the revision cannot. So it is refused for each of
// Penstock's identities, with or without a stamp.
func TestWrittenForOthers(t *testing.T) {
	s := of(at)
	stored := noted(t, kind("operator", nil), note(s, webhooktest.Review(t, someone("alice"), kind("operator", nil), nil)))
	labelled := stored.DeepCopy()
	labelled.SetLabels(map[string]string{"a": "b"})
	for name, tc := range map[string]struct {
		who         string
		object, old *unstructured.Unstructured
		refused     bool
	}{
		"by a revision":                      {ours + "penstock-engine", kind("operator", nil), nil, true},
		"by a plan":                          {ours + "penstock", kind("operator", nil), nil, true},
		"by a plan of a definition":          {ours + "penstock-profile-mine", kind("operator", nil), nil, true},
		"with the stamp of somebody":         {ours + "penstock-engine", stored, nil, true},
		"with another ServiceAccount":        {ours + "penstock-engine", kind("admin", stored.GetAnnotations()), stored, true},
		"taken over":                         {ours + "penstock-engine", kind("operator", map[string]string{extension.AuthorAnnotation: author.Renew}), stored, true},
		"labels alone":                       {ours + "penstock-engine", labelled, stored, false},
		"by somebody of a namespace like it": {"system:serviceaccount:penstock-systems:x", kind("operator", nil), nil, false},
		"by somebody in their own name":      {"bob", kind("other", nil), stored, false},
	} {
		t.Run(name, func(t *testing.T) {
			given := note(s, webhooktest.Review(t, someone(tc.who), tc.object, tc.old))
			const says = "which writes for other users: create it in your own name, not through a revision or a plan"
			if (given.Refusal != nil) != tc.refused || tc.refused && !strings.Contains(given.Refusal.Message, says) {
				t.Fatalf("answered %+v", given)
			}
			if !tc.refused {
				return
			}
			// The last check refuses it too, even if another webhook admits it.
			if last := check(s, webhooktest.Review(t, someone(tc.who), tc.object, tc.old)); last.Refusal == nil {
				t.Error("admitted by the last look")
			}
		})
	}
}

// TestMayNotImpersonate: the refusal of a user who cannot impersonate the ServiceAccount has its
// name and the missing right.
func TestMayNotImpersonate(t *testing.T) {
	given := of(at).refuseAccount(webhooktest.Review(t, someone("mallory"), kind("operator", nil), nil))
	if given.Refusal == nil || given.Refusal.Code != http.StatusUnprocessableEntity {
		t.Fatalf("answered %+v", given)
	}
	for _, want := range []string{`spec.serviceAccount: Invalid value: "rhacs/operator"`, "mallory may impersonate (verb impersonate on serviceaccounts)"} {
		if !strings.Contains(given.Refusal.Message, want) {
			t.Errorf("want %q in %s", want, given.Refusal.Message)
		}
	}
}

// TestLastLook: the last check admits only an unchanged object with the stamp of its writer.
func TestLastLook(t *testing.T) {
	s := of(at)
	stamped := noted(t, kind("operator", nil), note(s, webhooktest.Review(t, someone("alice"), kind("operator", nil), nil)))
	if given := check(s, webhooktest.Review(t, someone("alice"), stamped, nil)); given.Refusal != nil {
		t.Errorf("refused: %s", given.Refusal.Message)
	}
	changed := kind("admin", stamped.GetAnnotations())
	invalid := stamped.DeepCopy()
	if err := unstructured.SetNestedField(invalid.Object, "no tag/", "spec", "chart", "ref"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		who    string
		object *unstructured.Unstructured
		says   string
	}{
		"the stamp of another": {"mallory", stamped, "has no stamp of mallory"},
		"changed after it":     {"alice", changed, "has no stamp of alice"},
		"no stamp":             {"alice", kind("operator", nil), "has no stamp of alice"},
		"a spec of no meaning": {"alice", invalid, "spec.chart.ref"},
	} {
		given := check(s, webhooktest.Review(t, someone(tc.who), tc.object, nil))
		if given.Refusal == nil || !strings.Contains(given.Refusal.Message, tc.says) {
			t.Errorf("%s: want %q, got %+v", name, tc.says, given)
		}
	}
}

// TestWithoutKey: without the key, no stamp can be checked, and every write is refused.
func TestWithoutKey(t *testing.T) {
	s := of(at)
	s.Key = func() (author.Key, error) { return author.Key{}, errors.New("the store is another one") }
	for name, do := range map[string]func(stamps, webhook.Review) webhook.Answer{"note": note, "check": check, "account": stamps.refuseAccount} {
		given := do(s, webhooktest.Review(t, someone("alice"), kind("operator", nil), nil))
		if given.Refusal == nil || given.Refusal.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %+v", name, given)
		}
	}
}

// TestHostileReviews: an object that is not a ChartKind is refused without a panic.
func TestHostileReviews(t *testing.T) {
	s := of(at)
	good := webhooktest.Review(t, someone("mallory"), kind("operator", nil), nil)
	for name, text := range map[string]string{
		"nothing": "", "null": "null", "a list": "[]", "a spec of text": `{"spec": "x"}`, "values of a number": `{"spec": {"values": 1}}`,
		"a long path": `{"spec": {"values": [{"to": "` + strings.Repeat("a.", 1<<16) + `a", "from": "spec.x"}]}}`,
	} {
		r := good
		r.ObjectJSON = json.RawMessage(text)
		for which, do := range map[string]func(stamps, webhook.Review) webhook.Answer{"check": check, "account": stamps.refuseAccount} {
			if given := do(s, r); given.Refusal == nil || len(given.Refusal.Message) > 1<<14 {
				t.Errorf("%s: %s: %.200v", name, which, given)
			}
		}
	}
}
