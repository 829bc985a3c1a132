package review

import "testing"

func TestDowngrade(t *testing.T) {
	for _, tc := range []struct{ from, to, want string }{
		{"v1.1.0", "v1.2.0", ""}, {"1.2.0", "v1.2.0", ""}, {"", "v1.2.0", ""}, {"v1.2.0", "", ""}, {"blue", "green", ""},
		{"v1.2.0", "v1.1.9", "this is a downgrade: version v1.2.0 → v1.1.9"}, {"1.2.0", "1.2.0-rc.1", "this is a downgrade: version 1.2.0 → 1.2.0-rc.1"},
	} {
		if got := downgrade(tc.from, tc.to); got != tc.want {
			t.Errorf("%s to %s: %q, want %q", tc.from, tc.to, got, tc.want)
		}
	}
}
