package fbc

import (
	"encoding/json"
	"testing"
)

// TestVersionOrder: each version is higher than the previous one.
func TestVersionOrder(t *testing.T) {
	ordered := []string{"0.0.1", "1.0.0-1", "1.0.0-alpha", "1.0.0-rc.1", "1.0.0", "1.0.0+1", "1.0.0+2", "1.0.0+10", "1.0.0+10.1", "1.0.0+git.1a2b", "1.0.1-nightly", "1.0.1", "10.0.0"}
	for i, low := range ordered {
		for j, high := range ordered {
			a, errA := ParseVersion(low)
			b, errB := ParseVersion(high)
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if got := a.Compare(b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%s and %s compare as %d", low, high, got)
			}
			if a.String() != low {
				t.Errorf("%s is printed as %s", low, a)
			}
		}
	}
}

// TestRelease: build metadata that is not a release does not count.
func TestRelease(t *testing.T) {
	for text, want := range map[string]string{
		"1.0.0+7": "7", "1.0.0+git.1a2b": "git.1a2b", "1.0.0+a-b": "a-b", "1.0.0+007": "", "1.0.0": "",
		"1.0.0+aaaaaaaaaaaaaaaaaaaaa": "", "1.0.0+aaaaaaaaaaaaaaaaaaaa": "aaaaaaaaaaaaaaaaaaaa",
	} {
		version, err := ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := version.ReleaseString(); got != want {
			t.Errorf("release of %s is %q, want %q", text, got, want)
		}
	}
	plain, _ := ParseVersion("1.0.0")
	odd, _ := ParseVersion("1.0.0+007")
	if plain.Compare(odd) != 0 {
		t.Error("metadata that is no release counts")
	}
}

func TestBundleVersion(t *testing.T) {
	property := func(typed, value string) Property {
		return Property{Type: typed, Value: json.RawMessage(value)}
	}
	for want, properties := range map[string][]Property{
		"1.2.3": {property("olm.gvk", `{}`), property(PropertyPackage, `{"version":"1.2.3"}`), property(PropertyPackage, `{"version":"2.0.0"}`)},
		`no package property found in bundle "b"`: nil,
		"No Major.Minor.Patch elements found":     {property(PropertyPackage, `{"version":"1"}`)},
		"error unmarshalling package property: json: cannot unmarshal string into Go value of type struct { Version string \"json:\\\"version\\\"\" }": {property(PropertyPackage, `"1.2.3"`)},
	} {
		version, err := (&Bundle{Name: "b", Properties: properties}).Version()
		got := version.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
