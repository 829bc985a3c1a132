package fleet

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// TestAgreeToLeave: nobody lets clusters leave that they were not shown.
func TestAgreeToLeave(t *testing.T) {
	for name, tc := range map[string]struct {
		leaving  []string
		terminal bool
		answer   string
		want     outcome.Code
	}{
		"none leave":         {nil, false, "", outcome.OK},
		"without a terminal": {[]string{"a", "b"}, false, "", outcome.Unknown},
		"agreed":             {[]string{"a", "b"}, true, "y\n", outcome.OK},
		"not agreed":         {[]string{"a", "b"}, true, "n\n", outcome.No},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := session.New(session.Process{
				Stdin: strings.NewReader(tc.answer), Stdout: &out, Stderr: &out, Getenv: os.Getenv, Clock: testclock.NewFakeClock(time.Time{}),
				Terminal: func(any) (screen.Size, bool) { return screen.Size{}, tc.terminal },
			})
			rollout := &v1alpha1.ClusterExtensionRollout{}
			rollout.Name, rollout.Status.Leaving, rollout.Status.Troubles = "edge-1", tc.leaving, "sha256:troubles"
			err := agreeToLeave(t.Context(), s, rollout)
			code := outcome.OK
			if err != nil {
				code = outcome.Of(err)
			}
			if code != tc.want {
				t.Errorf("%v: code %d, want %d", err, code, tc.want)
			}
			if tc.terminal && !strings.Contains(out.String(), "a and b") {
				t.Errorf("the clusters are not shown: %s", out.String())
			}
		})
	}
}
