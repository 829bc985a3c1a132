package rollout

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// serving returns a definition that lists and serves these versions.
func serving(versions ...string) defined {
	d := defined{versions: map[string]bool{}}
	for _, version := range versions {
		d.versions[version] = true
	}
	return d
}

func (s *saga) managersOf(object string) map[string]string {
	out := map[string]string{}
	for _, entry := range s.objects[refOf(object).ID].metadata().ManagedFields {
		out[entry.Manager] = entry.APIVersion + " " + string(entry.FieldsV1.GetRawBytes())
	}
	return out
}

// TestUpgradeBehindAGoneVersion: managedFields entries of a removed version do not stop an upgrade.
// No manager gets or loses a field.
func TestUpgradeBehindAGoneVersion(t *testing.T) {
	const before, after = "Widget.example.com/v1alpha1 a/w", "Widget.example.com/v1 a/w"
	for name, skip := range map[string]bool{"with preflight": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.engine.SkipPreflight = skip
			s.define(widgets(), serving("v1alpha1", "v1"))
			one := s.revision(1).phase("base", before+"=1")
			s.roll(t, one)
			s.alter(refOf(before).ID, func(o *thing) { o.set("data:theirs", "1", "somebody") })
			s.settle(t)
			s.define(widgets(), serving("v1"))
			s.become(s.revision(2).phase("base", after+"=2"), one)
			var events []Event
			for range 10 {
				report, err := s.pass()
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, report.Events...)
			}
			if got := s.content(after); got != "2" {
				t.Fatalf("it is %q: %v", got, failures(s.last))
			}
			want := map[string]string{
				"somebody":        `example.com/v1 {"f:data":{"f:theirs":{}}}`,
				"penstock/argocd": `example.com/v1 {"f:data":{"f:value":{}},"f:metadata":{"f:annotations":{"f:penstock.dev/applied":{}},"f:labels":{"f:penstock.dev/chain":{}}}}`,
			}
			if diff := cmp.Diff(want, s.managersOf(after)); diff != "" {
				t.Errorf("managedFields (-want +got):\n%s", diff)
			}
			said := fmt.Sprint(events)
			if !strings.Contains(said, "somebody from example.com/v1alpha1") || !strings.Contains(said, "penstock/argocd from example.com/v1alpha1") {
				t.Errorf("it is not told whose entries were moved: %s", said)
			}
			s.settle(t)
			s.restarted(t)
		})
	}
}

// TestRestoreOfAGoneVersion: the fields of the object's manifest are restored after its
// managedFields were wiped, unless that manifest cannot be applied any more.
func TestRestoreOfAGoneVersion(t *testing.T) {
	s := newSaga()
	s.define(widgets(), serving("v1alpha1", "v1"))
	one := s.revision(1).phase("base", "Widget.example.com/v1alpha1 a/w=1")
	s.roll(t, one)
	s.alter(refOf("Widget.example.com a/w").ID, func(o *thing) {
		for path, field := range o.fields {
			o.fields[path] = owned{field.value, nil}
		}
	})
	s.define(widgets(), serving("v1"))
	report := s.roll(t, s.revision(2).phase("base", "Widget.example.com/v1 a/w=2"), one)
	if got := s.content("Widget.example.com a/w"); got != "2" || !report.Layers[0].Complete {
		t.Errorf("it is %q: %v", got, failures(report))
	}
}

// TestCreateOntoAGoneVersion: a create conflicts with an object that no watch shows and whose
// managedFields name a removed version.
func TestCreateOntoAGoneVersion(t *testing.T) {
	s := newSaga()
	s.define(widgets(), serving("v1alpha1", "v1"))
	s.place(refOf("Widget.example.com/v1alpha1 a/w"), map[string]string{"value": "theirs"})
	s.define(widgets(), serving("v1"))
	report := s.roll(t, s.revision(1).phase("base", "Widget.example.com/v1 a/w=1"))
	if diff := cmp.Diff([]string{"1/base Widget.example.com a/w Collision"}, failures(report)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// TestGoneVersionIsWatched: the engine sees the deletion of an object without a timeout, even if
// its recorded version is not served any more.
func TestGoneVersionIsWatched(t *testing.T) {
	s := newSaga()
	id := refOf("Widget.example.com a/w").ID
	s.define(widgets(), serving("v1alpha1", "v1"))
	s.roll(t, s.revision(1).phase("base", "Widget.example.com/v1alpha1 a/w=1"))
	s.alter(id, func(o *thing) { o.finalizers = []string{"example.com/hold"} })
	s.define(widgets(), serving("v1"))
	s.become()
	for range 3 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	s.erase(id)
	if !s.news {
		t.Error("nobody is told that it is gone")
	}
	if _, err := s.pass(); err != nil || len(s.stored.Entries) > 0 {
		t.Errorf("it is still in the inventory: %v", err)
	}
}

// TestStuck: a refusal that repeats beyond StuckAfter needs a user, until it ends.
func TestStuck(t *testing.T) {
	s := newSaga()
	internal := apierrors.NewInternalError(fmt.Errorf("conversion webhook failed"))
	s.refuse = func(_ string, ref manifest.Ref) error {
		if ref.Name == "x" {
			return internal
		}
		return nil
	}
	s.become(s.revision(1).phase("base", "ConfigMap a/x=1"))
	began := s.clock.Now()
	stuck := func() bool {
		report, err := s.pass()
		if err != nil {
			t.Fatal(err)
		}
		f := report.Layers[0].Phases[0].Failures
		if len(f) != 1 || f[0].Reason != ReasonUnreachable || !f[0].Refused || f[0].NeedsPerson {
			t.Fatalf("failures are %+v", f)
		}
		return f[0].Stuck
	}
	for at := time.Duration(0); at < StuckAfter; at = s.clock.Now().Sub(began) {
		if stuck() {
			t.Fatalf("it is called stuck after %s", at)
		}
		if s.last.RequeueAfter <= 0 || at+s.last.RequeueAfter > StuckAfter {
			t.Fatalf("after %s the next pass comes in %s: nothing would tell in time", at, s.last.RequeueAfter)
		}
		s.clock.SetTime(s.clock.Now().Add(s.last.RequeueAfter))
	}
	if !stuck() {
		t.Error("it is not told when it is due")
	}
	s.refuse = nil
	if report := s.settle(t); !report.Layers[0].Complete || len(s.engine.memories["argocd"].refusals) > 0 {
		t.Errorf("it is over, and still remembered: %v", failures(report))
	}
}

// TestRefusedRepairIsNoFight: a repair that is refused repeatedly is reported as refused, and not
// as contested.
func TestRefusedRepairIsNoFight(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
	s.alter(refOf("ConfigMap a/x").ID, func(o *thing) { o.set("data:value", "9", "somebody") })
	s.refuse = func(verb string, _ manifest.Ref) error {
		if verb == "apply" {
			return &targetclient.KindUnknownError{}
		}
		return nil
	}
	for range 20 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
		if f := s.last.Layers[0].Phases[0].Failures; len(f) != 1 || f[0].Reason != ReasonNotServed {
			t.Fatalf("failures are %+v", f)
		}
		s.clock.SetTime(s.clock.Now().Add(s.last.RequeueAfter))
	}
}

// TestDefinedLater: an object whose definition is in a later phase of its revision reports that,
// and needs a user. The kind is read from the definition, so an irregular plural works.
func TestDefinedLater(t *testing.T) {
	for name, c := range map[string]struct{ definition, kind, want string }{
		"regular plural":              {"widgets.example.com", "Widget", ReasonDefinedLater},
		"irregular plural":            {"widgeten.example.com", "Widget", ReasonDefinedLater},
		"another kind":                {"gadgets.example.com", "Gadget", ReasonNotServed},
		"another kind of that plural": {"widgets.example.com", "WidgetSet", ReasonNotServed},
		"another group":               {"widgets.other.example.com", "Widget", ReasonNotServed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.refuse = func(verb string, ref manifest.Ref) error {
				if ref.Kind == "Widget" {
					return &targetclient.KindUnknownError{}
				}
				return nil
			}
			s.become(s.revision(1).phase("objects", "Widget.example.com a/x=1").phase("definitions", "CustomResourceDefinition.apiextensions.k8s.io "+c.definition+"=1"))
			_, group, _ := strings.Cut(c.definition, ".")
			s.bodies[s.layers[0].Stages[1].Steps[0].Digest] = fmt.Appendf(nil, `{"spec": {"group": %q, "scope": "Namespaced", "names": {"kind": %q}, "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`, group, c.kind)
			if _, err := s.pass(); err != nil {
				t.Fatal(err)
			}
			found := s.last.Layers[0].Phases[0].Failures
			if len(found) != 1 || found[0].Reason != c.want || found[0].NeedsPerson != (c.want == ReasonDefinedLater) || strings.Contains(found[0].Message, `later phase "definitions"`) != (c.want == ReasonDefinedLater) {
				t.Errorf("failures are %#v", found)
			}
		})
	}
}

// TestNoAnswerIsNoRefusal: while the server does not answer, no object counts as refused.
func TestNoAnswerIsNoRefusal(t *testing.T) {
	for name, err := range map[string]error{"no connection": fmt.Errorf("connection refused"), "too many requests": apierrors.NewTooManyRequests("later", 1)} {
		if Classify(manifest.Ref{}, err).Refused {
			t.Errorf("%s counts as refused", name)
		}
	}
	if !Classify(manifest.Ref{}, &targetclient.KindUnknownError{}).Refused || !Classify(manifest.Ref{}, apierrors.NewServiceUnavailable("down")).Refused {
		t.Error("an answer does not count as refused")
	}
}

// silent accepts deletions and does nothing.
type silent struct {
	*model
	asked int
}

func (d *silent) Delete(context.Context, manifest.Ref, targetclient.Precondition) error {
	d.asked++
	return nil
}

// TestDeletionIsAskedForAgain: a deletion is sent again if the watch still shows the object
// unchanged.
func TestDeletionIsAskedForAgain(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
	writer := &silent{model: s.model}
	s.engine.Writer = writer
	s.become()
	for began := s.clock.Now(); s.clock.Now().Sub(began) < 3*lastRetry; s.clock.SetTime(s.clock.Now().Add(s.last.RequeueAfter)) {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if writer.asked < 2 || writer.asked > 4 {
		t.Errorf("it was asked for %d times in %s", writer.asked, 3*lastRetry)
	}
}

// TestCheckEnds: the engine finds a conflicting object that appears after a passed check, although
// another object blocks the phase for longer.
func TestCheckEnds(t *testing.T) {
	s := newSaga()
	s.place(refOf("ConfigMap a/y"), map[string]string{"value": "theirs"})
	s.become(s.revision(1).phase("base", "ConfigMap a/x=1", "ConfigMap a/y=1"))
	s.rest(t)
	s.place(refOf("ConfigMap a/x"), map[string]string{"value": "theirs"})
	s.rest(t)
	want := []string{"1/base ConfigMap a/x Collision", "1/base ConfigMap a/y Collision"}
	if diff := cmp.Diff(want, failures(s.last)); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// TestCollisionIsWatchedByItself: another owner's watch of a conflicting object may end before the
// object is deleted.
func TestCollisionIsWatchedByItself(t *testing.T) {
	s := newSaga()
	ref := refOf("ConfigMap a/x")
	s.place(ref, map[string]string{"value": "theirs"})
	s.Want("somebody", observe.Interest{ID: ref.ID, Version: "v1", ByName: true})
	s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1"))
	s.Want("somebody")
	s.news = false
	s.erase(ref.ID)
	if !s.news {
		t.Error("nobody is told that the way is free")
	}
	s.rest(t)
	if got := s.content("ConfigMap a/x"); got != "1" {
		t.Errorf("it is %q", got)
	}
}

// TestJudgementEnds: a result of conform is dropped when other objects exist than at the time of
// the check.
func TestJudgementEnds(t *testing.T) {
	id := manifest.ID{Kind: "Widget", Name: "w"}
	p := &pass{}
	if p.otherwise(conformity{existed: map[manifest.ID]bool{id: false}}) {
		t.Error("nothing has changed")
	}
	p.inventory.Entries = map[manifest.ID]Entry{id: {UID: "1"}}
	if !p.otherwise(conformity{existed: map[manifest.ID]bool{id: false}}) || p.otherwise(conformity{existed: map[manifest.ID]bool{id: true}}) {
		t.Error("of an object that exists less is asked")
	}
}

// TestStaleEnds: a refusal is valid for one write to one state, and is checked again after some
// time.
func TestStaleEnds(t *testing.T) {
	s := newSaga()
	reviewed := s.foreign(t)
	s.change("value", "7")
	s.sharing(t, reviewed, false)
	s.settle(t)
	s.spent()
	s.clock.SetTime(s.clock.Now().Add(settledFor))
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if _, reads := s.spent(); len(reads) != 1 {
		t.Errorf("after %s there were reads %v, want one", settledFor, reads)
	}
	s.sharing(t, s.state(t), false)
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if got := s.content("Deployment.apps a/x"); got != "2" {
		t.Errorf("what was reviewed again was not written: %q %v", got, failures(s.last))
	}
}

// late is an observer whose watch of one object lags.
type late struct {
	Observer
	id   manifest.ID
	seen observe.Observation
}

func (l late) Get(id manifest.ID) (observe.Observation, observe.Presence) {
	if id == l.id {
		return l.seen, observe.Present
	}
	return l.Observer.Get(id)
}

// TestDeleteFindsTheKindGone: an object that was deleted with its definition counts as deleted,
// even if only the delete request reveals that.
func TestDeleteFindsTheKindGone(t *testing.T) {
	s := newSaga()
	s.define(widgets(), serving("v1"))
	s.roll(t, s.revision(1).phase("base", "Widget.example.com/v1 a/w=1"))
	id := refOf("Widget.example.com/v1 a/w").ID
	seen, _ := s.Get(id)
	s.engine.Observer = late{s.model, id, seen}
	s.define(widgets(), defined{})
	s.become()
	report, err := s.pass()
	if err != nil || len(report.Leaving) > 0 {
		t.Fatalf("still leaving %v, error %v", report.Leaving, err)
	}
	if len(report.Events) != 1 || !strings.Contains(report.Events[0].Message, "was deleted with the definition of its kind") {
		t.Errorf("events: %v", report.Events)
	}
}
