package author

import (
	"fmt"
	"testing"
	"time"
)

// TestChoose: a write that restores an earlier source has the time at which that source was
// replaced.
func TestChoose(t *testing.T) {
	at := func(minute int) time.Time { return written.Add(time.Duration(minute) * time.Minute) }
	for name, tc := range map[string]struct {
		reason  string
		sources []string
		want    string
	}{
		"Created":      {"it is the first one", []string{"a"}, "1 at 0"},
		"Same":         {"the source stays", []string{"a", "a"}, "1 at 0"},
		"Changed":      {"somebody chose", []string{"a", "b"}, "2 at 1"},
		"Reverted":     {"the first one was left at 1", []string{"a", "b", "a"}, "3 at 2, left at 1"},
		"RevertedOver": {"others were between", []string{"a", "b", "c", "c", "a"}, "5 at 4, left at 1"},
		"Flapping":     {"the second one was left at 2", []string{"a", "b", "a", "b"}, "4 at 3, left at 2"},
		"LeftTwice":    {"the first one was left at 3 again", []string{"a", "b", "a", "b", "a"}, "5 at 4, left at 3"},
	} {
		var choice *Choice
		for i, source := range tc.sources {
			var was any
			if i > 0 {
				was = map[string]any{"catalog": tc.sources[i-1]}
			}
			choice = Choose(choice, i == 0, was, map[string]any{"catalog": source}, int64(i+1), at(i))
		}
		got := fmt.Sprintf("%d at %d", choice.Generation, int(choice.Time.Sub(written).Minutes()))
		if !choice.Left.IsZero() {
			got += fmt.Sprintf(", left at %d", int(choice.Left.Sub(written).Minutes()))
		}
		if got != tc.want {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
	}
	if choice := Choose(nil, false, "a", "b", 7, at(1)); choice.Generation != 7 || len(choice.Former) != 1 {
		t.Errorf("without a stamp before it, the choice is %+v", choice)
	}
	many := &Choice{}
	for i := range 100 {
		many = Choose(many, false, i, i+1, int64(i), at(i))
	}
	if len(many.Former) != mostFormer {
		t.Errorf("it remembers %d sources", len(many.Former))
	}
}
