package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// refs returns the objects of a revision, in order.
func refs(revision *olmv1alpha1.ClusterExtensionRevision) []manifest.Ref {
	var out []manifest.Ref
	for _, phase := range revision.Spec.Phases {
		for _, object := range phase.Objects {
			out = append(out, ref(object))
		}
	}
	return out
}

// ref converts an entry of a revision to a reference.
func ref(object olmv1alpha1.RevisionObject) manifest.Ref {
	// The server has validated the version.
	version, _ := schema.ParseGroupVersion(object.APIVersion)
	return manifest.Ref{
		ID:      manifest.ID{Group: version.Group, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name},
		Version: version.Version,
		Digest:  manifest.Digest(object.Digest),
	}
}

func deployments(wanted []manifest.Ref) []manifest.Ref {
	return slices.DeleteFunc(slices.Clone(wanted), func(ref manifest.Ref) bool {
		return ref.Group != "apps" || ref.Kind != "Deployment"
	})
}

// kinds formats the number of objects of each kind: "1 ClusterRole, 2 Role".
func kinds(ids []manifest.ID) string {
	count := map[string]int{}
	var order []string
	for _, id := range ids {
		if count[id.Kind] == 0 {
			order = append(order, id.Kind)
		}
		count[id.Kind]++
	}
	for i, kind := range order {
		order[i] = fmt.Sprintf("%d %s", count[kind], kind)
	}
	return strings.Join(order, ", ")
}

// short returns kind and name: "Deployment lighthouse-webhook".
func short(id manifest.ID) string { return id.Kind + " " + id.Name }

func shorts(ids []manifest.ID) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = short(id)
	}
	return names
}

// changes groups objects by the effect of one revision after another. Each list has the order of
// the revision that contains the objects.
type changes struct {
	Changed, Added, Pruned, Same []manifest.ID
}

func (c changes) written() map[manifest.ID]bool {
	out := map[manifest.ID]bool{}
	for _, id := range append(slices.Clone(c.Changed), c.Added...) {
		out[id] = true
	}
	return out
}

// compareRevisions compares identities and digests; it needs no manifests.
func compareRevisions(before, after []manifest.Ref) changes {
	digests := map[manifest.ID]manifest.Digest{}
	for _, ref := range before {
		digests[ref.ID] = ref.Digest
	}
	var c changes
	for _, ref := range after {
		switch digest, existed := digests[ref.ID]; {
		case !existed:
			c.Added = append(c.Added, ref.ID)
		case digest != ref.Digest:
			c.Changed = append(c.Changed, ref.ID)
		default:
			c.Same = append(c.Same, ref.ID)
		}
		delete(digests, ref.ID)
	}
	for _, ref := range before {
		if _, left := digests[ref.ID]; left {
			c.Pruned = append(c.Pruned, ref.ID)
		}
	}
	return c
}

// rolledOut reports whether a revision has succeeded, all its objects are available, and none
// belongs to a newer revision.
func rolledOut(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	for _, phase := range revision.Status.Phases {
		if phase.State != olmv1alpha1.PhaseStateAvailable || phase.Superseded > 0 {
			return false
		}
	}
	return len(revision.Status.Phases) == len(revision.Spec.Phases) &&
		is(revision, olmv1alpha1.ConditionSucceeded, metav1.ConditionTrue) &&
		is(revision, olmv1alpha1.ConditionAvailable, metav1.ConditionTrue) &&
		is(revision, olmv1alpha1.ConditionProgressing, metav1.ConditionFalse)
}

// archived reports whether a revision is archived and none of its objects remains to be deleted.
func archived(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived &&
		is(revision, olmv1alpha1.ConditionProgressing, metav1.ConditionFalse)
}

// is reports whether a condition of the revision's current generation has a status.
func is(revision *olmv1alpha1.ClusterExtensionRevision, condition string, status metav1.ConditionStatus) bool {
	return revision.Status.ObservedGeneration == revision.Generation &&
		meta.IsStatusConditionPresentAndEqual(revision.Status.Conditions, condition, status)
}
