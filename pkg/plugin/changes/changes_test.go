package changes

import (
	"bytes"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// TestPrintStat: lines that the user did not request are not reported as omitted. Omitted objects
// always are.
func TestPrintStat(t *testing.T) {
	for _, tc := range []struct {
		left  v1alpha1.DiffTruncation
		lines bool
		want  string
	}{
		{v1alpha1.DiffTruncation{Lines: 3}, false, ""},
		{v1alpha1.DiffTruncation{Lines: 3}, true, "3 lines left out"},
		{v1alpha1.DiffTruncation{Lines: 3, Objects: 1}, false, "1 object left out"},
	} {
		var out bytes.Buffer
		on := screen.New(&out, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourAuto, func(string) string { return "" })
		left := tc.left
		Print(on, &v1alpha1.RevisionDiff{From: "a-1", To: "a-2", Truncated: &left}, View{Lines: tc.lines})
		if said := strings.Contains(out.String(), "left out"); said != (tc.want != "") || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%+v: %q, want %q", tc, out.String(), tc.want)
		}
		if left != tc.left {
			t.Errorf("the diff was changed: %+v", left)
		}
	}
}
