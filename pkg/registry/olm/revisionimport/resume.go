package revisionimport

import (
	"fmt"

	"github.com/penstock-project/penstock/pkg/store/chain"
)

// An import that was interrupted is finished by the same request again.

// finished reports whether all of the archive has been imported before.
func (in *incoming) finished() bool {
	return in.present != nil && in.present.Importing == "" && in.present.ImportedFrom == in.digest
}

// importing names the import of the archive. An import that began in one mode is not finished
// in another one: some revisions would be paused, and some rolled out.
func (in *incoming) importing(m mode) string {
	if m.paused {
		return in.digest + " paused"
	}
	return in.digest
}

// unfinished is the answer when the chain turns out to be another one's.
func (in *incoming) unfinished(head chain.Head) error {
	switch head.Importing {
	case "":
		return had(in.name)
	case in.importing(mode{paused: !in.paused}):
		return conflict(in.name, fmt.Sprintf("its import was begun with paused=%t and is not finished: it cannot go on with paused=%t", !in.paused, in.paused))
	}
	return conflict(in.name, fmt.Sprintf("the import of another archive (%s) was begun and is not finished: import that one again", head.Importing))
}
