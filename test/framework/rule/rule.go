// Package rule checks whether an idle cluster matches its revisions. The newest revision of each
// extension that is not archived must be complete, and no other object may have the extension's
// label. Tests with faults end with this check.
package rule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	typed "github.com/penstock-project/penstock/pkg/generated/clientset/versioned/typed/olm/v1alpha1"
)

// Cluster has the clients of the checked cluster.
type Cluster struct {
	Revisions typed.ClusterExtensionRevisionInterface
	Objects   dynamic.Interface
	// Resources are the resources of all objects in revisions. A resource that the cluster does not
	// serve has no objects.
	Resources []schema.GroupVersionResource
}

// Wrong describes all violations of the rule.
func (c Cluster) Wrong(ctx context.Context) []string {
	list, err := c.Revisions.List(ctx, metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	newest, wrong := newestOf(list.Items)
	want := map[string]string{}
	for chain, revision := range newest {
		wrong = append(wrong, unfinished(revision)...)
		for _, phase := range revision.Spec.Phases {
			for _, o := range phase.Objects {
				want[Key(plural(o.Kind), o.Namespace, o.Name)] = chain + " " + o.Digest
			}
		}
	}
	got, err := c.labelled(ctx)
	if err != nil {
		return append(wrong, err.Error())
	}
	for _, object := range slices.Sorted(maps.Keys(want)) {
		if got[object] != want[object] {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want %q", object, got[object], want[object]))
		}
	}
	for _, object := range slices.Sorted(maps.Keys(got)) {
		if want[object] == "" {
			wrong = append(wrong, fmt.Sprintf("%s (%s) is there and nobody wants it", object, got[object]))
		}
	}
	return wrong
}

// newestOf returns the newest revision of each chain that is not archived. It also describes
// violations in the revisions.
func newestOf(revisions []olmv1alpha1.ClusterExtensionRevision) (map[string]olmv1alpha1.ClusterExtensionRevision, []string) {
	newest := map[string]olmv1alpha1.ClusterExtensionRevision{}
	var wrong []string
	for _, revision := range revisions {
		if revision.DeletionTimestamp != nil {
			wrong = append(wrong, revision.Name+" is being deleted")
		}
		if revision.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived {
			continue
		}
		chain := revision.Labels[olmv1alpha1.ChainLabel]
		if before, more := newest[chain]; more {
			wrong = append(wrong, fmt.Sprintf("%s and %s are both active", before.Name, revision.Name))
		}
		newest[chain] = revision
	}
	return newest, wrong
}

// unfinished describes the conditions that a finished revision must have and this revision lacks.
func unfinished(revision olmv1alpha1.ClusterExtensionRevision) []string {
	var wrong []string
	for _, kind := range []string{olmv1alpha1.ConditionSucceeded, olmv1alpha1.ConditionAvailable} {
		if c := meta.FindStatusCondition(revision.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue {
			wrong = append(wrong, fmt.Sprintf("%s is not %s: %+v", revision.Name, kind, c))
		}
	}
	return wrong
}

// labelled returns all objects that have a chain's label, each with its chain and digest.
func (c Cluster) labelled(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for _, kind := range c.Resources {
		list, err := c.Objects.Resource(kind).List(ctx, metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel})
		if apierrors.IsNotFound(err) {
			continue // the resource is not served
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		for _, o := range list.Items {
			found[Key(kind.Resource, o.GetNamespace(), o.GetName())] = o.GetLabels()[olmv1alpha1.ChainLabel] + " " + o.GetAnnotations()[olmv1alpha1.AppliedAnnotation]
		}
	}
	return found, nil
}

// Key names an object: "configmaps soak-1/x".
func Key(resource, namespace, name string) string { return resource + " " + namespace + "/" + name }

// plural returns the resource of a kind, for the kinds that tests use.
func plural(kind string) string { return strings.ToLower(kind) + "s" }
