package fleet

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned/fake"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// TestAgreeToLeave: a user can only agree to clusters that the command has shown.
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

// TestFind: a name selects a rollout, or the newest rollout of a set. An ambiguous name selects
// neither.
func TestFind(t *testing.T) {
	rollout := func(name, set string) *v1alpha1.ClusterExtensionRollout {
		one := &v1alpha1.ClusterExtensionRollout{}
		one.Name, one.Labels, one.Spec.Set.Name = name, map[string]string{v1alpha1.SetLabel: set}, set
		return one
	}
	cluster := &session.Cluster{Interface: fake.NewSimpleClientset(rollout("edge-1", "edge"), rollout("edge-9", "edge"), rollout("edge-10", "edge"), rollout("edge-1-1", "edge-1"))}
	for name, tc := range map[string]struct{ asked, want, says string }{
		"a rollout":               {"edge-9", "edge-9", ""},
		"a set":                   {"edge", "edge-10", ""},
		"both":                    {"edge-1", "", "edge-1 is a rollout of ClusterExtensionSet edge, and a ClusterExtensionSet: name rollout/edge-1 or set/edge-1"},
		"the rollout of both":     {"rollout/edge-1", "edge-1", ""},
		"the set of both":         {"set/edge-1", "edge-1-1", ""},
		"neither":                 {"other", "", "neither a rollout nor"},
		"a set that is a rollout": {"set/edge-9", "", "neither a rollout nor"},
		"another kind":            {"cluster/edge-1", "", "must be NAME, rollout/NAME or set/NAME"},
	} {
		found, err := find(t.Context(), cluster, tc.asked)
		if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) || tc.says == "" && (err != nil || found.Name != tc.want) {
			t.Errorf("%s: %v, %v", name, found, err)
		}
	}
}

// TestShow: clusters that have the content already are counted. The status and the diff show the
// windows of waves.
func TestShow(t *testing.T) {
	var out bytes.Buffer
	s := session.New(session.Process{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: os.Getenv, Clock: testclock.NewFakeClock(time.Time{}),
		Terminal: func(any) (screen.Size, bool) { return screen.Size{}, false },
	})
	rollout := &v1alpha1.ClusterExtensionRollout{}
	rollout.Spec.Waves = []v1alpha1.RolloutWave{{Name: "rest", Window: &v1alpha1.RolloutWindow{Schedule: "0 22 * * Sat", TimeZone: "UTC", Duration: metav1.Duration{Duration: time.Hour}}}}
	for _, name := range []string{"a", "b", "c"} {
		rollout.Spec.Clusters = append(rollout.Spec.Clusters, v1alpha1.RolloutTarget{Name: "edge-" + name, Wave: "rest", Present: name != "c"})
	}
	rollout.Status.Clusters = []v1alpha1.RolloutClusterStatus{{Name: "edge-a", State: "Present"}, {Name: "edge-b", State: "Present"}}
	show(s, rollout)
	if got := out.String(); !strings.Contains(got, "2 clusters") || strings.Contains(got, "edge-a") || !strings.Contains(got, "edge-c") {
		t.Errorf("the status is %s", got)
	}
	if err := showGroups(s, rollout); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(strings.Join(strings.Fields(out.String()), " "), "wave rest begin only in its window, 0 22 * * Sat in UTC for 1h0m0s"); got != 2 {
		t.Errorf("%d windows in %s", got, out.String())
	}
}
