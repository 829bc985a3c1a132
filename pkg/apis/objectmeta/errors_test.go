package objectmeta_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
)

// TestBounded: an answer stays short for many errors and for long quotes. Short answers do not
// change.
func TestBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<16)
	errs := slices.Repeat(field.ErrorList{
		field.Invalid(field.NewPath("metadata").Key(long), long, long), field.Invalid(field.NewPath("spec"), []string{long}, "x"),
	}, 100_000)
	bounded := objectmeta.Bounded(errs)
	if len(bounded) != 65 || !strings.Contains(bounded[64].Detail, "64 errors are listed, 199936 more are not") {
		t.Fatalf("%d errors, the last: %.200v", len(bounded), bounded[len(bounded)-1])
	}
	if size := len(bounded.ToAggregate().Error()); size > 65*4<<10 {
		t.Errorf("they have %d bytes", size)
	}
	if strings.ContainsRune(bounded[0].Detail, '\uFFFD') {
		t.Error("a character was cut in two")
	}
	few := field.ErrorList{field.Required(field.NewPath("spec"), "why"), field.Invalid(field.NewPath("a"), 7, "too small")}
	if got := objectmeta.Bounded(few); got.ToAggregate().Error() != few.ToAggregate().Error() {
		t.Errorf("%v became %v", few, got)
	}
	if got := objectmeta.Bounded(nil); len(got) != 0 {
		t.Errorf("nothing became %v", got)
	}
}
