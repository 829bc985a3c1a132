package extension

import (
	"context"
	"slices"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

func (c *Controller) watchLeases(ctx context.Context) {
	var mu sync.Mutex
	before, elsewhere := otherUnknown, ""
	watching := objectwatch.New(c.Leases, c.Leases.CoordinationV1().Leases(metav1.NamespaceAll), &coordinationv1.Lease{},
		objectwatch.Options{Name: extension.OperatorControllerLease, Changed: func() {
			mu.Lock()
			defer mu.Unlock()
			if misplacedLease := c.misplacedLease(); misplacedLease != elsewhere {
				if elsewhere = misplacedLease; misplacedLease != "" {
					klog.FromContext(ctx).Info("A lease has the name of the lease of OLM's operator-controller, but is in an unexpected namespace: Penstock ignores it. If operator-controller is installed there, name the namespace in --operator-controller-namespaces",
						"lease", misplacedLease)
				}
			}
			now := c.other()
			if now == before {
				return
			}
			before = now
			if now == otherThere {
				klog.FromContext(ctx).Info("ClusterExtensions are left alone: OLM's operator-controller has a lease in this cluster. Remove operator-controller and its lease to have Penstock take over",
					"lease", extension.OperatorControllerLease)
			}
			for _, object := range c.all() {
				c.queue.Add(object.GetName())
			}
		}})
	c.mu.Lock()
	c.leases = watching
	c.mu.Unlock()
	watching.Run(ctx)
}

// reportLeftAlone records one event that operator-controller manages an extension. Penstock must
// not write the status of such an extension.
func (c *Controller) reportLeftAlone(object *unstructured.Unstructured) {
	c.mu.Lock()
	told := c.leftAlone[object.GetName()] == object.GetUID()
	c.leftAlone[object.GetName()] = object.GetUID()
	c.mu.Unlock()
	if !told {
		c.Events.Event(object, corev1.EventTypeNormal, eventLeftAlone, "OLM's operator-controller has its lease ("+extension.OperatorControllerLease+
			") in this cluster: Penstock leaves ClusterExtensions alone until operator-controller and its lease are removed")
	}
}

// forgetLeftAlone lets the controller report again when it next leaves the extension alone.
func (c *Controller) forgetLeftAlone(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leftAlone, name)
}

const eventLeftAlone = "LeftAlone"

type other int

const (
	otherUnknown other = iota
	otherThere
	otherAbsent
)

// other reports whether operator-controller is running. During a restart it gives up its lease for
// a while. So a lease without a holder does not prove that it was removed. Leases in namespaces
// without operator-controller are ignored: any user with the right to create one could stop
// Penstock.
func (c *Controller) other() other {
	found, err := c.knownLeases()
	if err != nil {
		return otherUnknown
	}
	for _, lease := range found {
		if slices.Contains(c.OperatorControllerNamespaces, lease.Namespace) {
			return otherThere
		}
	}
	return otherAbsent
}

// misplacedLease returns an ignored lease with the same name, as namespace/name, or "".
func (c *Controller) misplacedLease() string {
	found, _ := c.knownLeases()
	for _, lease := range found {
		if !slices.Contains(c.OperatorControllerNamespaces, lease.Namespace) {
			return lease.Namespace + "/" + lease.Name
		}
	}
	return ""
}

// knownLeases returns the leases with the name, from all namespaces.
func (c *Controller) knownLeases() ([]*coordinationv1.Lease, error) {
	c.mu.Lock()
	leases := c.leases
	c.mu.Unlock()
	if leases == nil {
		return nil, objectwatch.ErrUnknown
	}
	return leases.List()
}
