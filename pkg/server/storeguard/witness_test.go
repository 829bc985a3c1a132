package storeguard

import (
	"testing"
	"time"
)

func TestMarkIsRaisedWhenTheStoreRests(t *testing.T) {
	begin := time.Unix(0, 0)
	type look struct {
		second    int
		highWater int64
		due       bool
	}
	cases := map[string]struct {
		reason string
		fails  bool
		looks  []look
	}{
		"idle":         {"nothing was written", false, []look{{1, 5, false}, {100, 5, false}}},
		"a burst":      {"once, two seconds after the last write", false, []look{{1, 6, false}, {2, 9, false}, {3, 9, false}, {4, 9, true}, {5, 9, false}, {90, 9, false}}},
		"writes go on": {"every minute at the latest", false, []look{{1, 6, false}, {30, 7, false}, {59, 8, false}, {60, 9, true}, {61, 10, false}, {119, 11, false}, {120, 12, true}}},
		"deletion":     {"the newest record went: the mark stays", false, []look{{1, 4, false}, {100, 4, false}}},
		"host is down": {"tried again after a minute, not every second", true, []look{{1, 6, false}, {3, 6, true}, {4, 6, false}, {30, 6, false}, {63, 6, true}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pace{raised: 5, at: begin}
			for _, look := range tc.looks {
				now := begin.Add(time.Duration(look.second) * time.Second)
				got := p.due(look.highWater, now)
				if got != look.due {
					t.Fatalf("%s: at second %d with the store at %d due is %t", tc.reason, look.second, look.highWater, got)
				}
				if got {
					p.done(look.highWater, now, !tc.fails)
				}
			}
		})
	}
}
