package revisionimport

import (
	"fmt"

	"github.com/penstock-project/penstock/pkg/store/chain"
)

// The same request continues an interrupted import.

// finished reports whether the whole archive was imported before.
func (in *incoming) finished() bool {
	return in.present != nil && in.present.Importing == "" && in.present.ImportedFrom == in.digest
}

// importing identifies the import of the archive in a mode. An import cannot continue in another
// mode: some revisions would be paused, and some rolled out.
func (in *incoming) importing(m mode) string {
	if m.paused {
		return in.digest + " paused"
	}
	return in.digest
}

// unfinished returns the error for a chain that another import has written.
func (in *incoming) unfinished(head chain.Head) error {
	switch head.Importing {
	case "":
		return had(in.name)
	case in.importing(mode{paused: !in.paused}):
		return conflict(in.name, fmt.Sprintf("its import was begun with paused=%t and is not finished: it cannot continue with paused=%t", !in.paused, in.paused))
	}
	return conflict(in.name, fmt.Sprintf("the import of another archive (%s) was begun and is not finished: import that one again", head.Importing))
}
