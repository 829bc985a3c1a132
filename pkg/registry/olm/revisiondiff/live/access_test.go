package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// TestPermit: the engine may read and try exactly the objects that the caller may read and try.
func TestPermit(t *testing.T) {
	const look, create = 1, 2
	cases := map[string]struct {
		reason   string
		setting  func() *setting
		rights   []string
		want     []int
		withheld int
	}{
		"Nothing": {
			reason:   "who may do nothing sees nothing",
			setting:  func() *setting { return newSetting("a", "b") },
			want:     []int{0, 0},
			withheld: 2,
		},
		"GetAlone": {
			reason:   "to see what a rollout would do takes the right to do it",
			setting:  func() *setting { return newSetting("a", "b") },
			rights:   []string{"alice get configmaps ns/*"},
			want:     []int{0, 0},
			withheld: 2,
		},
		"PatchAlone": {
			reason:   "who may write cannot see for that",
			setting:  func() *setting { return newSetting("a") },
			rights:   []string{"alice patch configmaps ns/*", "alice create configmaps ns/*"},
			want:     []int{0},
			withheld: 1,
		},
		"ByName": {
			reason:   "rights to single objects",
			setting:  func() *setting { return newSetting("a", "b") },
			rights:   []string{"alice get configmaps ns/b", "alice patch configmaps ns/b"},
			want:     []int{0, look},
			withheld: 1,
		},
		"OfMany": {
			reason:   "rights to single objects among many of a kind",
			setting:  func() *setting { return newSetting("a", "b", "c", "d") },
			rights:   []string{"alice get configmaps ns/*", "alice patch configmaps ns/c"},
			want:     []int{0, 0, look, 0},
			withheld: 3,
		},
		"Creating": {
			reason:  "new ones are tried for who may create them",
			setting: func() *setting { return newSetting("a") },
			rights:  []string{"alice get configmaps ns/a", "alice patch configmaps ns/a", "alice create configmaps ns/a"},
			want:    []int{look | create},
		},
		"Leaving": {
			reason: "what would be deleted is only read",
			setting: func() *setting {
				s := newSetting()
				s.engine.subjects = []preview.Subject{leaving("old"), leaving("older")}
				return s
			},
			rights:   []string{"alice get configmaps ns/old"},
			want:     []int{look, 0},
			withheld: 1,
		},
		"LeftOut": {
			reason: "what the question leaves out is neither looked at nor counted",
			setting: func() *setting {
				s := newSetting("a", "hidden")
				s.manifests = s.manifests[:1]
				s.engine.subjects = append(s.engine.subjects, leaving("hidden-too"))
				s.shows = func(id manifest.ID) bool { return false }
				return s
			},
			rights: []string{"alice get configmaps ns/*", "alice patch configmaps ns/*"},
			want:   []int{look, 0, 0},
		},
		"DefinedByTheRevision": {
			reason: "a kind that is not served yet has the resource that its definition says",
			setting: func() *setting {
				s := newSetting()
				s.add(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"mice.example.com"},` +
					`"spec":{"group":"example.com","names":{"kind":"Mouse","plural":"mice"}}}`)
				s.add(`{"apiVersion":"example.com/v1","kind":"Mouse","metadata":{"namespace":"ns","name":"m"}}`)
				return s
			},
			rights:   []string{"alice get mice ns/m", "alice patch mice ns/m"},
			want:     []int{0, look},
			withheld: 1,
		},
		"ClusterScoped": {
			reason: "rights in a namespace are none to what has none, whatever its manifest says",
			setting: func() *setting {
				s := newSetting()
				s.add(`{"apiVersion":"v1","kind":"Node","metadata":{"namespace":"ns","name":"n"}}`)
				s.add(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"mice.example.com"},` +
					`"spec":{"group":"example.com","scope":"Cluster","names":{"kind":"Mouse","plural":"mice"}}}`)
				s.add(`{"apiVersion":"example.com/v1","kind":"Mouse","metadata":{"namespace":"ns","name":"m"}}`)
				return s
			},
			rights:   []string{"alice get nodes ns/*", "alice patch nodes ns/*", "alice get mice ns/*", "alice patch mice ns/*"},
			want:     []int{0, 0, 0},
			withheld: 3,
		},
		"NotServed": {
			reason: "a kind that nobody defines has the resource that is custom",
			setting: func() *setting {
				s := newSetting()
				s.add(`{"apiVersion":"example.com/v1","kind":"Policy","metadata":{"namespace":"ns","name":"p"}}`)
				return s
			},
			rights: []string{"alice get policies ns/p", "alice patch policies ns/p"},
			want:   []int{look},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tc.setting()
			s.rights.rules = tc.rights
			preview, err := s.ask(t, s.live(), "alice")
			if err != nil {
				t.Fatal(err)
			}
			got := make([]int, len(s.engine.grants))
			for i, grant := range s.engine.grants {
				if grant.Read {
					got[i] |= look
				}
				if grant.Create {
					got[i] |= create
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: grants (-want +got):\n%s\nasked:\n%s", tc.reason, diff, strings.Join(s.rights.asked, "\n"))
			}
			if preview.Withheld != tc.withheld {
				t.Errorf("%s: %d are withheld, want %d", tc.reason, preview.Withheld, tc.withheld)
			}
		})
	}
}

// TestReviews: the right to many objects of a kind in a namespace takes one access review.
func TestReviews(t *testing.T) {
	var names []string
	for n := range 100 {
		names = append(names, fmt.Sprint("m", n))
	}
	s := newSetting(names...)
	s.rights.rules = []string{"alice get configmaps ns/*", "alice patch configmaps ns/*", "alice create configmaps ns/*"}
	if _, err := s.ask(t, s.live(), "alice"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(s.rights.asked)
	want := []string{"alice create configmaps ns/*", "alice get configmaps ns/*", "alice patch configmaps ns/*"}
	if diff := cmp.Diff(want, s.rights.asked); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}
