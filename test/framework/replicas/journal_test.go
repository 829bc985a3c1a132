package replicas

import (
	"fmt"
	"strings"
	"testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// found returns a revision as the store has it at the end.
func found(name, text string, more ...func(*olmv1alpha1.ClusterExtensionRevision)) olmv1alpha1.ClusterExtensionRevision {
	revision := olmv1alpha1.ClusterExtensionRevision{}
	revision.Name, revision.Annotations = name, map[string]string{journalAnnotation: text}
	revision.Spec.Phases = []olmv1alpha1.RevisionPhase{{Objects: []olmv1alpha1.RevisionObject{{Digest: "sha256:" + name}}}}
	for _, change := range more {
		change(&revision)
	}
	return revision
}

func because(cause string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(revision *olmv1alpha1.ClusterExtensionRevision) {
		revision.Annotations[olmv1alpha1.ChangeCauseAnnotation] = cause
	}
}

func archived(revision *olmv1alpha1.ClusterExtensionRevision) {
	revision.Spec.LifecycleState = olmv1alpha1.LifecycleStateArchived
}

// aged returns archived revisions of a chain.
func aged(chain string, numbers ...int) []olmv1alpha1.ClusterExtensionRevision {
	var revisions []olmv1alpha1.ClusterExtensionRevision
	for _, n := range numbers {
		revisions = append(revisions, found(fmt.Sprintf("%s-%d", chain, n), "x", archived))
	}
	return revisions
}

func writeAll(names ...string) func(*journal) {
	return func(j *journal) {
		for _, name := range names {
			j.creating(name, "x")
			j.created(name, "", "")
		}
	}
}

// TestJudge checks that judge detects each kind of violation.
func TestJudge(t *testing.T) {
	cases := map[string]struct {
		reason string
		wrote  func(*journal)
		there  []olmv1alpha1.ClusterExtensionRevision
		want   string
	}{
		"Kept": {
			reason: "what was acknowledged is there",
			wrote:  func(j *journal) { j.creating("a-1", "x"); j.created("a-1", "5", "sha256:a-1") },
			there:  []olmv1alpha1.ClusterExtensionRevision{found("a-1", "x")},
		},
		"Lost": {
			reason: "a create that was acknowledged is not there",
			wrote:  func(j *journal) { j.creating("a-1", "x"); j.created("a-1", "5", "") },
			want:   "a-1 was acknowledged and is not there",
		},
		"Unanswered": {
			reason: "what was not answered may be there or not",
			wrote:  func(j *journal) { j.creating("a-1", "x"); j.creating("a-2", "x") },
			there:  []olmv1alpha1.ClusterExtensionRevision{found("a-2", "x")},
		},
		"Invented": {
			reason: "nobody wrote it",
			wrote:  func(*journal) {},
			there:  []olmv1alpha1.ClusterExtensionRevision{found("a-1", "x")},
			want:   "a-1 is there and nobody wrote it",
		},
		"EditLost": {
			reason: "the last acknowledged edit counts",
			wrote: func(j *journal) {
				j.creating("a-1", "x")
				j.editing("a-1", "y")
				j.edited("a-1", "y", "6")
			},
			there: []olmv1alpha1.ClusterExtensionRevision{found("a-1", "x")},
			want:  `a-1 says "x", acknowledged was "y"`,
		},
		"EditUnanswered": {
			reason: "an edit since that was not answered may count",
			wrote: func(j *journal) {
				j.creating("a-1", "x")
				j.editing("a-1", "y")
			},
			there: []olmv1alpha1.ClusterExtensionRevision{found("a-1", "y")},
		},
		"OtherContent": {
			reason: "content is that of the create",
			wrote:  func(j *journal) { j.creating("a-1", "x"); j.created("a-1", "5", "sha256:other") },
			there:  []olmv1alpha1.ClusterExtensionRevision{found("a-1", "x")},
			want:   "a-1 has content sha256:a-1",
		},
		"Undead": {
			reason: "a deletion was acknowledged",
			wrote:  func(j *journal) { j.creating("a-1", "x"); j.deleting("a-1"); j.deleted("a-1") },
			there:  []olmv1alpha1.ClusterExtensionRevision{found("a-1", "x")},
			want:   "its deletion was acknowledged",
		},
		"RolledBackTwice": {
			reason: "one rollback makes one revision",
			wrote:  func(j *journal) { j.rollingBack("why") },
			there:  []olmv1alpha1.ClusterExtensionRevision{found("a-2", "", because("why")), found("a-3", "", because("why"))},
			want:   `the rollback "why" is there as ["a-2" "a-3"]`,
		},
		"RolledBackWithNumberOfRefused": {
			reason: "a rollback that was not answered has the number that a create was refused",
			wrote:  func(j *journal) { j.creating("a-2", "created 2"); j.rollingBack("why") },
			there:  []olmv1alpha1.ClusterExtensionRevision{found("a-2", "of a-1", because("why"))},
		},
		"CreatedWithTextOfAnother": {
			reason: "a create that was not answered brings its own text, whatever is rolled back",
			wrote:  func(j *journal) { j.creating("a-2", "created 2"); j.rollingBack("why") },
			there:  []olmv1alpha1.ClusterExtensionRevision{found("a-2", "of a-1")},
			want:   `a-2 says "of a-1"`,
		},
		"Retired": {
			reason: "the oldest archived revisions of a chain are deleted",
			wrote:  writeAll("a-1", "a-2", "a-3", "a-4", "a-5", "a-6"),
			there:  aged("a", 2, 3, 4, 5, 6),
		},
		"TooYoung": {
			reason: "not all that are kept are there",
			wrote:  writeAll("a-1", "a-2", "a-3", "a-4", "a-5"),
			there:  aged("a", 2, 3, 4, 5),
			want:   "a-1 was acknowledged and is not there",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := newJournal()
			tc.wrote(j)
			j.judge(tc.there)
			got := strings.Join(j.wrong, "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) || tc.want != "" && len(j.wrong) != 1 {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWatched: a watcher must see every write, unless a list replaced the missed events.
func TestWatched(t *testing.T) {
	cases := map[string]struct {
		reason string
		saw    func(*journal, *watcher)
		want   string
	}{
		"All":     {reason: "there was an event", saw: func(j *journal, w *watcher) { r := found("a-1", ""); r.ResourceVersion = "5"; w.event(j, &r, false) }},
		"Nothing": {reason: "there was none", saw: func(*journal, *watcher) {}, want: "did not see a-1"},
		"Listed":  {reason: "a listing came after it", saw: func(_ *journal, w *watcher) { w.gaps = []gap{{after: 3, to: 5}} }},
		"Skipped": {reason: "the listing was before it", saw: func(_ *journal, w *watcher) { w.gaps = []gap{{after: 3, to: 4}} }, want: "did not see a-1"},
		"Backwards": {reason: "versions only grow", saw: func(j *journal, w *watcher) {
			w.newest = 7
			r := found("a-1", "")
			r.ResourceVersion = "5"
			w.event(j, &r, false)
		}, want: "saw version 5 of a-1 after 7"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := newJournal()
			j.creating("a-1", "")
			j.created("a-1", "5", "")
			w := newWatcher("somebody", client{}, j)
			tc.saw(j, w)
			j.watched(&w.seen)
			if got := strings.Join(j.wrong, "\n"); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
