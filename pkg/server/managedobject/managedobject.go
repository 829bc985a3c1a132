// Package managedobject describes the objects that this process maintains in the host: the
// registration of its API, and the identities of its jobs.
package managedobject

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FieldManager is the field manager of this process's own objects in the host.
const FieldManager = "penstock"

// Object is an object in the host that this process keeps up to date.
type Object struct {
	Resource schema.GroupVersionResource
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
	// Apply writes the object by server-side apply and returns the stored object.
	Apply func(ctx context.Context) (metav1.Object, error)
	// HasCABundle is true for objects that contain the CA bundle of Penstock's certificate.
	HasCABundle bool
}

// String returns resource.group namespace/name, for messages.
func (o Object) String() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	return o.Resource.GroupResource().String() + " " + name
}

// ApplyOptions returns the options for Object.Apply. Force takes back fields that other managers
// have changed.
func ApplyOptions() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
}
