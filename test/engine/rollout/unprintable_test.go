//go:build integration

package rollout_test

import "testing"

// TestUnprintable: kube-apiserver reads applied JSON as YAML. It gets the same bytes, also for
// characters that JSON allows and YAML forbids.
func TestUnprintable(t *testing.T) {
	t.Parallel()
	c := start(t).in(t).chain("unprintable")
	const text = "a\x7f\u0080  \u0085 \u009f\u00a0\ufeff\ufffe\uffff\u2028é"
	x := configMap(c.home(), "x", text)
	c.roll(rev(1).phase("all", x))
	if got := c.value(x); got != text {
		t.Errorf("the server has %q, want %q", got, text)
	}
}
