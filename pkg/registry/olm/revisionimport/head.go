package revisionimport

import (
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/archive"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// head returns the head of the chain before its first revision is stored.
func (in *incoming) head() chain.Head {
	head := chain.Head{
		Name: in.name, Importing: in.importing(in.mode),
		Highest: in.chain.Highest, HighestUID: in.uid(in.chain.Highest),
	}
	for _, row := range in.chain.History {
		head.Rows = append(head.Rows, in.row(row))
		head.Succeeded = head.Succeeded || row.Result == v1alpha1.ResultSucceeded
	}
	if hold := in.chain.Hold; hold != nil {
		head.Hold = &chain.Hold{Revision: hold.Revision, UID: in.uid(hold.Revision)}
		if in.owned {
			// If the owner does not exist here, its generation has no meaning. 0 holds a later
			// owner until it is released.
			head.Hold.OwnerGeneration = hold.OwnerGeneration
		}
	}
	return head
}

func (in *incoming) row(row archive.Row) chain.Row {
	out := chain.Row{
		Revision: row.Revision, UID: in.uid(row.Revision),
		CreatedAt: row.CreatedAt, CompletedAt: row.CompletedAt, DeletedAt: row.DeletedAt,
		RequestedBy: row.RequestedBy, Result: row.Result, Cause: row.Cause, Version: row.Version, RollbackOf: row.RollbackOf,
	}
	if counts := row.Counts; counts != nil {
		out.Counts = &chain.Counts{Objects: counts.Objects, Added: counts.Added, Changed: counts.Changed, Removed: counts.Removed}
	}
	return out
}
