package budget

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// idOf parses "Deployment.apps n/name".
func idOf(text string) manifest.ID {
	kind, name, _ := strings.Cut(text, " ")
	id := manifest.ID{Name: name}
	id.Kind, id.Group, _ = strings.Cut(kind, ".")
	if namespace, inside, found := strings.Cut(name, "/"); found {
		id.Namespace, id.Name = namespace, inside
	}
	return id
}

// set returns the objects of a revision. "26 ClusterRole.rbac v1-" is 26 objects of a kind with
// this name prefix; "Namespace a" is one object.
func set(parts ...string) []manifest.ID {
	var out []manifest.ID
	for _, part := range parts {
		var n int
		var kind, name string
		if _, err := fmt.Sscanf(part, "%d %s %s", &n, &kind, &name); err != nil {
			out = append(out, idOf(part))
			continue
		}
		for i := range n {
			out = append(out, idOf(fmt.Sprintf("%s %s%02d", kind, name, i)))
		}
	}
	return out
}

// operator returns the 60 objects of a version; OLM puts a hash of the version into the names of 40
// of them.
func operator(version int, more ...string) []manifest.ID {
	return set(append([]string{
		fmt.Sprintf("13 ClusterRole.rbac v%d-", version), fmt.Sprintf("13 ClusterRoleBinding.rbac v%d-", version),
		fmt.Sprintf("7 Role.rbac v%d-", version), fmt.Sprintf("7 RoleBinding.rbac v%d-", version),
		"Namespace operator", "4 CustomResourceDefinition.apiextensions.k8s.io crd", "10 ConfigMap config", "2 Deployment.apps server", "3 ServiceAccount sa",
	}, more...)...)
}

// versions returns the objects of several operator versions, by number.
func versions(from, to int) map[int64][]manifest.ID {
	out := map[int64][]manifest.ID{}
	for v := from; v <= to; v++ {
		out[int64(v)] = operator(v)
	}
	return out
}

// TestDeletionBudget tests the rule in docs/reference/rollout.md: no deletion needs a confirmation,
// or all, or some.
func TestDeletionBudget(t *testing.T) {
	const nothing, all = "", "all"
	one := func(parts ...string) map[int64][]manifest.ID { return map[int64][]manifest.ID{1: set(parts...)} }
	for name, tc := range map[string]struct {
		reason string
		// before are the replaced revisions, whose objects all exist. now are the objects that the
		// layers list.
		before map[int64][]manifest.ID
		now    []manifest.ID
		// absent are the objects of now that do not exist yet. unlisted are the revisions whose
		// lists are unknown.
		absent   []manifest.ID
		unlisted []int64
		spent    int
		asks     string
	}{
		// Allowed without confirmation.
		"HashedNames":        {"40 of 60 are replaced by as many of their kinds", versions(1, 1), operator(2), nil, nil, 0, nothing},
		"TwoBeforePruning":   {"both are replaced", versions(1, 2), operator(3), nil, nil, 0, nothing},
		"EightBeforePruning": {"an alarm of eight versions is none", versions(1, 8), operator(9), nil, nil, 0, nothing},
		"FewerHashedNames":   {"of 40 replaced ones 5 have none in their place", versions(1, 1), set("13 ClusterRole.rbac v2-", "11 ClusterRoleBinding.rbac v2-", "5 Role.rbac v2-", "6 RoleBinding.rbac v2-", "Namespace operator", "4 CustomResourceDefinition.apiextensions.k8s.io crd", "10 ConfigMap config", "2 Deployment.apps server", "3 ServiceAccount sa"), nil, nil, 0, nothing},
		"MoreThanBefore":     {"what comes besides is no loss", one("10 ConfigMap a"), set("30 ConfigMap b"), nil, nil, 0, nothing},
		"RenamedDeployment":  {"another workload is there", one("Deployment.apps n/old", "3 ConfigMap c"), set("Deployment.apps n/new", "3 ConfigMap c"), nil, nil, 0, nothing},
		"OtherWorkloadKind":  {"a StatefulSet in place of a Deployment", one("Deployment.apps n/s", "3 ConfigMap c"), set("StatefulSet.apps n/s", "3 ConfigMap c"), nil, nil, 0, nothing},
		"OneOfTwoWorkloads":  {"one of four objects is its third, rounded down to one", one("2 Deployment.apps s", "2 ConfigMap c"), set("1 Deployment.apps s", "2 ConfigMap c"), nil, nil, 0, nothing},
		"LastJob":            {"a Job ends by itself", one("Job.batch n/migrate", "3 ConfigMap c"), set("3 ConfigMap c"), nil, nil, 0, nothing},
		"OneOfTwo":           {"one object may always go", one("2 ConfigMap c"), set("1 ConfigMap c"), nil, nil, 0, nothing},
		"AThird":             {"20 of 60", one("60 ConfigMap c"), set("40 ConfigMap c"), nil, nil, 0, nothing},
		"ATenthOfMany":       {"30 of 300", one("300 ConfigMap c"), set("270 ConfigMap c"), nil, nil, 0, nothing},
		"RenamedSecrets":     {"rotated names, the same number", one("5 Secret n/a", "ConfigMap n/c"), set("5 Secret n/b", "ConfigMap n/c"), nil, nil, 0, nothing},
		"RestOfTheWindow":    {"15 went, 5 go", one("60 ConfigMap c"), set("55 ConfigMap c"), nil, nil, 15, nothing},

		// All deletions need a confirmation.
		"Emptied":             {"nothing is listed", versions(1, 1), nil, nil, nil, 0, all},
		"EmptiedSmall":        {"also when it was one object", one("ConfigMap n/c"), nil, nil, nil, 0, all},
		"EmptiedAfterMany":    {"also when older ones are still to go", versions(1, 3), nil, nil, nil, 0, all},
		"Truncated":           {"half of the manifests are missing", versions(1, 1), operator(2)[:30], nil, nil, 0, all},
		"TruncatedAtFront":    {"the other half", versions(1, 1), operator(2)[30:], nil, nil, 0, all},
		"TruncatedSmall":      {"two of four", one("4 ConfigMap c"), set("2 ConfigMap c"), nil, nil, 0, all},
		"TruncatedOfSix":      {"three of six", one("6 ConfigMap c"), set("3 ConfigMap c"), nil, nil, 0, all},
		"TruncatedAfterMany":  {"the largest former revision counts", versions(1, 4), operator(5)[:30], nil, nil, 0, all},
		"OneMoreThanAThird":   {"21 of 60", one("60 ConfigMap c"), set("39 ConfigMap c"), nil, nil, 0, all},
		"OneMoreThanATenth":   {"31 of 300", one("300 ConfigMap c"), set("269 ConfigMap c"), nil, nil, 0, all},
		"OtherKinds":          {"objects of another kind are in no one's place", one("12 Secret s", "12 ConfigMap c"), set("24 ServiceAccount a"), nil, nil, 0, all},
		"BeyondTheWindow":     {"15 went, 6 go", one("60 ConfigMap c"), set("54 ConfigMap c"), nil, nil, 15, all},
		"DefinitionsAndOther": {"definitions count as well", one("10 CustomResourceDefinition.apiextensions.k8s.io crd", "50 ConfigMap c"), set("39 ConfigMap c"), nil, nil, 0, all},
		"LostInventory":       {"what is not known to be there replaces nothing", versions(1, 1), operator(2), operator(2), nil, 0, all},
		"HalfLostInventory":   {"nor does half of it", versions(1, 1), operator(2), operator(2)[:30], nil, 0, all},
		"OlderStore":          {"revisions that the store does not know leave nothing replaced", versions(4, 5), operator(3), nil, []int64{4, 5}, 0, all},
		"OneOfOlderStore":     {"one of them known does not help the other", versions(4, 5), operator(6), nil, []int64{5}, 0, all},

		// Some deletions need a confirmation.
		"Namespace":             {"what is in it goes with it", versions(1, 1), without(operator(2), "Namespace"), nil, nil, 0, "Namespace operator"},
		"Definition":            {"its instances go with it", one("CustomResourceDefinition.apiextensions.k8s.io a", "5 ConfigMap c"), set("5 ConfigMap c"), nil, nil, 0, "CustomResourceDefinition.apiextensions.k8s.io a"},
		"RenamedDefinition":     {"another one is none in its place", one("CustomResourceDefinition.apiextensions.k8s.io a", "5 ConfigMap c"), set("CustomResourceDefinition.apiextensions.k8s.io b", "5 ConfigMap c"), nil, nil, 0, "CustomResourceDefinition.apiextensions.k8s.io a"},
		"AllDefinitions":        {"four of 60", versions(1, 1), without(operator(2), "CustomResourceDefinition"), nil, nil, 0, "CustomResourceDefinition.apiextensions.k8s.io crd00, CustomResourceDefinition.apiextensions.k8s.io crd01, CustomResourceDefinition.apiextensions.k8s.io crd02, CustomResourceDefinition.apiextensions.k8s.io crd03"},
		"Claim":                 {"its data goes with it; a ConfigMap may", one("PersistentVolumeClaim n/data", "9 ConfigMap c"), set("8 ConfigMap c"), nil, nil, 0, "PersistentVolumeClaim n/data"},
		"Volume":                {"so does that of a volume", one("PersistentVolume data", "9 ConfigMap c"), set("9 ConfigMap c"), nil, nil, 0, "PersistentVolume data"},
		"LastWorkload":          {"nothing runs any more", versions(1, 1), without(operator(2), "Deployment"), nil, nil, 0, "Deployment.apps server00, Deployment.apps server01"},
		"LastWorkloadOfAnyKind": {"a Job in its place does not run for long", one("CronJob.batch n/c", "5 ConfigMap c"), set("Job.batch n/c", "5 ConfigMap c"), nil, nil, 0, "CronJob.batch n/c"},
	} {
		t.Run(name, func(t *testing.T) {
			g := Pending{Objects: map[manifest.ID]int64{}, Emptied: len(tc.now) == 0, Spent: tc.spent}
			g.Listed = func(revision int64) ([]manifest.ID, bool) {
				return tc.before[revision], !slices.Contains(tc.unlisted, revision)
			}
			for _, number := range slices.Sorted(maps.Keys(tc.before)) {
				for _, id := range tc.before[number] {
					if !slices.Contains(tc.now, id) {
						g.Objects[id] = number
					}
				}
			}
			for _, id := range tc.now {
				if !slices.Contains(tc.absent, id) {
					g.Kept = append(g.Kept, id)
				}
			}
			judged := g.Judge()
			want, got := tc.asks, ""
			if want == all {
				want = inWords(slices.Collect(maps.Keys(g.Objects)))
			}
			if got = inWords(slices.Collect(maps.Keys(judged.Asks))); got != want {
				t.Errorf("%s: it asks otherwise, with %d lost of at most %d: %s", tc.reason, judged.Loss, judged.Limit, cmp.Diff(want, got))
			}
		})
	}
}

func without(ids []manifest.ID, kind string) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id manifest.ID) bool { return id.Kind == kind })
}

func inWords(ids []manifest.ID) string {
	var out []string
	for _, id := range slices.SortedFunc(slices.Values(ids), manifest.ID.Compare) {
		out = append(out, id.String())
	}
	return strings.Join(out, ", ")
}

// TestEmptyDefinition: a definition without instances counts as any other object.
func TestEmptyDefinition(t *testing.T) {
	a := idOf("CustomResourceDefinition.apiextensions.k8s.io a")
	for empty, want := range map[bool]int{false: 1, true: 0} {
		g := Pending{Objects: map[manifest.ID]int64{a: 1}, Empty: map[manifest.ID]bool{a: empty}}
		for _, name := range []string{"x", "y", "z"} {
			g.Kept = append(g.Kept, idOf("ConfigMap a/"+name))
		}
		if judged := g.Judge(); len(judged.Asks) != want || judged.Loss != 1 {
			t.Errorf("empty %t: somebody is asked about %v, and %d are lost", empty, judged.Asks, judged.Loss)
		}
	}
}

// TestBudgetNeverAsksLess: a revision that lists fewer objects needs at least as many
// confirmations.
func TestBudgetNeverAsksLess(t *testing.T) {
	before := operator(1)
	asked := 0
	for n := len(before); n >= 0; n-- {
		now := operator(2)[:n]
		g := Pending{Objects: map[manifest.ID]int64{}, Kept: now, Emptied: n == 0, Listed: func(int64) ([]manifest.ID, bool) { return before, true }}
		for _, id := range before {
			if !slices.Contains(now, id) {
				g.Objects[id] = 1
			}
		}
		judged := g.Judge()
		if len(judged.Asks) < asked {
			t.Errorf("with %d objects left it asks for %d, and for %d with one more", n, len(judged.Asks), asked)
		}
		asked = len(judged.Asks)
	}
	if asked != len(before) {
		t.Errorf("in the end it asks for %d of %d", asked, len(before))
	}
}
