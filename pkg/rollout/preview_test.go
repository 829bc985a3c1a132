package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

func previewed(s *rollout.Scenario, permit preview.Permit) (preview.Preview, error) {
	previewer := preview.New(preview.Options{Reader: s, Trier: s, Names: s.Names(), Parallel: 1})
	return previewer.Preview(context.Background(), s.Work(), permit)
}

// said prints the preview's line for each object.
func said(p preview.Preview) []string {
	var out []string
	for _, item := range p.Items {
		line := fmt.Sprintf("%s %s", item.ID, item.Action)
		if item.After != nil || item.Before != nil {
			line += fmt.Sprintf(" %s->%s", valueIn(item.Before), valueIn(item.After))
		}
		if item.Drifted {
			line += " drifted"
		}
		for _, t := range item.Taken {
			line += fmt.Sprintf(" taking %s of %s", strings.Join(t.Paths, ","), t.Manager)
		}
		if item.Unread {
			line += " unread"
		}
		if item.Failure != nil {
			line += " " + item.Failure.Reason
		}
		if item.Message != "" {
			line += ": " + item.Message
		}
		out = append(out, line)
	}
	return out
}

func valueIn(raw []byte) string {
	if raw == nil {
		return "none"
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		return err.Error()
	}
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	return value
}

func TestPreview(t *testing.T) {
	const x, y = "ConfigMap a/x", "ConfigMap a/y"
	cases := map[string]struct {
		reason string
		given  func(t *testing.T, s *rollout.Scenario)
		permit preview.Permit
		want   []string
		costs  []string
	}{
		"New": {
			reason: "what is not there is created",
			given:  func(t *testing.T, s *rollout.Scenario) { s.Become(s.Revision(1).Phase("p", x+"=1")) },
			want:   []string{x + " Create none->1"},
			costs:  []string{"get " + x, "try " + x},
		},
		"AtRest": {
			reason: "what nobody touched is not tried",
			given:  func(t *testing.T, s *rollout.Scenario) { s.Roll(t, s.Revision(1).Phase("p", x+"=1")) },
			want:   []string{x + " Idle"},
			costs:  []string{"get " + x},
		},
		"Drift": {
			reason: "a value of ours that somebody changed, and who",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Set(rollout.RefOf(x).ID, "data:value", "9", "kubectl-edit")
			},
			want:  []string{x + " Repair 9->1 drifted taking .data.value of kubectl-edit"},
			costs: []string{"get " + x, "try " + x},
		},
		"ForeignField": {
			reason: "fields that we do not apply are nobody's drift",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Set(rollout.RefOf(x).ID, "data:theirs", "9", "kubectl-edit")
			},
			want:  []string{x + " Idle"},
			costs: []string{"get " + x, "try " + x},
		},
		"Deleted": {
			reason: "what somebody deleted comes again",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Erase(rollout.RefOf(x).ID)
			},
			want:  []string{x + " Create none->1 drifted"},
			costs: []string{"get " + x, "try " + x},
		},
		"Upgrade": {
			reason: "another content, and what it does not list goes",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1", y+"=1"))
				s.Become(s.Revision(2).Phase("p", x+"=2"))
			},
			want:  []string{x + " Update 1->2", y + " Delete 1->none"},
			costs: []string{"get " + x, "try " + x, "get " + y},
		},
		"AdoptedGoes": {
			reason: "what existed before is left when no revision lists it any more",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Place(rollout.RefOf(y), map[string]string{"value": "0"})
				s.Roll(t, s.Adopting(1).Phase("p", x+"=1", y+"=1"))
				s.Become(s.Revision(2).Phase("p", x+"=1"))
			},
			want:  []string{x + " Idle", y + " Release"},
			costs: []string{"get " + x, "get " + y},
		},
		"Contested": {
			reason: "an upgrade takes what somebody changed",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Set(rollout.RefOf(x).ID, "data:value", "9", "kubectl-edit")
				s.Become(s.Revision(2).Phase("p", x+"=2"))
			},
			want:  []string{x + " Update 9->2 taking .data.value of kubectl-edit"},
			costs: []string{"get " + x, "try " + x},
		},
		"Collision": {
			reason: "somebody else's is left alone, and not tried",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Place(rollout.RefOf(x), map[string]string{"value": "theirs"})
				s.Become(s.Revision(1).Phase("p", x+"=1"))
			},
			want:  []string{x + " Collision: exists already and was not made by this extension; collision protection leaves it alone (the next revision takes it over with collisionProtection: IfNoController or None)"},
			costs: []string{"get " + x},
		},
		"Adoption": {
			reason: "or taken over",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Place(rollout.RefOf(x), map[string]string{"value": "theirs"})
				s.Become(s.Revision(1).Adopting(stage.AdoptUncontrolled).Phase("p", x+"=1"))
			},
			want:  []string{x + " Adopt theirs->1 taking .data.value of somebody: exists already and was not made by this extension"},
			costs: []string{"get " + x, "try " + x},
		},
		"Terminating": {
			reason: "what is on its way out is waited for",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Terminate(rollout.RefOf(x).ID)
			},
			want:  []string{x + " Deferred: the existing object is being deleted; it waits for its finalizer example.com/hold"},
			costs: []string{"get " + x},
		},
		"Left": {
			reason: "what is somebody else's by now is not deleted",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Control(rollout.RefOf(x).ID, &metav1.OwnerReference{Kind: "Deployment", Name: "d", Controller: new(true)})
				s.Become(s.Revision(2))
			},
			want:  []string{x + ` Leave: is controlled by Deployment "d"`},
			costs: []string{"get " + x},
		},
		"Released": {
			reason: "an orphan stays",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Release(1)
				s.Become()
			},
			want:  []string{x + " Release"},
			costs: []string{"get " + x},
		},
		"Refused": {
			reason: "what the server says no to",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Become(s.Revision(1).Phase("p", x+"=1"))
				s.Refuse(func(verb string, ref manifest.Ref) error {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", nil)
				})
			},
			want:  []string{x + " Create " + rollout.ReasonRejected},
			costs: []string{"get " + x, "try " + x},
		},
		"Unread": {
			reason: "a read that fails is no object that does not exist",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1", y+"=1"))
				s.Become(s.Revision(2).Phase("p", x+"=2"))
				s.Unreadable(&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "its webhook is away"}})
			},
			want:  []string{x + " Create unread " + rollout.ReasonUnreachable, y + " Delete unread " + rollout.ReasonUnreachable},
			costs: []string{"get " + x, "get " + y},
		},
		"NamespaceOfTheSame": {
			reason: "a namespace of the same rollout comes first",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Become(s.Revision(1).Phase("p", "Namespace a=1", x+"=1"))
				s.Refuse(func(verb string, ref manifest.Ref) error {
					if ref.Kind == "Namespace" {
						return nil
					}
					return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a")
				})
			},
			want:  []string{"Namespace a Create none->1", x + " Deferred: its namespace a does not exist yet; the same rollout makes it"},
			costs: []string{"get Namespace a", "try Namespace a", "get " + x, "try " + x},
		},
		"OtherNamespace": {
			reason: "a namespace that nobody makes is a refusal",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Become(s.Revision(1).Phase("p", x+"=1"))
				s.Refuse(func(verb string, ref manifest.Ref) error {
					return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a")
				})
			},
			want:  []string{x + " Create " + rollout.ReasonRejected},
			costs: []string{"get " + x, "try " + x},
		},
		"ChangesInBetween": {
			reason: "is looked at once more",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Become(s.Revision(2).Phase("p", x+"=2"))
				s.Refuse(func(verb string, ref manifest.Ref) error {
					s.Refuse(nil)
					return apierrors.NewConflict(rollout.ResourceOf(ref), ref.Name, errors.New("it changed"))
				})
			},
			want:  []string{x + " Update 1->2"},
			costs: []string{"get " + x, "try " + x, "get " + x, "try " + x},
		},
		"ChangesAllTheTime": {
			reason: "is looked at five times",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1"))
				s.Become(s.Revision(2).Phase("p", x+"=2"))
				s.Refuse(func(verb string, ref manifest.Ref) error {
					return apierrors.NewConflict(rollout.ResourceOf(ref), ref.Name, errors.New("it changed"))
				})
			},
			want:  []string{x + " Deferred: it was changed during each attempt to read it: ask again"},
			costs: slices.Repeat([]string{"get " + x, "try " + x}, 5),
		},
		"NotPermitted": {
			reason: "costs no request and is not there",
			given: func(t *testing.T, s *rollout.Scenario) {
				s.Roll(t, s.Revision(1).Phase("p", x+"=1", y+"=1"))
				s.Become(s.Revision(2).Phase("p", "ConfigMap a/z=1"))
			},
			permit: func(_ context.Context, subjects []preview.Subject) ([]preview.Grant, error) {
				grants := make([]preview.Grant, len(subjects))
				for i, subject := range subjects {
					grants[i].Read = subject.ID != rollout.RefOf(y).ID
				}
				return grants, nil
			},
			want:  []string{"ConfigMap a/z Create", x + " Delete 1->none"},
			costs: []string{"get ConfigMap a/z", "get " + x},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := rollout.NewScenario()
			tc.given(t, s)
			s.Spent()
			got, err := previewed(s, tc.permit)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, said(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			writes, costs := s.Spent()
			if diff := cmp.Diff(tc.costs, costs); diff != "" || len(writes) > 0 {
				t.Errorf("%s: costs (-want +got):\n%s\nwrites: %v", tc.reason, diff, writes)
			}
		})
	}
}

// TestPreviewOfTheSilent: if the server does not answer for one object, the preview fails as a
// whole.
func TestPreviewOfTheSilent(t *testing.T) {
	cases := map[string]error{
		"unreachable": &url.Error{Op: "Patch", URL: "https://host", Err: errors.New("connection refused")},
		"busy":        apierrors.NewTooManyRequestsError("wait"),
		"unavailable": apierrors.NewServiceUnavailable("later"),
		"unknown":     apierrors.NewUnauthorized("who are you"),
		"time":        context.DeadlineExceeded,
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			s := rollout.NewScenario()
			s.Become(s.Revision(1).Phase("p", "ConfigMap a/x=1", "ConfigMap a/y=1"))
			s.Refuse(func(verb string, ref manifest.Ref) error {
				if ref.Name == "y" {
					return fmt.Errorf("trying: %w", answer)
				}
				return nil
			})
			got, err := previewed(s, nil)
			if !errors.Is(err, answer) || len(got.Items) > 0 {
				t.Errorf("want the error %v and nothing else, got %v and %v", answer, err, said(got))
			}
		})
	}
}

// TestPreviewAsksOnce: the Permit gets all objects in one call.
func TestPreviewAsksOnce(t *testing.T) {
	s := rollout.NewScenario()
	s.Roll(t, s.Revision(1).Phase("p", "ConfigMap a/x=1", "ConfigMap a/y=1"))
	s.Become(s.Revision(2).Phase("p", "ConfigMap a/x=2"))
	var asked []string
	denied := errors.New("nobody knows")
	_, err := previewed(s, func(_ context.Context, subjects []preview.Subject) ([]preview.Grant, error) {
		for _, subject := range subjects {
			asked = append(asked, fmt.Sprint(subject.ID, " leaving: ", subject.Leaving))
		}
		return nil, denied
	})
	if !errors.Is(err, denied) {
		t.Errorf("want the error of the permit, got %v", err)
	}
	if diff := cmp.Diff([]string{"ConfigMap a/x leaving: false", "ConfigMap a/y leaving: true"}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if _, err := previewed(s, func(context.Context, []preview.Subject) ([]preview.Grant, error) { return nil, nil }); err == nil {
		t.Error("grants that are missing are no grants")
	}
}

func TestPreviewOfCreateOnlyObjects(t *testing.T) {
	const theirs = "ConfigMap a/default"
	s := rollout.NewScenario()
	s.Place(rollout.RefOf(theirs), map[string]string{"value": "theirs"})
	s.Become(s.Revision(1).Phase("a", theirs+"=1@0", "ConfigMap a/other=1@0"))
	found, err := previewed(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	actions := map[string]rollout.Action{}
	for _, item := range found.Items {
		actions[item.Name] = item.Action
		if item.Name == "default" && (item.Tried || item.Before != nil || item.After != nil) {
			t.Errorf("what exists would not change: %+v", item)
		}
	}
	if diff := cmp.Diff(map[string]rollout.Action{"default": rollout.Idle, "other": rollout.Create}, actions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPreviewOfGoneVersions: the preview finds a deletion in the served version, and reports an
// object whose kind the server does not know.
func TestPreviewOfGoneVersions(t *testing.T) {
	s := rollout.NewScenario()
	s.ServeWidgets("v1alpha1", "v1")
	s.Roll(t, s.Revision(1).Phase("base", "Widget.example.com/v1alpha1 a/w=1", "Widget.example.com/v1alpha1 a/z=1"))
	s.ServeWidgets("v1")
	s.Become(s.Revision(2).Phase("base", "Widget.example.com/v1 a/w=2"))
	found, err := previewed(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(said(found), "\n")
	for _, want := range []string{"a/w Deferred", "example.com/v1alpha1, a version that the server does not know any more; a rollout corrects that first", "a/z Delete 1->"} {
		if !strings.Contains(got, want) {
			t.Errorf("the preview does not say %q:\n%s", want, got)
		}
	}
}
