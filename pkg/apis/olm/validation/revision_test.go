package validation

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

type revisionCase struct {
	reason   string
	change   change
	want     []string
	mentions string
}

func runRevisionCases(t *testing.T, cases map[string]revisionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			checkErrors(t, tc.reason, ValidateRevision(revision(tc.change)), tc.want, tc.mentions)
		})
	}
}

func TestIdentity(t *testing.T) {
	runRevisionCases(t, map[string]revisionCase{
		"Valid":   {reason: "the revision that all cases start from", change: func(*olm.ClusterExtensionRevision) {}},
		"Dots":    {reason: "an extension may be a DNS subdomain", change: named("argo.cd", 1)},
		"Longest": {reason: "52 characters and ten digits", change: named(strings.Repeat("a", 52), v1alpha1.MaxRevision)},
		"TooLong": {
			reason: "53 characters",
			change: named(strings.Repeat("a", 53), 1),
			want:   []string{invalid + "metadata.name"}, mentions: "53 characters, must have at most 52",
		},
		"NotDNS": {
			reason: "the store itself takes any path segment",
			change: named("E_", 1),
			want:   []string{invalid + "metadata.name"}, mentions: "lowercase RFC 1123 subdomain",
		},
		"ExtensionNotDNS": {
			reason: "argocd--3 is a DNS name, its extension argocd- is not",
			change: named("argocd-", 3),
			want:   []string{invalid + "metadata.name"}, mentions: `"argocd-"`,
		},
		"NoNumber": {
			reason: "a name without a number belongs to no chain",
			change: func(r *olm.ClusterExtensionRevision) { r.Name = "argocd" },
			want:   []string{invalid + "metadata.name"}, mentions: "must be <extension>-<revision>, such as argocd-3",
		},
		"OtherNumber": {
			reason: "name and spec must agree",
			change: func(r *olm.ClusterExtensionRevision) { r.Name = "argocd-4" },
			want:   []string{invalid + "spec.revision"}, mentions: "3: must be 4",
		},
		"Zero": {
			reason: "numbers start at 1",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Revision = 0 }),
			want:   []string{invalid + "spec.revision"}, mentions: "must be from 1 to 2147483647",
		},
		"NumberTooHigh": {
			reason: "the name would not fit where 63 characters are allowed",
			change: named("argocd", v1alpha1.MaxRevision+1),
			want:   []string{invalid + "spec.revision"}, mentions: "must be from 1 to 2147483647",
		},
		"NoLabel": {
			reason: "selectors by chain must find every revision",
			change: func(r *olm.ClusterExtensionRevision) { r.Labels = nil },
			want:   []string{missing + "metadata.labels[penstock.dev/chain]"}, mentions: `must be "argocd"`,
		},
		"OtherLabel": {
			reason: "a revision cannot claim another chain",
			change: func(r *olm.ClusterExtensionRevision) { r.Labels[v1alpha1.ChainLabel] = "flux" },
			want:   []string{invalid + "metadata.labels[penstock.dev/chain]"}, mentions: `"flux": must be "argocd"`,
		},
		"Namespace": {
			reason: "revisions are cluster-scoped",
			change: func(r *olm.ClusterExtensionRevision) { r.Namespace = "x" },
			want:   []string{string("FieldValueForbidden ") + "metadata.namespace"},
		},
	})
}

func TestSpecScalars(t *testing.T) {
	runRevisionCases(t, map[string]revisionCase{
		"Paused":   {reason: "a revision may be created paused", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.LifecycleState = olm.LifecycleStatePaused })},
		"Archived": {reason: "an imported one is created archived", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.LifecycleState = olm.LifecycleStateArchived })},
		"State": {
			reason: "allowed values are listed",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.LifecycleState = "Done" }),
			want:   []string{notSupported + "spec.lifecycleState"}, mentions: `supported values: "Active", "Paused", "Archived"`,
		},
		"NoState": {
			reason: "defaulting has set it",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.LifecycleState = "" }),
			want:   []string{missing + "spec.lifecycleState"}, mentions: `["Active" "Paused" "Archived"]`,
		},
		"Teardown": {
			reason: "allowed values are listed",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.TeardownPolicy = "Keep" }),
			want:   []string{notSupported + "spec.teardownPolicy"}, mentions: `"Delete", "Orphan"`,
		},
		"Collision": {
			reason: "allowed values are listed",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.CollisionProtection = "Allow" }),
			want:   []string{notSupported + "spec.collisionProtection"}, mentions: `"Prevent", "IfNoController", "None"`,
		},
		"NoCollision": {
			reason: "nothing is above the revision to ask",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.CollisionProtection = "" }),
			want:   []string{missing + "spec.collisionProtection"},
		},
		"Deadline": {reason: "minutes", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.ProgressDeadlineMinutes = 30 })},
		"NegativeDeadline": {
			reason: "0 is none, and nothing is below",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.ProgressDeadlineMinutes = -1 }),
			want:   []string{invalid + "spec.progressDeadlineMinutes"}, mentions: "-1",
		},
		"Metrics": {reason: "names of MetricChecks", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.MetricChecks = []string{"errors", "latency"} })},
		"BadMetric": {
			reason: "no name of an object",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.MetricChecks = []string{"errors", "Error Rate"} }),
			want:   []string{invalid + "spec.metricChecks[1]"}, mentions: "must be the name of a MetricCheck",
		},
		"TwiceTheMetric": {
			reason: "a set",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.MetricChecks = []string{"errors", "errors"} }),
			want:   []string{duplicate + "spec.metricChecks[1]"},
		},
		"ManyMetrics": {
			reason: "each costs queries",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.MetricChecks = strings.Split("abcdefghi", "") }),
			want:   []string{many + "spec.metricChecks"},
		},
		"Delay": {reason: "seconds, up to a day", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.SuccessDelaySeconds = 86400 })},
		"NegativeDelay": {
			reason: "0 is none, and nothing is below",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.SuccessDelaySeconds = -1 }),
			want:   []string{invalid + "spec.successDelaySeconds"}, mentions: "must be from 0 to 86400",
		},
		"LongDelay": {
			reason: "nobody waits longer than a day",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.SuccessDelaySeconds = 86401 }),
			want:   []string{invalid + "spec.successDelaySeconds"}, mentions: "86401: must be from 0 to 86400",
		},
		"Rollback": {
			reason: "with a deadline that can be missed",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
				s.OnFailure, s.ProgressDeadlineMinutes = olm.OnFailureRollback, 1
			}),
		},
		"RollbackWhen": {
			reason: "without a deadline there is no failure",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.OnFailure = olm.OnFailureRollback }),
			want:   []string{invalid + "spec.onFailure"}, mentions: "needs spec.progressDeadlineMinutes above 0",
		},
		"OnFailure": {
			reason: "allowed values are listed",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.OnFailure = "Retry" }),
			want:   []string{notSupported + "spec.onFailure"}, mentions: `"None", "Rollback"`,
		},
		"NoOnFailure": {
			reason: "defaulting has set it",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.OnFailure = "" }),
			want:   []string{missing + "spec.onFailure"}, mentions: `["None" "Rollback"]`,
		},
	})
}

func TestPrevious(t *testing.T) {
	previous := func(names ...string) change {
		return withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
			s.Previous = nil
			for _, name := range names {
				s.Previous = append(s.Previous, olm.PreviousRevision{Name: name})
			}
		})
	}
	runRevisionCases(t, map[string]revisionCase{
		"None":  {reason: "the first of a chain", change: previous()},
		"Older": {reason: "with gaps", change: previous("argocd-1")},
		"Self": {
			reason: "a revision does not follow itself", change: previous("argocd-3"),
			want: []string{invalid + "spec.previous[0].name"}, mentions: "below 3",
		},
		"OtherChain": {
			reason: "chains do not cross", change: previous("argocd-2", "flux-1"),
			want: []string{invalid + "spec.previous[1].name"}, mentions: "must be argocd-<revision>",
		},
		"NoName": {
			reason: "an entry names a revision", change: previous(""),
			want: []string{missing + "spec.previous[0].name"},
		},
		"Twice": {
			reason: "each once", change: previous("argocd-1", "argocd-1"),
			want: []string{duplicate + "spec.previous[1].name"},
		},
	})
}

func TestSpecSize(t *testing.T) {
	message := func(size int) change {
		return withAssertion(olm.ProbeAssertion{CEL: &olm.CELAssertion{Expression: "true", Message: strings.Repeat("x", size)}})
	}
	runRevisionCases(t, map[string]revisionCase{
		"Fits": {reason: "below the limit", change: message(v1alpha1.MaxSpecBytes - 4096)},
		"TooLong": {
			reason: "the record would not fit into etcd", change: message(v1alpha1.MaxSpecBytes),
			want: []string{long + "spec"}, mentions: "must have at most 786432",
		},
		"AllLimitsAtOnce": {
			reason: "4000 objects with names of usual length fit",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Phases = numbered(40, v1alpha1.MaxObjects/40) }),
		},
	})
}
