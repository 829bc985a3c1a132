package follow

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
)

// Revisions follows the revisions that match options.
func Revisions(client versioned.Interface, options metav1.ListOptions) Source[*olmv1alpha1.ClusterExtensionRevision] {
	return resource(client.OlmV1alpha1().ClusterExtensionRevisions(), options,
		func(list *olmv1alpha1.ClusterExtensionRevisionList) []*olmv1alpha1.ClusterExtensionRevision {
			return Pointers(list.Items)
		})
}

// Rollouts follows the rollouts to many clusters that match options.
func Rollouts(client versioned.Interface, options metav1.ListOptions) Source[*olmv1alpha1.ClusterExtensionRollout] {
	return resource(client.OlmV1alpha1().ClusterExtensionRollouts(), options,
		func(list *olmv1alpha1.ClusterExtensionRolloutList) []*olmv1alpha1.ClusterExtensionRollout {
			return Pointers(list.Items)
		})
}

// Plans follows the plans that match options.
func Plans(client versioned.Interface, options metav1.ListOptions) Source[*hcov1alpha1.ConfigurationPlan] {
	return resource(client.HcoV1alpha1().ConfigurationPlans(), options,
		func(list *hcov1alpha1.ConfigurationPlanList) []*hcov1alpha1.ConfigurationPlan {
			return Pointers(list.Items)
		})
}

// Pointers returns pointers to the elements of a slice.
func Pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// generated is the interface of a generated client for a resource.
type generated[L metav1.ListInterface] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func resource[L metav1.ListInterface, T metav1.Object](client generated[L], options metav1.ListOptions, items func(L) []T) Source[T] {
	return Source[T]{
		Options: options,
		List: func(ctx context.Context, options metav1.ListOptions) ([]T, string, error) {
			list, err := client.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return items(list), list.GetResourceVersion(), nil
		},
		Watch: client.Watch,
	}
}
