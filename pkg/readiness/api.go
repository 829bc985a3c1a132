package readiness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// apis judges the apiVersions of the objects of a revision.
func (j *Judge) apis(one *Extension, revision *Revision, seen map[string]int) {
	for i := range revision.Objects {
		object := &revision.Objects[i]
		kind := object.GroupVersionKind()
		if found, ok := j.api(kind, revision.Role); ok {
			j.find(about(found, one, revision, object), seen)
		}
	}
}

// about says which object a finding is about.
func about(found olm.UpgradeFinding, one *Extension, revision *Revision, object *manifest.Object) olm.UpgradeFinding {
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

// fixOf is the command that shows the way out.
func fixOf(severity olm.UpgradeSeverity, one *Extension, revision *Revision) string {
	switch {
	case severity == olm.UpgradeBreaksRollback:
		return "kubectl penstock history " + one.Name
	case one.Statement.Package != "":
		return "kubectl penstock upgrades " + one.Name
	}
	return "kubectl get cer " + revision.Name + " --subresource=manifests -o yaml"
}

// api judges one apiVersion and kind.
func (j *Judge) api(kind schema.GroupVersionKind, role Role) (olm.UpgradeFinding, bool) {
	life, known := j.table.Find(kind)
	alpha := j.table.IsAlpha(kind)
	target := j.target.Kubernetes
	switch {
	case known && reached(life.Removed, target):
		return j.removed(kind, life, role), true
	case role == Earlier:
		return olm.UpgradeFinding{}, false
	case known && reached(life.Deprecated, target):
		found := olm.UpgradeFinding{
			Severity: olm.UpgradeLook, Certainty: j.certainty(kind, life.Deprecated), Replacement: name(life.Replacement),
			Evidence: fmt.Sprintf("Kubernetes deprecates %s %s since %s", kind.GroupVersion(), kind.Kind, minor(life.Deprecated)),
		}
		if life.Removed != (clusterversion.Kubernetes{}) {
			found.RemovedIn = minor(life.Removed)
			found.Evidence += ", and removes it in " + found.RemovedIn
		}
		return found, true
	case alpha:
		return olm.UpgradeFinding{
			Severity: olm.UpgradeLook, Certainty: olm.UpgradeGuess, Replacement: name(life.Replacement),
			Evidence: fmt.Sprintf("%s is an alpha version: Kubernetes may drop it in any minor", kind.GroupVersion()),
		}, true
	}
	return olm.UpgradeFinding{}, false
}

func (j *Judge) removed(kind schema.GroupVersionKind, life lifecycle.API, role Role) olm.UpgradeFinding {
	found := olm.UpgradeFinding{
		Severity: olm.UpgradeBlocks, Certainty: j.certainty(kind, life.Removed),
		RemovedIn: minor(life.Removed), Replacement: name(life.Replacement),
		Evidence: fmt.Sprintf("Kubernetes %s and later do not serve %s %s", minor(life.Removed), kind.GroupVersion(), kind.Kind),
	}
	switch role {
	case Earlier:
		found.Severity = olm.UpgradeBreaksRollback
		found.Evidence += ": a rollback to this revision fails"
	case Proposed:
		found.Severity = olm.UpgradeActBefore
		found.Evidence += ": it waits for an approval, and cannot be rolled out then"
	case RolledOut:
	}
	switch {
	case found.Certainty == olm.UpgradeGuess:
		found.Severity = olm.UpgradeLook
	case role == Earlier && j.current != nil && reached(life.Removed, *j.current):
		found.Severity = olm.UpgradeLook
		found.Evidence += ", already now"
	}
	return found
}

// certainty is how sure a statement of the table is about what happens in a version.
func (j *Judge) certainty(kind schema.GroupVersionKind, in clusterversion.Kubernetes) olm.UpgradeCertainty {
	switch {
	case j.table.IsAlpha(kind):
		return olm.UpgradeGuess
	case j.table.Version().Less(in):
		return olm.UpgradeDeclared
	}
	return olm.UpgradeCertain
}

// reached is whether a version is stated, and not above another one.
func reached(stated, target clusterversion.Kubernetes) bool {
	return stated != (clusterversion.Kubernetes{}) && !target.Less(stated)
}

func name(kind schema.GroupVersionKind) string {
	if kind.Empty() {
		return ""
	}
	return kind.GroupVersion().String() + " " + kind.Kind
}
