package fleet

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Candidate is a cluster that a set selects, before it has a wave.
type Candidate struct {
	// Name is the name of its Secret.
	Name string
	// UID is the uid of its namespace kube-system. It is empty until the cluster was first reached.
	UID    string
	Labels map[string]string
}

// Assignment is the result of Assign. It contains every candidate once.
type Assignment struct {
	// Waves holds the candidates of each selector, by name.
	Waves [][]Candidate
	// Unassigned holds the candidates that no wave selects.
	Unassigned []Candidate
	// Unknown holds the candidates without a uid.
	Unknown []Candidate
	// Same holds the clusters with the name or uid of another candidate, by name.
	Same []Candidate
}

// Assign gives each candidate the first wave whose selector matches its labels. Of two candidates
// with one uid, only the first by name gets a wave.
func Assign(waves []labels.Selector, candidates []Candidate) Assignment {
	assigned := Assignment{Waves: make([][]Candidate, len(waves))}
	sorted := slices.Clone(candidates)
	slices.SortFunc(sorted, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	names, uids := map[string]bool{}, map[string]bool{}
	for _, candidate := range sorted {
		switch {
		case candidate.UID == "" && !names[candidate.Name]:
			assigned.Unknown = append(assigned.Unknown, candidate)
			continue
		case names[candidate.Name] || uids[candidate.UID]:
			assigned.Same = append(assigned.Same, candidate)
			continue
		}
		names[candidate.Name], uids[candidate.UID] = true, true
		wave := slices.IndexFunc(waves, func(selector labels.Selector) bool { return selector.Matches(labels.Set(candidate.Labels)) })
		if wave < 0 {
			assigned.Unassigned = append(assigned.Unassigned, candidate)
			continue
		}
		assigned.Waves[wave] = append(assigned.Waves[wave], candidate)
	}
	return assigned
}
