package revisiondiff

import (
	"testing"
	"time"
)

// TestAsItWas: who gets the answer that somebody else got is told how old it is, and what to
// do about it.
func TestAsItWas(t *testing.T) {
	want := "this is how the cluster was 1.5 s ago, when somebody asked the same; ask again in a few seconds to see it as it is now"
	if got := asItWas(1500 * time.Millisecond).Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
