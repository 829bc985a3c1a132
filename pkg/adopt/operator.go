package adopt

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/text"
)

// Names of OLM's Deployments, which can be in any namespace.
const (
	operatorController = "operator-controller-controller-manager" // OLM v1
	olmOperator        = "olm-operator"                           // OLM v0
	catalogOperator    = "catalog-operator"                       // OLM v0
)

// stopped returns an error with the remedy while a Deployment of this name has a Pod in any
// namespace. Otherwise OLM and Penstock would both roll out the same objects.
func (a *Adopter) stopped(ctx context.Context, name string) error {
	list, err := a.deployments.Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
	})
	if err != nil {
		return fmt.Errorf("finding out whether Deployments %s are scaled to zero: %w", name, err)
	}
	for i := range list.Items {
		one := &list.Items[i]
		switch wanted := ptr.Deref(one.Spec.Replicas, 1); {
		case wanted > 0:
			return fmt.Errorf("the Deployment %[1]s/%[2]s runs (%[3]s): it and Penstock would roll out the same objects. Scale it to zero first: kubectl scale -n %[1]s deployment/%[2]s --replicas=0",
				one.Namespace, one.Name, text.Count(int(wanted), "replica"))
		case one.Status.Replicas > 0:
			return fmt.Errorf("the Deployment %s/%s still has %s, and is being scaled to zero: wait until they are deleted: kubectl rollout status -n %s deployment/%s",
				one.Namespace, one.Name, text.Count(int(one.Status.Replicas), "Pod"), one.Namespace, one.Name)
		}
	}
	return nil
}
