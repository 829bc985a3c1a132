package screens

import (
	"net/http"
	"strings"
	"testing"
)

// TestSetVersion: a dry run writes nothing and returns the resolver's choice. If the object or the
// choice has changed since, the request is refused before any write.
func TestSetVersion(t *testing.T) {
	const path = "/api/extensions/light/version"
	cluster, handler := newOffering(t)
	var would VersionChange
	if code := ask(t, handler, "POST", path, `{"uid":"u","generation":3,"version":"1.x","dryRun":true}`, &would); code != http.StatusOK {
		t.Fatal(code)
	}
	if would.Was != "1.0.0" || would.Version != "1.x" || would.Would == nil || would.Would.Allowed != "1.2.0" || would.Hidden != nil || len(would.Warnings) != 1 {
		t.Errorf("%+v", would)
	}
	if len(cluster.patched) != 1 || !strings.HasPrefix(cluster.patched[0], "All application/json-patch+json ") {
		t.Errorf("a look has sent %q", cluster.patched)
	}
	cluster.patched = nil
	for name, tc := range map[string]struct {
		body, reason, said string
	}{
		"another object":       {`{"uid":"v","generation":3,"version":"1.x","allowed":"1.2.0"}`, ReasonChanged, "review it again"},
		"another spec":         {`{"uid":"u","generation":2,"version":"1.x","allowed":"1.2.0"}`, ReasonChanged, "review it again"},
		"leads elsewhere":      {`{"uid":"u","generation":3,"version":"1.x","allowed":"1.1.0"}`, ReasonChanged, "it now leads to 1.2.0, and led to 1.1.0"},
		"led nowhere":          {`{"uid":"u","generation":3,"version":"1.x"}`, ReasonChanged, "it now leads to 1.2.0, and led to no version"},
		"nothing on a screen":  {`{"version":"1.x"}`, "Body", "uid and generation are required"},
		"a field nobody knows": {`{"uid":"u","generation":3,"version":"1.x","channel":"x"}`, "Body", "unknown field"},
	} {
		var refusal Refusal
		if ask(t, handler, "POST", path, tc.body, &refusal); refusal.Reason != tc.reason || !strings.Contains(refusal.Message, tc.said) {
			t.Errorf("%s: %+v", name, refusal)
		}
	}
	if len(cluster.patched) > 0 {
		t.Errorf("what is refused has sent %q", cluster.patched)
	}
	if code := ask(t, handler, "POST", path, `{"uid":"u","generation":3,"version":"1.x","allowed":"1.2.0"}`, &would); code != http.StatusOK {
		t.Error(code)
	}
	if len(cluster.patched) != 1 || !strings.Contains(cluster.patched[0], `"value":"1.x"`) || !strings.HasPrefix(cluster.patched[0], " ") || !strings.Contains(cluster.patched[0], "/metadata/generation") {
		t.Errorf("sent %q", cluster.patched)
	}
}
