package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// lodger returns an object of another owner in a namespace.
func lodger(object string, change ...func(*metav1.PartialObjectMetadata)) metav1.PartialObjectMetadata {
	ref := refOf(object)
	o := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: ref.APIVersion(), Kind: ref.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name},
	}
	for _, do := range change {
		do(&o)
	}
	return o
}

// deletes returns a chain with these objects, whose only revision a user deletes.
func deletes(t *testing.T, objects ...string) *saga {
	t.Helper()
	s := budgeted()
	r := s.revision(1)
	for i, object := range objects {
		r.phase(string(rune('a'+i)), object)
	}
	s.roll(t, r)
	s.budget.Explicit = map[int64]bool{1: true}
	s.become()
	return s
}

// TestNotEmpty: deleting a revision with a bound claim, or with a namespace that has foreign
// objects, needs a confirmation.
func TestNotEmpty(t *testing.T) {
	owned := func(o *metav1.PartialObjectMetadata) {
		o.OwnerReferences = []metav1.OwnerReference{{Kind: "Widget", Name: "x"}}
	}
	deleting := func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	copied := func(o *metav1.PartialObjectMetadata) { o.Labels = map[string]string{"olm.copiedFrom": "olm"} }
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "", nil)
	for name, tc := range map[string]struct {
		reason  string
		objects []string
		inside  []metav1.PartialObjectMetadata
		volume  string
		change  func(*saga)
		// asks are parts of the expected question; empty for none. left is the number of objects
		// that stay.
		asks []string
		left int
	}{
		"Plain":       {reason: "what somebody deletes goes", objects: []string{"Namespace n=1", "Deployment.apps n/server=1"}},
		"Generated":   {reason: "what has an owner is made anew with it", objects: []string{"Namespace n=1"}, inside: []metav1.PartialObjectMetadata{lodger("Deployment.apps n/operand", owned)}},
		"Going":       {reason: "it is being deleted", objects: []string{"Namespace n=1"}, inside: []metav1.PartialObjectMetadata{lodger("Deployment.apps n/old", deleting)}},
		"Copied":      {reason: "OLM puts them into every namespace", objects: []string{"Namespace n=1"}, inside: []metav1.PartialObjectMetadata{lodger("ClusterServiceVersion.operators n/logging", copied)}},
		"Workload":    {reason: "somebody runs it", objects: []string{"Namespace n=1", "ConfigMap n/a=1"}, inside: []metav1.PartialObjectMetadata{lodger("Deployment.apps n/mine")}, asks: []string{"Namespace n: has objects of other owners, which are deleted with it: Deployment.apps mine: acknowledge it as 1-"}, left: 1},
		"Many":        {reason: "three are named, the others counted", objects: []string{"Namespace n=1"}, inside: []metav1.PartialObjectMetadata{lodger("Widget.example n/a"), lodger("Widget.example n/b"), lodger("Widget.example n/c"), lodger("Widget.example n/d"), lodger("PersistentVolumeClaim n/data")}, asks: []string{"PersistentVolumeClaim data, Widget.example a, Widget.example b, 2 more Widget.example"}, left: 1},
		"Forbidden":   {reason: "what nobody may see may be there", objects: []string{"Namespace n=1"}, change: func(s *saga) { s.insideError = forbidden }, asks: []string{"could not be inspected"}, left: 1},
		"Claim":       {reason: "nothing goes before it is answered for", objects: []string{"PersistentVolumeClaim n/data=1", "Deployment.apps n/server=1"}, volume: "pvc-1", asks: []string{"is bound to volume pvc-1, whose data is deleted with it unless its reclaim policy is Retain: acknowledge it as 1-"}, left: 2},
		"NoData":      {reason: "a claim that was never bound", objects: []string{"PersistentVolumeClaim n/data=1"}},
		"Orphaned":    {reason: "nothing goes", objects: []string{"Namespace n=1"}, inside: []metav1.PartialObjectMetadata{lodger("Deployment.apps n/mine")}, change: func(s *saga) { s.orphan = map[int64]bool{1: true} }, left: 1},
		"OfThisChain": {reason: "what it has itself is nobody else's", objects: []string{"Namespace n=1", "PersistentVolumeClaim n/data=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := deletes(t, tc.objects...)
			s.inside = map[string][]metav1.PartialObjectMetadata{"n": tc.inside}
			s.volumes = map[manifest.ID]string{refOf("PersistentVolumeClaim n/data").ID: tc.volume}
			if tc.change != nil {
				tc.change(s)
			}
			report := s.settle(t)
			if len(s.objects) != tc.left {
				t.Errorf("%s: %d objects are left, want %d: %v", tc.reason, len(s.objects), tc.left, failures(report))
			}
			var asked []string
			for _, failure := range report.Leaving {
				if failure.Acknowledge != "" {
					if !failure.NeedsPerson || failure.Reason != ReasonNotEmpty {
						t.Errorf("nobody is asked: %+v", failure)
					}
					asked = append(asked, failure.ID.String()+": "+failure.Message)
				}
			}
			if len(asked) != len(tc.asks) {
				t.Fatalf("%s: asks %q, want %q", tc.reason, asked, tc.asks)
			}
			for i, want := range tc.asks {
				if !strings.Contains(asked[i], want) {
					t.Errorf("%s: asks %q, want %q", tc.reason, asked[i], want)
				}
			}
		})
	}
}

// TestNotEmptyAnswered: a confirmation allows the deletion of exactly the named objects, even after
// a crash. Foreign objects may still exist.
func TestNotEmptyAnswered(t *testing.T) {
	s := deletes(t, "Namespace n=1", "PersistentVolumeClaim n/data=1", "Deployment.apps n/server=1")
	s.inside = map[string][]metav1.PartialObjectMetadata{"n": {lodger("Deployment.apps n/mine")}}
	s.volumes = map[manifest.ID]string{refOf("PersistentVolumeClaim n/data").ID: "pvc-1"}
	answer := func(left int) {
		t.Helper()
		report := s.settle(t)
		if len(report.Leaving) == 0 || len(s.objects) != left {
			t.Fatalf("%d objects are left, want %d: %v", len(s.objects), left, failures(report))
		}
		i := slices.IndexFunc(report.Leaving, func(f Failure) bool { return f.Acknowledge != "" })
		if i < 0 {
			t.Fatalf("nothing is asked: %v", failures(report))
		}
		s.budget.Acknowledged[report.Leaving[i].Acknowledge] = true
		s.restart()
	}
	answer(3)
	answer(1)
	s.settle(t)
	if len(s.objects) > 0 {
		t.Errorf("%d objects are left", len(s.objects))
	}
}

// TestNotEmptyLooks: the engine checks the content of a namespace at growing intervals. It deletes
// the namespace without a confirmation once the foreign objects are deleted.
func TestNotEmptyLooks(t *testing.T) {
	s := deletes(t, "Namespace n=1")
	s.inside = map[string][]metav1.PartialObjectMetadata{"n": {lodger("Deployment.apps n/mine")}}
	looks := func(during time.Duration) int {
		n := 0
		for until := s.clock.Now().Add(during); s.clock.Now().Before(until); {
			s.spent()
			report := s.mustPass(t)
			_, reads := s.spent()
			if slices.Contains(reads, "inside n") {
				n++
			}
			if report.RequeueAfter <= 0 || report.RequeueAfter > longestInside {
				t.Fatalf("again in %s", report.RequeueAfter)
			}
			s.clock.SetTime(s.clock.Now().Add(report.RequeueAfter))
		}
		return n
	}
	if n := looks(time.Hour); n < 12 || n > 16 {
		t.Errorf("%d looks in an hour", n)
	}
	s.inside = nil
	s.settle(t)
	if len(s.objects) > 0 {
		t.Error("the namespace stays")
	}
}
