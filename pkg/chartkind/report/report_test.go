package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var now = metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	content, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		// Numbers from a cluster are int64, too.
		err = out.UnmarshalJSON(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func central(t *testing.T, metadata, status string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf("{apiVersion: platform.stackrox.io/v1alpha1, kind: Central, metadata: {name: c, %s}, status: {%s}}", metadata, status))
}

func TestProgressing(t *testing.T) {
	for name, tc := range map[string]struct{ reason, metadata, status, want string }{
		"New":        {"nothing is observed yet", "generation: 1", "", "True/Reconciling"},
		"Changed":    {"the generation counts, before anything else", "generation: 2", `observedGeneration: 1, conditions: [{type: Irreconcilable, status: "True", message: bad}]`, "True/Reconciling"},
		"Restored":   {"a generation from the future is that of a backup", "generation: 2", "observedGeneration: 7", "True/Reconciling"},
		"Done":       {"observed, and nothing failed", "generation: 2", `observedGeneration: 2, conditions: [{type: Deployed, status: "True"}]`, "False/ReconcileSuccessful"},
		"Again":      {"an input changed, and no generation", "generation: 2", `observedGeneration: 2, conditions: [{type: Deployed, status: Unknown}]`, "True/Reconciling"},
		"Broken":     {"observed at the end of a bad pass, too", "generation: 2", `observedGeneration: 2, conditions: [{type: Irreconcilable, status: "True", message: bad}]`, "True/Irreconcilable: bad"},
		"Failed":     {"so is a rollout that failed", "generation: 2", `observedGeneration: 2, conditions: [{type: ReleaseFailed, status: "True", message: late}]`, "True/ReleaseFailed: late"},
		"Deleting":   {"deletion counts up the generation", "generation: 3, deletionTimestamp: 2026-11-23T12:00:00Z", "observedGeneration: 2", "True/Deleting"},
		"Duplicates": {"the first one counts", "generation: 2", `observedGeneration: 2, conditions: [{type: Irreconcilable, status: "False"}, {type: Irreconcilable, status: "True"}]`, "False/ReconcileSuccessful"},
		"Strange":    {"a status that there is not is not True", "generation: 2", `observedGeneration: 2, conditions: [{type: Deployed, status: "True"}, {type: ReleaseFailed, status: Maybe}]`, "False/ReconcileSuccessful"},
		"Odd":        {"what cannot be read is not there", "generation: 2", `observedGeneration: 2, conditions: [7, {status: "True"}, {type: Irreconcilable, status: 3}]`, "False/ReconcileSuccessful"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Volatile(central(t, tc.metadata, tc.status), Workloads{}, now)[1]
			text := fmt.Sprintf("%s/%s", got.Status, got.Reason)
			if strings.Contains(tc.want, ": ") {
				text += ": " + got.Message
			}
			if text != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, text, tc.want)
			}
		})
	}
}

func TestReady(t *testing.T) {
	deployment := Workload{Kind: Deployment, Namespace: "n", Name: "web"}
	set, daemons := Workload{Kind: StatefulSet, Namespace: "n", Name: "db"}, Workload{Kind: DaemonSet, Namespace: "n", Name: "node"}
	const available = `conditions: [{type: Available, status: "True"}]`
	for name, tc := range map[string]struct {
		reason   string
		expected []Workload
		found    map[string]string
		want     string
	}{
		"Available": {"", []Workload{deployment}, map[string]string{"web": "{metadata: {generation: 2}, status: {observedGeneration: 2, " + available + "}}"}, "True/WorkloadsReady: All workloads are ready"},
		"Missing":   {"a deleted one counts", []Workload{deployment, set}, map[string]string{"db": "{status: {availableReplicas: 1}}"}, "False/WorkloadsNotReady: 1 of 2 workloads are not ready: web (missing)"},
		"NoAnswer":  {"no condition is not available", []Workload{deployment}, map[string]string{"web": "{}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: web (not available)"},
		"Zero":      {"Kubernetes calls it available", []Workload{deployment}, map[string]string{"web": "{spec: {replicas: 0}, status: {" + available + "}}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: web (scaled to zero)"},
		"ZeroAsked": {"its manifest asks for none", []Workload{{Kind: Deployment, Namespace: "n", Name: "web", None: true}}, map[string]string{"web": "{spec: {replicas: 0}, status: {" + available + "}}"}, "True/WorkloadsReady: All workloads are ready"},
		"Stale":     {"available with the spec before", []Workload{deployment}, map[string]string{"web": "{metadata: {generation: 3}, status: {observedGeneration: 2, " + available + "}}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: web (not available)"},
		"Going":     {"it is deleted", []Workload{deployment}, map[string]string{"web": "{metadata: {deletionTimestamp: 2026-11-23T12:00:00Z}, status: {" + available + "}}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: web (being deleted)"},
		"Set":       {"a StatefulSet has no condition", []Workload{set}, map[string]string{"db": "{spec: {replicas: 2}, status: {availableReplicas: 1}}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: db (not available)"},
		"Daemons":   {"", []Workload{daemons}, map[string]string{"node": "{status: {desiredNumberScheduled: 3, numberAvailable: 3}}"}, "True/WorkloadsReady: All workloads are ready"},
		"Paused":    {"nobody works on it, and it works", []Workload{deployment}, map[string]string{"web": "{metadata: {generation: 2}, spec: {paused: true}, status: {observedGeneration: 2, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}, {type: Available, status: \"True\"}]}}"}, "True/WorkloadsReady: All workloads are ready"},
		"PausedOff": {"paused before it worked", []Workload{deployment}, map[string]string{"web": "{metadata: {generation: 2}, spec: {paused: true}, status: {observedGeneration: 2, conditions: [{type: Available, status: \"False\"}]}}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: web (not available)"},
		"Late":      {"its rollout ran out of time, and what was there works", []Workload{deployment}, map[string]string{"web": "{status: {conditions: [{type: Progressing, status: \"False\", reason: ProgressDeadlineExceeded}, {type: Available, status: \"True\"}]}}"}, "True/WorkloadsReady: All workloads are ready"},
		"LateOff":   {"its rollout ran out of time, and nothing works", []Workload{deployment}, map[string]string{"web": "{status: {conditions: [{type: Progressing, status: \"False\", reason: ProgressDeadlineExceeded}, {type: Available, status: \"False\"}]}}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: web (not available)"},
		"Strange":   {"a status that there is not", []Workload{deployment}, map[string]string{"web": "{status: {conditions: [{type: Available, status: Maybe}]}}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: web (not available)"},
		"NoNode":    {"a DaemonSet that is nowhere", []Workload{daemons}, map[string]string{"node": "{}"}, "False/WorkloadsNotReady: 1 of 1 workloads are not ready: node (not available)"},
		"Sorted":    {"names do not change places", []Workload{deployment, set, daemons}, nil, "False/WorkloadsNotReady: 3 of 3 workloads are not ready: db (missing), node (missing), web (missing)"},
		"None":      {"a revision of ConfigMaps alone", nil, nil, "True/NoWorkloads: No workloads are expected"},
	} {
		t.Run(name, func(t *testing.T) {
			workloads := Workloads{Installed: true, Expected: tc.expected, Find: func(one Workload) *unstructured.Unstructured {
				if tc.found[one.Name] == "" {
					return nil
				}
				return object(t, "{apiVersion: apps/v1, kind: "+one.Kind+", "+tc.found[one.Name][1:])
			}}
			got := Volatile(central(t, "generation: 1", ""), workloads, now)[0]
			if text := fmt.Sprintf("%s/%s: %s", got.Status, got.Reason, got.Message); text != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, text, tc.want)
			}
		})
	}
	for reason, workloads := range map[string]Workloads{"Unknown/WorkloadsUnknown: the cluster does not answer": {Unknown: "the cluster does not answer", Installed: true}, "False/NoWorkloads: No workloads found": {}} {
		was := `conditions: [{type: Ready, status: "True"}]`
		if got := Volatile(central(t, "generation: 1", was), workloads, now)[0]; fmt.Sprintf("%s/%s: %s", got.Status, got.Reason, got.Message) != reason {
			t.Errorf("%v, want %s: an old True is not kept", got, reason)
		}
	}
}

// lastTransitionTime changes only with the status.
func TestTransitionTime(t *testing.T) {
	was := central(t, "generation: 2", `observedGeneration: 2, conditions: [{type: Ready, status: "False", reason: NoWorkloads, lastTransitionTime: 2026-11-01T00:00:00Z},
		{type: Progressing, status: "True", reason: Reconciling, lastTransitionTime: 2026-11-01T00:00:00Z}]`)
	got := Volatile(was, Workloads{}, now)
	if !got[0].LastTransitionTime.Time.Before(now.Time) {
		t.Error("Ready has another message, and another time with it")
	}
	if !got[1].LastTransitionTime.Equal(&now) {
		t.Error("Progressing has another status, and the old time")
	}
}

func TestReconciled(t *testing.T) {
	first := func(change func(*Rollout)) *Rollout {
		r := &Rollout{Revision: "central-1", Version: "4.9.0", First: true}
		if change != nil {
			change(r)
		}
		return r
	}
	installed := `observedGeneration: 1, reconciledVersion: 4.8.0, conditions: [{type: Deployed, status: "True", reason: InstallSuccessful, message: fine}]`
	for name, tc := range map[string]struct {
		reason, stored string
		pass           Pass
		want           string
	}{
		"Begins":   {"not observed while it is rolled out", "", Pass{Rollout: first(nil)}, `0 "" Deployed=Unknown/Reconciling: being installed: central-1 is rolled out`},
		"Installs": {"", "", Pass{Rollout: first(func(r *Rollout) { r.Succeeded = true })}, `2 "4.9.0" Deployed=True/InstallSuccessful: Central c is installed.`},
		"Notes":    {"the chart words the message", "", Pass{Rollout: first(func(r *Rollout) { r.Succeeded, r.Notes = true, "Log in." })}, `2 "4.9.0" Deployed=True/InstallSuccessful: Log in.`},
		"Upgrades": {"the version is that of before until it has succeeded", installed, Pass{Rollout: first(func(r *Rollout) { r.First = false })}, `1 "4.8.0" Deployed=Unknown/Reconciling: being upgraded: central-1 is rolled out`},
		"Upgraded": {"", installed, Pass{Rollout: first(func(r *Rollout) { r.First, r.Succeeded = false, true })}, `2 "4.9.0" Deployed=True/UpgradeSuccessful: Central c is installed.`},
		"Fails":    {"a failure is observed", "", Pass{Rollout: first(func(r *Rollout) { r.Failure = "late" })}, `2 "" Deployed=False/InstallError: late ReleaseFailed=True/InstallError: late`},
		"Broken":   {"so is what cannot be done; what was installed is", installed, Pass{Irreconcilable: "bad", Rollout: first(nil)}, `2 "4.8.0" Deployed=True/UpgradeError: bad Irreconcilable=True/ReconcileError: bad`},
		"Waits":    {"nobody has approved it", installed, Pass{Waiting: "central-2 waits", Rollout: first(nil)}, `1 "4.8.0" Deployed=True/Reconciling: central-2 waits`},
		"Paused":   {"all stays as it is", installed, Pass{Paused: true, Rollout: first(nil)}, `1 "4.8.0" Deployed=True/InstallSuccessful: fine Paused=True/PausedByAnnotation: the installed objects stay as they are until the annotation is removed`},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.pass
			p.Kind, p.Name, p.Generation = "Central", "c", 2
			got := Reconciled(p, StatusOf(central(t, "generation: 5", tc.stored)), now)
			text := fmt.Sprintf("%d %q", got.ObservedGeneration, got.ReconciledVersion)
			for _, one := range got.Conditions {
				if one.Type == Deployed || one.Status != metav1.ConditionFalse {
					text += fmt.Sprintf(" %s=%s/%s: %s", one.Type, one.Status, one.Reason, one.Message)
				}
			}
			if text != tc.want {
				t.Errorf("%s: %s\nwant %s", tc.reason, text, tc.want)
			}
		})
	}
}

func TestClip(t *testing.T) {
	if got := Clip("a\tb\x1b[31m " + strings.Repeat("x", 32<<10)); len(got) > maxMessage {
		t.Errorf("%d bytes of 32 KiB", len(got))
	}
	if got := Clip(strings.Repeat("ü", 2000)); len(got) > maxMessage || !strings.HasSuffix(got, "ü…") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-8:])
	}
}
