package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

const reader = "system:serviceaccount:penstock-system:penstock-reader"

// rights holds rights as "user verb resource namespace/name"; a name may be *. Checks for an object
// named "broken" get no answer.
type rights struct {
	mu     sync.Mutex
	rules  []string
	broken string
	asked  []string
}

func (r *rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	question := fmt.Sprintf("%s %s %s %s/%s", a.GetUser().GetName(), a.GetVerb(), a.GetResource(), a.GetNamespace(), a.GetName())
	if a.GetName() == "" {
		question += "*"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, question)
	if r.broken != "" && strings.Contains(question, r.broken) {
		return authorizer.DecisionNoOpinion, "", errors.New("the reviewer is away")
	}
	for _, rule := range r.rules {
		if rule == question || strings.HasSuffix(rule, "*") && strings.HasPrefix(question, strings.TrimSuffix(rule, "*")) {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// served holds the kinds that the cluster serves, with their resources.
type served struct {
	resources map[string]string
	// clusterScoped holds the cluster-scoped kinds.
	clusterScoped map[string]bool
	err           error
}

func (s served) Served(_ context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if s.err != nil {
		return nil, s.err
	}
	resource, ok := s.resources[kind.Kind]
	if !ok {
		return nil, &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	}
	scope := meta.RESTScopeNamespace
	if s.clusterScoped[kind.Kind] {
		scope = meta.RESTScopeRoot
	}
	return &meta.RESTMapping{Resource: kind.GroupVersion().WithResource(resource), GroupVersionKind: kind, Scope: scope}, nil
}

// previews is an engine that checks permissions like the real engine, and returns a fixed result.
type previews struct {
	subjects []preview.Subject
	items    []preview.Item
	err      error
	wait     bool

	asked  int
	grants []preview.Grant
}

func (p *previews) Preview(ctx context.Context, _ rollout.Work, permit preview.Permit) (preview.Preview, error) {
	p.asked++
	grants, err := permit(ctx, p.subjects)
	if err != nil {
		return preview.Preview{}, fmt.Errorf("previewing: %w", err)
	}
	p.grants = grants
	if p.wait {
		<-ctx.Done()
		return preview.Preview{}, fmt.Errorf("previewing: %w", ctx.Err())
	}
	return preview.Preview{Items: p.items}, p.err
}

// setting holds the dependencies of a Live.
type setting struct {
	rights  *rights
	served  served
	engine  *previews
	clock   *testclock.FakePassiveClock
	version int64
	timeout time.Duration
	// manifests are the manifests of the revision. shows reports which other objects the answer may
	// mention.
	manifests []manifest.Object
	shows     func(manifest.ID) bool
}

func newSetting(names ...string) *setting {
	s := &setting{
		rights: &rights{},
		served: served{resources: map[string]string{
			"ConfigMap": "configmaps", "Secret": "secrets", "CustomResourceDefinition": "customresourcedefinitions", "Node": "nodes",
		}, clusterScoped: map[string]bool{"CustomResourceDefinition": true, "Node": true}},
		engine: &previews{},
		clock:  testclock.NewFakePassiveClock(time.Unix(1000, 0)),
		shows:  func(manifest.ID) bool { return true },
	}
	for _, name := range names {
		s.add(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"` + name + `"}}`)
	}
	return s
}

func (s *setting) add(raw string) {
	object, err := manifest.Digester{}.FromJSON([]byte(raw))
	if err != nil {
		panic(err) // a mistake in a table
	}
	s.manifests = append(s.manifests, object)
	s.engine.subjects = append(s.engine.subjects, preview.Subject{Ref: object.Ref})
}

func (s *setting) live() *Live {
	return New(Deps{
		Authorizer: s.rights, Previewer: s.engine, Kinds: s.served, Clock: s.clock, Timeout: s.timeout,
		Work: func(context.Context, *olm.ClusterExtensionRevision) (rollout.Work, int64, error) {
			return rollout.Work{Owner: "x"}, s.version, nil
		},
		Reader: &user.DefaultInfo{Name: reader}, Role: "create ClusterRole penstock-reader",
	})
}

func (s *setting) ask(t *testing.T, l *Live, name string) (revisiondiff.Preview, error) {
	t.Helper()
	revision := &olm.ClusterExtensionRevision{}
	revision.Name, revision.UID = "x-1", types.UID("uid-of-x-1")
	ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
	return l.Preview(ctx, revisiondiff.LiveQuestion{Revision: revision, Manifests: s.manifests, Shows: s.shows})
}

// leaving returns an object of the inventory that is in no layer.
func leaving(name string) preview.Subject {
	return preview.Subject{Leaving: true, Ref: manifest.Ref{Version: "v1", ID: manifest.ID{Kind: "ConfigMap", Namespace: "ns", Name: name}}}
}

// TestNoAnswer: a preview without all answers is an error that names the failure.
func TestNoAnswer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("secret reasons"))
	cases := map[string]struct {
		reason string
		change func(*setting)
		code   int32
		want   string
		not    string
	}{
		"ReviewerAway": {
			reason: "a review that fails is not a right that is missing",
			change: func(s *setting) { s.rights.broken = "patch" },
			code:   http.StatusServiceUnavailable,
			want:   "asking what you may do: the reviewer is away",
		},
		"DiscoveryAway": {
			reason: "what kinds there are is nobody's business yet",
			change: func(s *setting) { s.served.err = errors.New("metrics.k8s.io is broken") },
			code:   http.StatusServiceUnavailable,
			want:   "does not say which kinds it serves",
			not:    "metrics.k8s.io",
		},
		"TooLate": {
			reason: "the cluster takes too long",
			change: func(s *setting) { s.engine.wait, s.timeout = true, time.Millisecond },
			code:   http.StatusGatewayTimeout,
			want:   "has not answered within 1ms",
		},
		"ReaderMayNotRead": {
			reason: "the reader's own refusal is no answer about the object",
			change: func(s *setting) { s.engine.err = fmt.Errorf("reading: %w", forbidden) },
			code:   http.StatusServiceUnavailable,
			want:   reader + " cannot get the objects to compare: create ClusterRole penstock-reader",
			not:    "secret reasons",
		},
		"ReaderMayNotTry": {
			reason: "nor is it when it cannot patch",
			change: func(s *setting) {
				s.engine.items = []preview.Item{{Ref: s.manifests[0].Ref, Exists: true, Err: forbidden, Failure: &rollout.Failure{Message: "m"}}}
				s.rights.rules = append(s.rights.rules, reader+" create configmaps ns/a")
			},
			code: http.StatusServiceUnavailable,
			want: reader + " cannot patch",
		},
		"ReaderMayNotCreate": {
			reason: "or create",
			change: func(s *setting) {
				s.engine.items = []preview.Item{{Ref: s.manifests[0].Ref, Err: forbidden, Failure: &rollout.Failure{Message: "m"}}}
				s.rights.rules = append(s.rights.rules, reader+" patch configmaps ns/a")
			},
			code: http.StatusServiceUnavailable,
			want: reader + " cannot create",
		},
		"ServerAway": {
			reason: "a cluster that is away",
			change: func(s *setting) { s.engine.err = errors.New("connection refused") },
			code:   http.StatusServiceUnavailable,
			want:   "connection refused",
		},
		"NoIdentity": {
			reason: "what is missing for an identity says what to do",
			change: func(s *setting) {
				s.engine.err = apierrors.NewServiceUnavailable("there is no ServiceAccount: start with --register")
			},
			code: http.StatusServiceUnavailable,
			want: "there is no ServiceAccount: start with --register",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSetting("a")
			s.rights.rules = []string{"alice get configmaps ns/*", "alice patch configmaps ns/*"}
			tc.change(s)
			_, err := s.ask(t, s.live(), "alice")
			var status *apierrors.StatusError
			if !errors.As(err, &status) || status.ErrStatus.Code != tc.code {
				t.Fatalf("%s: %v, want %d", tc.reason, err, tc.code)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			if tc.not != "" && strings.Contains(err.Error(), tc.not) {
				t.Errorf("%s: %v must not say %q", tc.reason, err, tc.not)
			}
		})
	}
}

// TestRefusedByThePolicy: if the reader has the rights, a refusal is part of the answer.
func TestRefusedByThePolicy(t *testing.T) {
	s := newSetting("a")
	s.rights.rules = []string{"alice get configmaps ns/*", "alice patch configmaps ns/*", reader + " patch configmaps ns/a"}
	s.engine.items = []preview.Item{{
		Ref: s.manifests[0].Ref, Exists: true, Tried: true,
		Err:     apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("a policy says no")),
		Failure: &rollout.Failure{Message: "a policy says no"},
	}}
	preview, err := s.ask(t, s.live(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	notes := preview.Report.Notes
	if len(notes) != 1 || notes[0].Reason != "Refused" || !strings.Contains(notes[0].Message, "a policy says no") {
		t.Errorf("notes: %+v", notes)
	}
	if got := preview.Report.Summary.Changed; got != 1 {
		t.Errorf("%d changed, want the refused one", got)
	}
}

// TestUnread: an object that could not be read counts as unknown, neither as new nor as deleted.
func TestUnread(t *testing.T) {
	s := newSetting("a")
	s.rights.rules = []string{"alice get configmaps ns/*", "alice patch configmaps ns/*"}
	away := &rollout.Failure{Message: "its webhook is away"}
	gone := s.manifests[0].Ref
	gone.ID.Name = "b"
	s.engine.items = []preview.Item{
		{Ref: s.manifests[0].Ref, Action: rollout.Create, Unread: true, Failure: away, Err: errors.New("500")},
		{Ref: gone, Action: preview.Delete, Unread: true, Failure: away, Err: errors.New("500")},
	}
	preview, err := s.ask(t, s.live(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	if got := preview.Report.Summary; got.Added+got.Removed > 0 || got.Changed != 2 {
		t.Errorf("%d added, %d removed, %d changed; want 2 of which nothing is known", got.Added, got.Removed, got.Changed)
	}
	for i, change := range preview.Report.Changes {
		if change.Kind != diff.Changed || change.NotCompared == "" || change.Unified != "" {
			t.Errorf("change %d: %+v", i, change)
		}
	}
	notes := preview.Report.Notes
	if len(notes) != 2 || notes[0].Reason != "NotRead" || !strings.Contains(notes[0].Message, "its webhook is away") {
		t.Errorf("notes: %+v", notes)
	}
}

// TestOvertaken: an object that changes during each read is reported as unknown. That answer is not
// cached.
func TestOvertaken(t *testing.T) {
	s := newSetting("a")
	s.rights.rules = []string{"alice get configmaps ns/*", "alice patch configmaps ns/*"}
	live := s.live()
	s.engine.items = []preview.Item{{Ref: s.manifests[0].Ref, Exists: true, Action: rollout.Deferred, Overtaken: true, Message: "it was written"}}
	found, err := s.ask(t, live, "alice")
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Report.Summary; got.Unchanged > 0 || got.Changed != 1 || found.Report.Changes[0].NotCompared == "" {
		t.Errorf("%+v: want one object that was not compared", got)
	}
	s.engine.items = []preview.Item{{Ref: s.manifests[0].Ref, Exists: true, Action: rollout.Idle}}
	if found, err = s.ask(t, live, "alice"); err != nil || found.Report.Summary.Unchanged != 1 {
		t.Errorf("asked again: %+v and %v, want the answer of now", found.Report.Summary, err)
	}
}
