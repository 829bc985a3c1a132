package readiness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Live holds the cluster's state of objects whose manifests do not suffice, by object. A nil map
// means that the state was not read.
type Live struct {
	Definitions map[manifest.ID]Definition
	Budgets     map[manifest.ID]Budget
	// Webhooks are the webhook configurations, each with its webhooks that refuse requests now:
	// failurePolicy is Fail, and the Service has no ready endpoint.
	Webhooks map[manifest.ID][]Unanswered
	// NotLooked lists the reasons why some state could not be read.
	NotLooked []string
}

// Definition is a CustomResourceDefinition in a cluster.
type Definition struct {
	Versions []DefinedVersion
	// Stored are the versions in which etcd may hold objects.
	Stored []string
}

// DefinedVersion is one version of a CustomResourceDefinition.
type DefinedVersion struct {
	Name                        string
	Served, Storage, Deprecated bool
}

// Budget is the status of a PodDisruptionBudget.
type Budget struct {
	// Allowed is the number of Pods that can be evicted now. Healthy counts the healthy Pods out of
	// Expected; Desired is the required number.
	Allowed, Healthy, Desired, Expected int32
}

// Unanswered is a webhook whose Service, as namespace/name, has no ready endpoint.
type Unanswered struct{ Webhook, Service string }

// StateMatters reports whether the cluster's state of an object matters besides its manifest.
func StateMatters(id manifest.ID) bool {
	return id.IsDefinition() || isBudget(id) || isWebhooks(id)
}

// Live sets the cluster's state. Call it before the extensions.
func (j *Judge) Live(live Live) { j.live = live }

// definitions compares the CustomResourceDefinitions of a revision with the versions in which the
// cluster stores objects.
func (j *Judge) definitions(one *Extension, revision *Revision, seen map[string]int) {
	for i := range revision.Objects {
		object := &revision.Objects[i]
		if now, known := j.live.Definitions[object.ID]; known && object.ID.IsDefinition() {
			if found, ok := stored(object, now, revision.Role); ok {
				j.find(about(found, one, revision, object), seen)
			}
		}
	}
}

// stored finds stored versions that a next version of the extension drops, or may drop:
// kube-apiserver refuses such a definition.
func stored(object *manifest.Object, now Definition, role Role) (v1alpha1.UpgradeFinding, bool) {
	found := v1alpha1.UpgradeFinding{Field: "status.storedVersions", Fix: fmt.Sprintf("kubectl get %s -A -o json | kubectl replace -f -", object.ID.Name)}
	const migrate = ": store them in another version, then remove it from status.storedVersions"
	if role == Proposed {
		var next apiextensionsv1.CustomResourceDefinition
		if len(object.JSON) == 0 || json.Unmarshal(object.JSON, &next) != nil {
			return found, false
		}
		lost := slices.DeleteFunc(slices.Clone(now.Stored), func(stored string) bool {
			return slices.ContainsFunc(next.Spec.Versions, func(one apiextensionsv1.CustomResourceDefinitionVersion) bool { return one.Name == stored })
		})
		found.Severity, found.Certainty = v1alpha1.UpgradeActBefore, v1alpha1.UpgradeCertain
		found.Evidence = "objects may be stored in version " + strings.Join(lost, ", ") + ", which the proposed revision drops: kube-apiserver refuses it" + migrate
		return found, len(lost) > 0
	}
	var leaving, left []string
	for _, name := range now.Stored {
		at := slices.IndexFunc(now.Versions, func(one DefinedVersion) bool { return one.Name == name })
		switch {
		case at < 0 || !now.Versions[at].Served || now.Versions[at].Deprecated:
			leaving = append(leaving, name)
		case !now.Versions[at].Storage:
			left = append(left, name)
		}
	}
	const refused = ": kube-apiserver refuses a next definition without it"
	switch {
	case len(leaving) > 0:
		found.Severity, found.Certainty = v1alpha1.UpgradeActBefore, v1alpha1.UpgradeDeclared
		found.Evidence = "objects may be stored in version " + strings.Join(leaving, ", ") + ", which is deprecated or not served" + refused + migrate
	case len(left) > 0:
		found.Severity, found.Certainty = v1alpha1.UpgradeLook, v1alpha1.UpgradeGuess
		found.Evidence = "objects may be stored in version " + strings.Join(left, ", ") + ", which is not the storage version" + refused + migrate
	}
	return found, found.Evidence != ""
}

// now judges a budget by its status. The manifest counts unless the status shows otherwise.
func (b Budget) now(found v1alpha1.UpgradeFinding, blocks bool) (v1alpha1.UpgradeFinding, bool) {
	switch {
	case b.Expected == 0:
		return found, blocks
	case b.Allowed > 0:
		return found, false
	}
	state := fmt.Sprintf("the cluster allows no eviction now: %d of %d Pods are healthy, and the budget wants %d", b.Healthy, b.Expected, b.Desired)
	switch {
	case blocks:
		found.Certainty = v1alpha1.UpgradeCertain
		found.Evidence += "; " + state
	case b.Healthy >= b.Desired && b.Healthy == b.Expected:
		found.Severity, found.Certainty, found.Field, found.Evidence = v1alpha1.UpgradeActBefore, v1alpha1.UpgradeCertain, "status.disruptionsAllowed", state
	default:
		found.Severity, found.Certainty, found.Field, found.Evidence = v1alpha1.UpgradeLook, v1alpha1.UpgradeGuess, "status.disruptionsAllowed", state
	}
	return found, true
}

// unanswered judges webhooks that refuse requests now.
func unanswered(found v1alpha1.UpgradeFinding, now []Unanswered) v1alpha1.UpgradeFinding {
	if len(now) == 0 {
		return found
	}
	found.Severity, found.Certainty = v1alpha1.UpgradeActBefore, v1alpha1.UpgradeCertain
	found.Evidence = fmt.Sprintf("webhook %s has failurePolicy Fail, and its Service %s has no ready endpoint: requests that it is for are refused now", now[0].Webhook, now[0].Service)
	return found
}
