package changes

import (
	"fmt"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/text"
)

// View has the display options of a diff.
type View struct {
	// Lines shows the unified diffs after the table.
	Lines bool
	// Unfold also shows objects in which only version labels change.
	Unfold bool
	// Unstored is true for a diff with a revision that is not stored. No other command can show it.
	Unstored bool
}

// fold is a group of objects that change only the same version labels.
type fold struct {
	labels  string
	objects int
}

func (f fold) text(diff *v1alpha1.RevisionDiff, view View) string {
	all := "the same command with --unfold"
	if !view.Unstored {
		all = command(diff) + " --unfold"
	}
	return fmt.Sprintf("%s change only %s. All of them: %s", text.Count(f.objects, "object"), f.labels, all)
}

// folded splits the changes of a diff into changes that are shown separately, and groups that are
// shown as one line. An object is shown separately if no other object changes the same labels.
func folded(changes []v1alpha1.ObjectChange, view View) (shown []v1alpha1.ObjectChange, folds []fold) {
	if view.Unfold {
		return changes, nil
	}
	count := map[string]int{}
	for i := range changes {
		count[changes[i].OnlyLabels]++
	}
	for i := range changes {
		labels := changes[i].OnlyLabels
		switch objects := count[labels]; {
		case labels == "" || objects == 1:
			shown = append(shown, changes[i])
		case objects > 1:
			folds = append(folds, fold{labels, objects})
			count[labels] = 0 // the line exists already
		}
	}
	return shown, folds
}
