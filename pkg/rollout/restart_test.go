package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// quietFor is the time without news after which a process counts as settled. It exceeds the
// lifetime of every finding in memory.
const quietFor = 3 * settledFor

// rest runs the process: it does a pass after news, and when the report requests one. It returns
// when no pass is requested, or there was no news for quietFor.
func (s *saga) rest(t failer) Report {
	t.Helper()
	quiet := time.Duration(0)
	for range 2000 {
		s.controllers()
		s.deliver(len(s.changes))
		switch {
		case s.news:
			quiet = 0
		case s.last.RequeueAfter == 0 || quiet > quietFor:
			return s.last
		default:
			quiet += s.last.RequeueAfter
			s.clock.SetTime(s.clock.Now().Add(s.last.RequeueAfter))
		}
		if _, err := s.pass(); err != nil {
			t.Fatalf("reconciling: %v", err)
		}
	}
	t.Fatalf("it does not come to rest: %v", failures(s.last))
	return s.last
}

// tells returns the visible state of a chain: the report, the objects in the cluster, and the
// inventory.
func (s *saga) tells(report Report) []string {
	var out []string
	for _, layer := range report.Layers {
		out = append(out, fmt.Sprintf("revision %d: complete=%t, %d of %d stages", layer.Revision, layer.Complete, s.stored.Reached[s.keyOf(layer.Revision)], len(layer.Phases)))
		for _, phase := range layer.Phases {
			for _, f := range phase.Failures {
				out = append(out, fmt.Sprintf("%d/%s %s %s stuck=%t person=%t", layer.Revision, phase.Name, f.ID, f.Reason, f.Stuck, f.NeedsPerson))
			}
		}
	}
	for _, f := range report.Leaving {
		out = append(out, fmt.Sprintf("leaving %s %s stuck=%t", f.ID, f.Reason, f.Stuck))
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.objects), manifest.ID.Compare) {
		out = append(out, fmt.Sprintf("%s %s: %v", id, s.objects[id].uid, valuesOf(s.objects[id], "")))
	}
	for _, id := range sortedIDs(s.stored.Entries) {
		entry := s.stored.Entries[id]
		out = append(out, fmt.Sprintf("inventory: %s %s of %d in %s", id, entry.UID, entry.Revision, entry.Version))
	}
	return out
}

func (s *saga) keyOf(revision int64) string {
	for _, layer := range s.layers {
		if layer.Revision == revision {
			return layer.Key
		}
	}
	return ""
}

// restarted checks that a restart of a settled process changes nothing: all its findings expire,
// and it notices all events that it waits for.
func (s *saga) restarted(t failer) {
	t.Helper()
	before := s.tells(s.rest(t))
	s.restart()
	if diff := gocmp.Diff(before, s.tells(s.rest(t))); diff != "" {
		t.Errorf("a restart made a difference (-running process +another one):\n%s", diff)
	}
}

// TestRestartChangesNothing checks single states of a process.
func TestRestartChangesNothing(t *testing.T) {
	widget, gone := widgets(), refOf("Widget.example.com a/w").ID
	cases := map[string]struct {
		reason string
		// trouble happens after the rollout of revision 1.
		trouble func(*saga)
		// then happens after the process has settled; nil for nothing.
		then func(*saga)
		want string
	}{
		"version goes": {
			"the object is read and deleted in another one",
			func(s *saga) { s.define(widget, serving("v1")); s.become() }, nil, "",
		},
		"all versions go": {
			"whether it exists cannot be told",
			func(s *saga) { s.define(widget, defined{versions: map[string]bool{"v1": false}}); s.become() }, nil,
			"leaving Widget.example.com a/w KindNotServed stuck=true",
		},
		"all versions go, and one comes": {
			"nobody has a watch that would tell",
			func(s *saga) { s.define(widget, defined{versions: map[string]bool{"v1": false}}); s.become() },
			func(s *saga) { s.define(widget, serving("v2")) }, "",
		},
		"all versions go, and the definition": {
			"then its objects are gone",
			func(s *saga) { s.define(widget, defined{versions: map[string]bool{"v1": false}}); s.become() },
			func(s *saga) { s.define(widget, defined{}) }, "",
		},
		"version goes, and the object by hand": {
			"its finalizers kept it for a while",
			func(s *saga) {
				s.alter(gone, func(o *thing) { o.finalizers = []string{"example.com/hold"} })
				s.define(widget, serving("v1"))
				s.become()
			},
			func(s *saga) { s.erase(gone) }, "",
		},
		"conversion is away": {
			"a 5xx about one object is a refusal",
			func(s *saga) {
				s.define(widget, defined{versions: map[string]bool{"v1alpha1": true, "v1": true}, away: true})
				s.become()
			}, nil,
			"leaving Widget.example.com a/w TargetUnreachable stuck=true",
		},
		"conversion is away, and comes back": {
			"that is nothing that is watched",
			func(s *saga) {
				s.define(widget, defined{versions: map[string]bool{"v1alpha1": true, "v1": true}, away: true})
				s.become()
			},
			func(s *saga) { s.define(widget, serving("v1alpha1", "v1")) }, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.define(widget, serving("v1alpha1", "v1"))
			s.roll(t, s.revision(1).phase("base", "Widget.example.com/v1alpha1 a/w=1"))
			tc.trouble(s)
			s.rest(t)
			if tc.then != nil {
				tc.then(s)
			}
			said := strings.Join(s.tells(s.rest(t)), "\n")
			if tc.want == "" && said != "" || !strings.Contains(said, tc.want) {
				t.Errorf("%s: %s, want %s", tc.reason, cmp.Or(said, "nothing left"), cmp.Or(tc.want, "nothing left"))
			}
			s.restarted(t)
		})
	}
}

// version changes the served versions of a kind, or makes its conversion webhook unavailable.
func (s *history) version(t *rapid.T) {
	now := defined{versions: map[string]bool{}, away: rapid.Bool().Draw(t, "away")}
	for _, version := range versionPool() {
		switch rapid.SampledFrom([]string{"served", "listed", "gone"}).Draw(t, version) {
		case "served":
			now.versions[version] = true
		case "listed":
			now.versions[version] = false
		}
	}
	s.define(widgets(), now)
}

func versionPool() []string { return []string{"v1", "v1alpha1", "v2"} }

// heal serves the kind in exactly these versions.
func (s *history) heal(versions ...string) {
	now := defined{versions: map[string]bool{}}
	for _, version := range versions {
		now.versions[version] = true
	}
	s.define(widgets(), now)
}

// versionsInUse returns the versions in which layers want the kind, at least one.
func (s *history) versionsInUse() []string {
	used := map[string]bool{}
	for _, layer := range s.layers {
		for _, stg := range layer.Stages {
			for _, step := range stg.Steps {
				if step.GroupKind() == widgets() {
					used[step.Version] = true
				}
			}
		}
	}
	if len(used) == 0 {
		used["v2"] = true
	}
	return slices.Sorted(maps.Keys(used))
}

// again checks that a restart makes no difference. It first delivers all changes and makes
// conversion available, because a new process must read again the objects without our label.
func (s *history) again(t *rapid.T) {
	if definition := s.kinds[widgets()]; definition.away {
		definition.away = false
		s.define(widgets(), definition)
	}
	s.lagging = false
	s.restarted(t)
}
