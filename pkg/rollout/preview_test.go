package rollout

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
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// Try is a dry-run of server-side apply with force.
func (m *model) Try(_ context.Context, ref manifest.Ref, body []byte, o targetclient.TryOptions) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, "try "+ref.ID.String())
	if m.refuse != nil {
		if err := m.refuse("try", ref); err != nil {
			return nil, err
		}
	}
	fields, err := flatten(body)
	if err != nil {
		return nil, err
	}
	now := &thing{ref: ref, fields: map[string]owned{}, uid: "would-be"}
	if err := m.applies(ref, m.objects[ref.ID], false); err != nil {
		return nil, err
	}
	if have := m.objects[ref.ID]; have != nil {
		if have.uid != o.UID || fmt.Sprint(have.version) != o.ResourceVersion {
			return nil, apierrors.NewConflict(resourceOf(ref), ref.Name, errors.New("it is another one"))
		}
		now = have.clone()
	}
	now.takes(fields, o.FieldManager)
	return now.whole(), nil
}

// preview is a preview of the layers on an engine that does nothing else.
func (s *saga) preview(permit Permit) (Preview, error) {
	engine := New(Options{Reader: s.model, Trier: s.model, Names: testNames(), Parallel: 1})
	return engine.Preview(context.Background(), Work{Owner: "argocd", Layers: s.layers, Inventory: s.stored, Bodies: s, Orphan: s.orphan}, permit)
}

// said prints what a preview says of each object.
func said(p Preview) []string {
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
		given  func(t *testing.T, s *saga)
		permit Permit
		want   []string
		// costs are the reads and dry-runs.
		costs []string
	}{
		"New": {
			reason: "what is not there is created",
			given:  func(t *testing.T, s *saga) { s.become(s.revision(1).phase("p", x+"=1")) },
			want:   []string{x + " Create none->1"},
			costs:  []string{"get " + x, "try " + x},
		},
		"AtRest": {
			reason: "what nobody touched is not tried",
			given:  func(t *testing.T, s *saga) { s.roll(t, s.revision(1).phase("p", x+"=1")) },
			want:   []string{x + " Idle"},
			costs:  []string{"get " + x},
		},
		"Drift": {
			reason: "a value of ours that somebody changed, and who",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.alter(refOf(x).ID, func(o *thing) { o.set("data:value", "9", "kubectl-edit") })
			},
			want:  []string{x + " Recover 9->1 drifted taking .data.value of kubectl-edit"},
			costs: []string{"get " + x, "try " + x},
		},
		"ForeignField": {
			reason: "fields that we do not apply are nobody's drift",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.alter(refOf(x).ID, func(o *thing) { o.set("data:theirs", "9", "kubectl-edit") })
			},
			want:  []string{x + " Idle"},
			costs: []string{"get " + x, "try " + x},
		},
		"Deleted": {
			reason: "what somebody deleted comes again",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.erase(refOf(x).ID)
			},
			want:  []string{x + " Create none->1 drifted"},
			costs: []string{"get " + x, "try " + x},
		},
		"Upgrade": {
			reason: "another content, and what it does not list goes",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1", y+"=1"))
				s.become(s.revision(2).phase("p", x+"=2"))
			},
			want:  []string{x + " Update 1->2", y + " Delete 1->none"},
			costs: []string{"get " + x, "try " + x, "get " + y},
		},
		"Contested": {
			reason: "an upgrade takes what somebody changed",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.alter(refOf(x).ID, func(o *thing) { o.set("data:value", "9", "kubectl-edit") })
				s.become(s.revision(2).phase("p", x+"=2"))
			},
			want:  []string{x + " Update 9->2 taking .data.value of kubectl-edit"},
			costs: []string{"get " + x, "try " + x},
		},
		"Collision": {
			reason: "somebody else's is left alone, and not tried",
			given: func(t *testing.T, s *saga) {
				s.place(refOf(x), map[string]string{"value": "theirs"})
				s.become(s.revision(1).phase("p", x+"=1"))
			},
			want:  []string{x + " Collision: exists already and was not made by this extension; collision protection leaves it alone"},
			costs: []string{"get " + x},
		},
		"Adoption": {
			reason: "or taken over",
			given: func(t *testing.T, s *saga) {
				s.place(refOf(x), map[string]string{"value": "theirs"})
				s.become(s.revision(1).adopting(stage.AdoptUncontrolled).phase("p", x+"=1"))
			},
			want:  []string{x + " Adopt theirs->1 taking .data.value of somebody: exists already and was not made by this extension"},
			costs: []string{"get " + x, "try " + x},
		},
		"Terminating": {
			reason: "what is on its way out is waited for",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.alter(refOf(x).ID, func(o *thing) { o.deleting = true })
			},
			want:  []string{x + " Deferred: the existing object is being deleted; its finalizers have to be done first"},
			costs: []string{"get " + x},
		},
		"Left": {
			reason: "what is somebody else's by now is not deleted",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.alter(refOf(x).ID, func(o *thing) {
					o.controller = &metav1.OwnerReference{Kind: "Deployment", Name: "d", Controller: new(true)}
				})
				s.become(s.revision(2))
			},
			want:  []string{x + ` Leave: is controlled by Deployment "d"`},
			costs: []string{"get " + x},
		},
		"Released": {
			reason: "an orphan stays",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.orphan[1] = true
				s.become()
			},
			want:  []string{x + " Release"},
			costs: []string{"get " + x},
		},
		"Refused": {
			reason: "what the server says no to",
			given: func(t *testing.T, s *saga) {
				s.become(s.revision(1).phase("p", x+"=1"))
				s.refuse = func(verb string, ref manifest.Ref) error {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", nil)
				}
			},
			want:  []string{x + " Create " + ReasonRejected},
			costs: []string{"get " + x, "try " + x},
		},
		"Unread": {
			reason: "a read that fails is no object that does not exist",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1", y+"=1"))
				s.become(s.revision(2).phase("p", x+"=2"))
				s.unreadable = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "its webhook is away"}}
			},
			want:  []string{x + " Create unread " + ReasonUnreachable, y + " Delete unread " + ReasonUnreachable},
			costs: []string{"get " + x, "get " + y},
		},
		"NamespaceOfTheSame": {
			reason: "a namespace of the same rollout comes first",
			given: func(t *testing.T, s *saga) {
				s.become(s.revision(1).phase("p", "Namespace a=1", x+"=1"))
				s.refuse = func(verb string, ref manifest.Ref) error {
					if ref.Kind == "Namespace" {
						return nil
					}
					return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a")
				}
			},
			want:  []string{"Namespace a Create none->1", x + " Deferred: its namespace a does not exist yet; the same rollout makes it"},
			costs: []string{"get Namespace a", "try Namespace a", "get " + x, "try " + x},
		},
		"OtherNamespace": {
			reason: "a namespace that nobody makes is a refusal",
			given: func(t *testing.T, s *saga) {
				s.become(s.revision(1).phase("p", x+"=1"))
				s.refuse = func(verb string, ref manifest.Ref) error {
					return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a")
				}
			},
			want:  []string{x + " Create " + ReasonRejected},
			costs: []string{"get " + x, "try " + x},
		},
		"ChangesInBetween": {
			reason: "is looked at once more",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.become(s.revision(2).phase("p", x+"=2"))
				s.refuse = func(verb string, ref manifest.Ref) error {
					s.refuse = nil
					return apierrors.NewConflict(resourceOf(ref), ref.Name, errors.New("it changed"))
				}
			},
			want:  []string{x + " Update 1->2"},
			costs: []string{"get " + x, "try " + x, "get " + x, "try " + x},
		},
		"ChangesAllTheTime": {
			reason: "is not waited for",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1"))
				s.become(s.revision(2).phase("p", x+"=2"))
				s.refuse = func(verb string, ref manifest.Ref) error {
					return apierrors.NewConflict(resourceOf(ref), ref.Name, errors.New("it changed"))
				}
			},
			want:  []string{x + " Deferred: it changes all the time"},
			costs: []string{"get " + x, "try " + x, "get " + x, "try " + x},
		},
		"NotPermitted": {
			reason: "costs no request and is not there",
			given: func(t *testing.T, s *saga) {
				s.roll(t, s.revision(1).phase("p", x+"=1", y+"=1"))
				s.become(s.revision(2).phase("p", "ConfigMap a/z=1"))
			},
			permit: func(_ context.Context, subjects []PreviewSubject) ([]Grant, error) {
				grants := make([]Grant, len(subjects))
				for i, subject := range subjects {
					grants[i].Look = subject.ID != refOf(y).ID
				}
				return grants, nil
			},
			want:  []string{"ConfigMap a/z Create", x + " Delete 1->none"},
			costs: []string{"get ConfigMap a/z", "get " + x},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			tc.given(t, s)
			s.spent()
			got, err := s.preview(tc.permit)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, said(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			writes, costs := s.spent()
			if diff := cmp.Diff(tc.costs, costs); diff != "" || len(writes) > 0 {
				t.Errorf("%s: costs (-want +got):\n%s\nwrites: %v", tc.reason, diff, writes)
			}
		})
	}
}

// TestPreviewOfTheSilent: an answer that says nothing about an object is no
// answer about the whole.
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
			s := newSaga()
			s.become(s.revision(1).phase("p", "ConfigMap a/x=1", "ConfigMap a/y=1"))
			s.refuse = func(verb string, ref manifest.Ref) error {
				if ref.Name == "y" {
					return fmt.Errorf("trying: %w", answer)
				}
				return nil
			}
			got, err := s.preview(nil)
			if !errors.Is(err, answer) || len(got.Items) > 0 {
				t.Errorf("want the error %v and nothing else, got %v and %v", answer, err, said(got))
			}
		})
	}
}

// TestPreviewAsksOnce: whoever permits sees everything at once.
func TestPreviewAsksOnce(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("p", "ConfigMap a/x=1", "ConfigMap a/y=1"))
	s.become(s.revision(2).phase("p", "ConfigMap a/x=2"))
	var asked []string
	denied := errors.New("nobody knows")
	_, err := s.preview(func(_ context.Context, subjects []PreviewSubject) ([]Grant, error) {
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
	if _, err := s.preview(func(context.Context, []PreviewSubject) ([]Grant, error) { return nil, nil }); err == nil {
		t.Error("grants that are missing are no grants")
	}
}

func TestSilent(t *testing.T) {
	status := func(code int) error {
		return fmt.Errorf("reading: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code)}})
	}
	silents := []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusBadGateway}
	for _, code := range []int{400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 504} {
		if got := silent(status(code)); got != slices.Contains(silents, code) {
			t.Errorf("%d: silent is %t", code, got)
		}
	}
	if silent(&targetclient.KindUnknownError{}) || silent(&targetclient.ScopeError{}) {
		t.Error("that a kind is not served, or has no namespace, is an answer")
	}
	if !silent(errors.New("connection refused")) {
		t.Error("no answer is none")
	}
}
