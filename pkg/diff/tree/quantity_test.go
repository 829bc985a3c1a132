package tree

import "testing"

func TestQuantity(t *testing.T) {
	cases := map[string]struct {
		in   any
		want string
		ok   bool
	}{
		"Milli": {"500m", "1/2", true}, "Decimal": {"0.5", "1/2", true}, "Integer": {int64(3), "3", true}, "Float": {0.25, "1/4", true},
		"Binary": {"1Ki", "1024", true}, "Kilo": {"1k", "1000", true}, "Exponent": {"1e3", "1000", true}, "Exa": {"1E", "1000000000000000000", true},
		"Fraction": {".5", "1/2", true}, "Point": {"1.", "1", true}, "Sign": {"-1", "-1", true},
		"Huge": {"1e2147483647", "", false}, "K": {"1K", "", false}, "Ki": {"Ki", "", false}, "Empty": {"", "", false}, "Word": {"abc", "", false},
		"Two": {"1mm", "", false}, "Hex": {"0x10", "", false}, "Inside": {"1_000", "", false}, "Bool": {true, "", false}, "Ratio": {"1/2", "", false},
	}
	for name, tc := range cases {
		if got, ok := quantity(tc.in); got != tc.want || ok != tc.ok {
			t.Errorf("%s: quantity(%v) is %q, %t; want %q, %t", name, tc.in, got, ok, tc.want, tc.ok)
		}
	}
}
