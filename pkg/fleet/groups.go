package fleet

import (
	"cmp"
	"slices"
)

// Group holds the clusters that would see the same change, so that users review it once.
type Group struct {
	// Change is the digest of the content before and after.
	Change        string
	Before, After string
	// Clusters lists the clusters by name.
	Clusters []string
}

// Change returns the digest of the cluster's change.
func (c Cluster) Change() string { return Change(c.Before, c.After) }

// Change returns the digest of a change from one content to another.
func Change(before, after string) string { return digest("fleet-change", []string{before, after}) }

// Groups returns the groups of equal change, the largest first. Clusters that do not change are in
// no group.
func (p *Plan) Groups() []Group {
	byChange := map[string]*Group{}
	for _, cluster := range p.Clusters {
		if cluster.Present {
			continue
		}
		key := cluster.Change()
		if byChange[key] == nil {
			byChange[key] = &Group{Change: key, Before: cluster.Before, After: cluster.After}
		}
		byChange[key].Clusters = append(byChange[key].Clusters, cluster.Name)
	}
	groups := make([]Group, 0, len(byChange))
	for _, group := range byChange {
		slices.Sort(group.Clusters)
		groups = append(groups, *group)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(len(b.Clusters), len(a.Clusters)), cmp.Compare(a.Change, b.Change))
	})
	return groups
}
