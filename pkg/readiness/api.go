package readiness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/manifest"
)

func (j *Judge) apis(one *Extension, revision *Revision, seen map[string]int) {
	for i := range revision.Objects {
		object := &revision.Objects[i]
		kind := object.GroupVersionKind()
		if found, ok := j.api(kind, revision.Role); ok {
			j.find(about(found, one, revision, object), seen)
		}
	}
}

func about(found v1alpha1.UpgradeFinding, one *Extension, revision *Revision, object *manifest.Object) v1alpha1.UpgradeFinding {
	found.Extension, found.Revision = one.Name, revision.Name
	found.APIVersion, found.Kind, found.Namespace, found.Name = object.APIVersion(), object.Kind, object.Namespace, object.ID.Name
	if found.Field == "" {
		found.Field = "apiVersion"
	}
	if found.Fix == "" {
		found.Fix = fixOf(found.Severity, one, revision)
	}
	return found
}

func fixOf(severity v1alpha1.UpgradeSeverity, one *Extension, revision *Revision) string {
	switch {
	case severity == v1alpha1.UpgradeBreaksRollback:
		return "kubectl penstock history " + one.Name
	case one.Statement.Package != "":
		return "kubectl penstock upgrades " + one.Name
	}
	return "kubectl get cer " + revision.Name + " --subresource=manifests -o yaml"
}

func (j *Judge) api(kind schema.GroupVersionKind, role Role) (v1alpha1.UpgradeFinding, bool) {
	life, known := j.table.Find(kind)
	alpha := j.table.IsAlpha(kind)
	target := j.target.Kubernetes
	switch {
	case known && reached(life.Removed, target):
		return j.removed(kind, life, role), true
	case role == Earlier:
		return v1alpha1.UpgradeFinding{}, false
	case known && reached(life.Deprecated, target):
		found := v1alpha1.UpgradeFinding{
			Severity: v1alpha1.UpgradeLook, Certainty: j.certainty(kind, life.Deprecated), Replacement: name(life.Replacement),
			Evidence: fmt.Sprintf("Kubernetes deprecates %s %s since %s", kind.GroupVersion(), kind.Kind, minor(life.Deprecated)),
		}
		if life.Removed != (clusterversion.Kubernetes{}) {
			found.RemovedIn = minor(life.Removed)
			found.Evidence += ", and removes it in " + found.RemovedIn
		}
		return found, true
	case alpha:
		return v1alpha1.UpgradeFinding{
			Severity: v1alpha1.UpgradeLook, Certainty: v1alpha1.UpgradeGuess, Replacement: name(life.Replacement),
			Evidence: fmt.Sprintf("%s is an alpha version: Kubernetes may drop it in any minor", kind.GroupVersion()),
		}, true
	}
	return v1alpha1.UpgradeFinding{}, false
}

func (j *Judge) removed(kind schema.GroupVersionKind, life lifecycle.API, role Role) v1alpha1.UpgradeFinding {
	found := v1alpha1.UpgradeFinding{
		Severity: v1alpha1.UpgradeBlocks, Certainty: j.certainty(kind, life.Removed),
		RemovedIn: minor(life.Removed), Replacement: name(life.Replacement),
		Evidence: fmt.Sprintf("Kubernetes %s and later do not serve %s %s", minor(life.Removed), kind.GroupVersion(), kind.Kind),
	}
	switch role {
	case Earlier:
		found.Severity = v1alpha1.UpgradeBreaksRollback
		found.Evidence += ": a rollback to this revision fails"
	case Proposed:
		found.Severity = v1alpha1.UpgradeActBefore
		found.Evidence += ": it waits for an approval, and cannot be rolled out then"
	case RolledOut:
	}
	switch {
	case found.Certainty == v1alpha1.UpgradeGuess:
		found.Severity = v1alpha1.UpgradeLook
	case role == Earlier && j.current != nil && reached(life.Removed, *j.current):
		found.Severity = v1alpha1.UpgradeLook
		found.Evidence += ", already now"
	}
	return found
}

// certainty returns how certain the table is about a kind in a version of Kubernetes.
func (j *Judge) certainty(kind schema.GroupVersionKind, in clusterversion.Kubernetes) v1alpha1.UpgradeCertainty {
	switch {
	case j.table.IsAlpha(kind):
		return v1alpha1.UpgradeGuess
	case j.table.Version().Less(in):
		return v1alpha1.UpgradeDeclared
	}
	return v1alpha1.UpgradeCertain
}

// reached reports whether a version is stated and at most the target.
func reached(stated, target clusterversion.Kubernetes) bool {
	return stated != (clusterversion.Kubernetes{}) && !target.Less(stated)
}

func name(kind schema.GroupVersionKind) string {
	if kind.Empty() {
		return ""
	}
	return kind.GroupVersion().String() + " " + kind.Kind
}
