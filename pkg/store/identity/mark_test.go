package identity

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkRoundTrip(t *testing.T) {
	want := Mark{StoreID: "a", HighWater: 1 << 40, Format: 1, Epoch: 2}
	data := want.Encode()
	data["note"] = "what others write there makes no difference"
	got, err := DecodeMark(data)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestDecodeMarkRefuses(t *testing.T) {
	cases := map[string]struct {
		reason, key, value string
	}{
		"NoStore":          {reason: "a mark of no store", key: "storeID"},
		"NoHighWater":      {reason: "0 would let every backup pass", key: "highWater"},
		"NegativeHigh":     {reason: "etcd has no such revision", key: "highWater", value: "-1"},
		"HighWaterNoise":   {reason: "not a number", key: "highWater", value: "12x"},
		"HighWaterTooHigh": {reason: "not a revision", key: "highWater", value: "99999999999999999999"},
		"NoFormat":         {reason: "the format is not known", key: "format"},
		"EpochNoise":       {reason: "not a number", key: "epoch", value: "x"},
		"NegativeEpoch":    {reason: "there is none before the first", key: "epoch", value: "-1"},
		"FormatZero":       {reason: "formats begin at 1", key: "format", value: "0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := maps.Clone(Mark{StoreID: "a", HighWater: 5, Format: 1}.Encode())
			data[tc.key] = tc.value
			if got, err := DecodeMark(data); err == nil {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
		})
	}
	if got, err := DecodeMark(nil); err == nil {
		t.Errorf("a witness without data is broken, not missing: got %+v", got)
	}
}

func TestRaised(t *testing.T) {
	mark := Mark{StoreID: "a", HighWater: 10, Format: 1}
	for highWater, want := range map[int64]int64{9: 10, 10: 10, 11: 11} {
		got, raised := mark.Raised(highWater)
		if got.HighWater != want || raised != (want != 10) || got.StoreID != "a" {
			t.Errorf("raised to %d: got %+v, %v", highWater, got, raised)
		}
	}
}
