// Package readiness lists the parts of a cluster that an upgrade of the cluster would break. It is
// pure: it computes findings from manifests, statements of packages and the lifecycle table.
//
// readiness.go collects and summarises the findings. acknowledgement.go handles accepted findings.
// api.go judges versions of objects. objects.go judges budgets and webhooks, and live.go adds their
// state in the cluster. statement.go judges statements of packages and charts, others.go plans and
// ChartKinds. target.go parses the requested version.
package readiness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// MaxFindings limits the findings of an answer.
const MaxFindings = 2000

// Role is the position of a revision in its extension.
type Role int

const (
	// RolledOut revisions are active: the engine applies their objects again.
	RolledOut Role = iota
	// Proposed revisions wait for an approval.
	Proposed
	// Earlier revisions can be chosen for a rollback.
	Earlier
)

// Extension is an extension with its revisions and statements.
type Extension struct {
	Name string
	// Version is the version of the installed package.
	Version string
	// Revisions, newest first.
	Revisions []Revision
	Statement Statement
	// acknowledged findings, by id.
	acknowledged map[string][]acknowledgement
	// NotLooked is the reason why part of the extension could not be read.
	NotLooked string
}

// Revision is one revision of an extension.
type Revision struct {
	Name string
	Role Role
	// Objects are in rollout order. JSON is empty if the manifest is not needed.
	Objects []manifest.Object
}

// NeedsManifest reports whether judging an object needs its manifest. Budgets are compared with the
// workloads of the revision, and a proposed definition with the versions stored in the cluster.
func NeedsManifest(id manifest.ID, role Role) bool {
	return role == RolledOut && (isBudget(id) || isWebhooks(id)) || role == Proposed && id.IsDefinition()
}

// Judge collects findings, one extension after the other. Use a new Judge for each answer.
type Judge struct {
	table   *lifecycle.Table
	current *clusterversion.Kubernetes
	target  Target
	live    Live
	answer  v1alpha1.UpgradeReadiness
	// silent counts extensions without an upper bound. unseen counts extensions that could not be
	// read. acknowledged counts acknowledged findings. counts has the other findings by severity.
	silent, unseen, acknowledged int
	counts                       map[v1alpha1.UpgradeSeverity]int
	// planned is true if steps are wanted. packages are the extensions by package. required are the
	// packages that an extension requires.
	planned            bool
	packages, required map[string][]string
}

// Steps requests the steps of the upgrade. Call it before judging extensions.
func (j *Judge) Steps() {
	j.planned, j.packages, j.required = true, map[string][]string{}, map[string][]string{}
}

// New returns a judge. current is nil if the version of the cluster is unknown.
func New(table *lifecycle.Table, current *clusterversion.Kubernetes, target Target) *Judge {
	j := &Judge{table: table, current: current, target: target, counts: map[v1alpha1.UpgradeSeverity]int{}}
	j.answer.Name, j.answer.Target, j.answer.Lifecycle = target.Name, minor(target.Kubernetes), table.Version().String()
	if current != nil {
		j.answer.Current = current.String()
	}
	return j
}

// Extension judges one extension.
func (j *Judge) Extension(one *Extension) {
	row := v1alpha1.ExtensionReadiness{Name: one.Name, Version: one.Version, NotLooked: one.NotLooked}
	row.Statement = one.Statement.String()
	before := len(j.answer.Findings)
	seen := map[string]int{}
	for i := range one.Revisions {
		revision := &one.Revisions[i]
		if revision.Role == RolledOut && row.Revision == "" {
			row.Revision = revision.Name
		}
		j.apis(one, revision, seen)
		if revision.Role == RolledOut {
			j.objects(one, revision, seen)
		}
		if revision.Role != Earlier {
			j.definitions(one, revision, seen)
		}
	}
	j.statement(one, &row)
	found := j.answer.Findings[before:]
	j.order(one, &row, slices.ContainsFunc(found, func(f v1alpha1.UpgradeFinding) bool { return f.Severity == v1alpha1.UpgradeBlocks }))
	if j.planned {
		j.plan(one, &row)
	}
	j.acknowledge(one, found)
	for i := range found {
		if found[i].Acknowledged == nil && (row.Severity == "" || rank(found[i].Severity) < rank(row.Severity)) {
			row.Severity = found[i].Severity
		}
	}
	row.Findings = int32(len(found))
	if row.NotLooked != "" {
		j.unseen++
	} else if !one.Statement.bounds(j.target) {
		j.silent++
	}
	j.answer.Extensions = append(j.answer.Extensions, row)
	j.tally(before)
}

// find adds a finding. seen maps the findings of the extension to their index in the answer. For
// equal findings in several revisions, it keeps the worst.
func (j *Judge) find(found v1alpha1.UpgradeFinding, seen map[string]int) {
	key := keyOf(&found)
	at, known := seen[key]
	switch {
	case !known:
		seen[key] = len(j.answer.Findings)
		j.answer.Findings = append(j.answer.Findings, found)
	case rank(found.Severity) < rank(j.answer.Findings[at].Severity):
		j.answer.Findings[at] = found
	}
}

func keyOf(found *v1alpha1.UpgradeFinding) string {
	return strings.Join([]string{found.APIVersion, found.Kind, found.Namespace, found.Name, found.Field}, "|")
}

// isAcknowledged sorts acknowledged findings last.
func isAcknowledged(found *v1alpha1.UpgradeFinding) int {
	if found.Acknowledged == nil {
		return 0
	}
	return 1
}

// cut sorts the findings, and drops those above the limit.
func (j *Judge) cut() {
	slices.SortStableFunc(j.answer.Findings, func(a, b v1alpha1.UpgradeFinding) int {
		return cmp.Or(cmp.Compare(isAcknowledged(&a), isAcknowledged(&b)), cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Extension, b.Extension))
	})
	if more := len(j.answer.Findings) - MaxFindings; more > 0 {
		j.answer.Omitted += int32(more)
		j.answer.Findings = slices.Clip(j.answer.Findings[:MaxFindings])
	}
}

func rank(severity v1alpha1.UpgradeSeverity) int {
	return slices.Index([]v1alpha1.UpgradeSeverity{v1alpha1.UpgradeBlocks, v1alpha1.UpgradeBreaksRollback, v1alpha1.UpgradeActBefore, v1alpha1.UpgradeLook}, severity)
}

// Answer returns the result. notLooked lists parts that the caller of Answer could not read.
func (j *Judge) Answer(notLooked ...string) *v1alpha1.UpgradeReadiness {
	j.cut()
	j.ordered()
	notLooked = append(notLooked, j.live.NotLooked...)
	if !j.table.Knows(j.target.Kubernetes) {
		notLooked = append(notLooked, fmt.Sprintf("the lifecycle table of this Penstock is of Kubernetes %s, and is too old for %s", minor(j.table.Version()), minor(j.target.Kubernetes)))
	}
	if j.unseen > 0 {
		notLooked = append(notLooked, text.Count(j.unseen, "extension")+" could not be looked at")
	}
	var parts []string
	blocks := j.counts[v1alpha1.UpgradeBlocks]
	switch {
	case blocks > 0:
		j.answer.Verdict = v1alpha1.UpgradeBlocked
		parts = append(parts, text.Count(blocks, "finding")+" to solve before the upgrade")
	case len(notLooked) > 0:
		j.answer.Verdict = v1alpha1.UpgradeUnknown
		parts = append(parts, "nothing found that blocks, but Penstock could not check everything")
	default:
		j.answer.Verdict = v1alpha1.UpgradeNothingFound
		parts = append(parts, "nothing found that blocks")
	}
	for _, other := range []struct {
		severity v1alpha1.UpgradeSeverity
		words    string
	}{{v1alpha1.UpgradeBreaksRollback, "for rollbacks"}, {v1alpha1.UpgradeActBefore, "to act on before"}, {v1alpha1.UpgradeLook, "to look at"}} {
		if n := j.counts[other.severity]; n > 0 {
			parts = append(parts, text.Count(n, "finding")+" "+other.words)
		}
	}
	if j.acknowledged > 0 {
		parts = append(parts, text.Count(j.acknowledged, "finding")+" acknowledged")
	}
	parts = append(parts, notLooked...)
	if j.silent > 0 {
		parts = append(parts, "without a statement on "+j.target.Name+": "+text.Count(j.silent, "extension"))
	}
	if j.current != nil && j.target.Kubernetes.Minor > j.current.Minor+1 {
		parts = append(parts, fmt.Sprintf("the cluster has %s: each minor is an upgrade of its own", minor(*j.current)))
	}
	j.answer.Message = strings.Join(parts, "; ")
	j.answer.ObjectMeta = metav1.ObjectMeta{Name: j.target.Name}
	return &j.answer
}

func minor(version clusterversion.Kubernetes) string {
	return fmt.Sprintf("%d.%d", version.Major, version.Minor)
}
