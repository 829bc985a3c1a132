package review

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestQuestion: the question states deletions and omitted parts of the diff.
func TestQuestion(t *testing.T) {
	for name, tc := range map[string]struct {
		summary v1alpha1.DiffSummary
		want    string
	}{
		"Nothing":  {want: "Roll argocd back to argocd-1, as argocd-3?"},
		"Removed":  {summary: v1alpha1.DiffSummary{Removed: 2}, want: "Roll argocd back to argocd-1, as argocd-3, and delete the 2 removed?"},
		"Withheld": {summary: v1alpha1.DiffSummary{Removed: 1, Withheld: 1}, want: "Warning: not all that changes is shown above. Roll argocd back to argocd-1, as argocd-3, and delete the 1 removed all the same?"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Question("Roll argocd back to argocd-1, as argocd-3", &v1alpha1.RevisionDiff{Summary: tc.summary}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
