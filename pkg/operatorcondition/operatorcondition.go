// Package operatorcondition reads OperatorConditions (operators.coreos.com), in which an operator
// reports whether it can be upgraded now. The package decides which OperatorConditions count for an
// extension, and their result. It uses no client.
package operatorcondition

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// Group is the API group of OperatorConditions.
	Group = "operators.coreos.com"
	// Kind is the kind of OperatorConditions.
	Kind = "OperatorCondition"
	// DefinitionName is the name of their CustomResourceDefinition.
	DefinitionName = "operatorconditions." + Group
	// Upgradeable is the type of the condition that holds upgrades.
	Upgradeable = "Upgradeable"
	// OverrideLasts is the validity of an override with status True, from its lastTransitionTime.
	OverrideLasts = 7 * 24 * time.Hour
)

// longestMessage limits the operator's text in a message, in bytes.
const longestMessage = 256

// Resource returns the resource in the newest served version that Penstock supports. It returns
// false if there is none.
func Resource(served []string) (schema.GroupVersionResource, bool) {
	for _, version := range []string{"v2", "v1"} {
		if slices.Contains(served, version) {
			return schema.GroupVersionResource{Group: Group, Version: version, Resource: "operatorconditions"}, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// Installed holds the uids of the extension's objects in a cluster, by identity.
type Installed map[manifest.ID]types.UID

// Namespaces returns the namespaces of the objects, sorted.
func (i Installed) Namespaces() []string {
	var all []string
	for id := range i {
		if id.Namespace != "" {
			all = append(all, id.Namespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Owns reports whether an OperatorCondition belongs to the extension. The extension installed it,
// or installed its owner in the same namespace, whose operator created it. The name must match
// together with the uid, since another user can choose a name. Cluster-scoped owners do not count,
// because an object in any namespace can name them.
func (i Installed) Owns(object *unstructured.Unstructured) bool {
	is := func(id manifest.ID, uid types.UID) bool { return uid != "" && i[id] == uid }
	if is(manifest.ID{Group: Group, Kind: Kind, Namespace: object.GetNamespace(), Name: object.GetName()}, object.GetUID()) {
		return true
	}
	for _, owner := range object.GetOwnerReferences() {
		group, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && object.GetNamespace() != "" && is(manifest.ID{Group: group.Group, Kind: owner.Kind, Namespace: object.GetNamespace(), Name: owner.Name}, owner.UID) {
			return true
		}
	}
	return false
}

// content holds the fields of an OperatorCondition that Penstock reads, in both versions.
type content struct {
	Spec struct {
		// Conditions are written by the operator, in v2.
		Conditions []metav1.Condition `json:"conditions"`
		// Overrides are written by an administrator.
		Overrides []metav1.Condition `json:"overrides"`
	} `json:"spec"`
	Status struct {
		// Conditions are written by the operator in v1. In v2 they are a copy of spec.conditions.
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Holds returns the reason why an OperatorCondition holds upgrades, or "":
//
//  1. An override takes precedence, as in OLM. An override with status True expires after
//     OverrideLasts.
//  2. The operator's condition in spec (v2) is next, then that in status. A condition in status for
//     another generation is outdated.
//  3. Only True allows upgrades. An OperatorCondition without the condition holds nothing.
func Holds(object *unstructured.Unstructured, now time.Time) string {
	named := fmt.Sprintf("OperatorCondition %s/%s", object.GetNamespace(), object.GetName())
	var read content
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return fmt.Sprintf("%s cannot be read: %s", named, text.Clip(err.Error(), longestMessage))
	}
	lapsed := ""
	if override := meta.FindStatusCondition(read.Spec.Overrides, Upgradeable); override != nil {
		if override.Status != metav1.ConditionTrue {
			return fmt.Sprintf("%s has an override: %s", named, said(*override))
		}
		since := override.LastTransitionTime.Time
		if !since.IsZero() && !since.After(now) && now.Before(since.Add(OverrideLasts)) {
			return ""
		}
		lapsed = "; its override does not count: it has no lastTransitionTime, which it needs"
		if !since.IsZero() {
			lapsed = fmt.Sprintf("; its override counts from %s to %s", since.UTC().Format(time.RFC3339), since.Add(OverrideLasts).UTC().Format(time.RFC3339))
		}
	}
	found := meta.FindStatusCondition(read.Spec.Conditions, Upgradeable)
	if found == nil {
		found = meta.FindStatusCondition(read.Status.Conditions, Upgradeable)
		if found != nil && found.ObservedGeneration < object.GetGeneration() {
			return fmt.Sprintf("%s: %s is of generation %d, and the object has generation %d%s", named, said(*found), found.ObservedGeneration, object.GetGeneration(), lapsed)
		}
	}
	if found == nil || found.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("%s: %s%s", named, said(*found), lapsed)
}

// said formats a condition: Upgradeable=False (Migrating): 3 of 5 shards are moved.
func said(condition metav1.Condition) string {
	words := fmt.Sprintf("%s=%s", Upgradeable, condition.Status)
	if condition.Reason != "" {
		words += " (" + text.Clip(condition.Reason, longestMessage) + ")"
	}
	if condition.Message != "" {
		words += ": " + text.Line(condition.Message, longestMessage)
	}
	return words
}
