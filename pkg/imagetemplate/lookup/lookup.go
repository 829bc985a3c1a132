// Package lookup reads the values of template variables from a cluster, with the rights of the
// given clients' user.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/imagetemplate"
)

// Missing reports that a variable has no value: the object, its kind or the field does not exist or
// cannot be read. Repeating the read does not help. Any other error may be temporary.
type Missing struct {
	// Kind is true if the cluster does not serve the kind.
	Kind bool
	// Detail is a text for users. It contains no content of an object.
	Detail string
}

// Error implements error.
func (m *Missing) Error() string { return m.Detail }

// Resource is the API resource of a kind.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
}

// Right returns the right that an author needs for a template with a field of an object: to get
// exactly this object.
func (r Resource) Right(object imagetemplate.Object) authz.Right {
	return authz.On(r.GroupVersionResource, "get", object.Namespace, object.Name)
}

// Reader finds and reads objects.
type Reader struct {
	discovery discovery.DiscoveryInterface
	objects   dynamic.Interface
}

// New returns a Reader. It sends no request.
func New(config *rest.Config) (*Reader, error) {
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for kinds of templates: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for objects of templates: %w", err)
	}
	return &Reader{discovery: kinds, objects: objects}, nil
}

// Version returns the gitVersion of the cluster.
func (r *Reader) Version(ctx context.Context) (string, error) {
	found, err := discovery.ToServerVersionInterfaceWithContext(r.discovery).ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("asking the cluster for its version: %w", err)
	}
	return found.GitVersion, nil
}

// Find returns the resource of an object. It returns an error for Secrets, which no template may
// read.
func (r *Reader) Find(ctx context.Context, object imagetemplate.Object) (Resource, error) {
	if object.Group == corev1.GroupName && object.Kind == "Secret" {
		return Resource{}, &Missing{Detail: "templates never read Secrets"}
	}
	if object.Name == "" {
		return Resource{}, &Missing{Detail: "the variable names no object"}
	}
	version := schema.GroupVersion{Group: object.Group, Version: object.Version}
	served, err := discovery.ToServerResourcesInterfaceWithContext(r.discovery).ServerResourcesForGroupVersionWithContext(ctx, version.String())
	if apierrors.IsNotFound(err) {
		return Resource{}, &Missing{Kind: true, Detail: fmt.Sprintf("the cluster does not serve %s", version)}
	}
	if err != nil {
		return Resource{}, fmt.Errorf("asking the cluster for the kinds of %s: %w", version, err)
	}
	for _, one := range served.APIResources {
		if one.Kind != object.Kind || strings.Contains(one.Name, "/") || one.Group != "" && one.Group != object.Group || one.Version != "" && one.Version != object.Version {
			continue
		}
		switch {
		case one.Namespaced && object.Namespace == "":
			return Resource{}, &Missing{Detail: fmt.Sprintf("kind %s is namespaced, and the variable names no namespace", object.Kind)}
		case !one.Namespaced && object.Namespace != "":
			return Resource{}, &Missing{Detail: fmt.Sprintf("kind %s is not namespaced, and the variable names a namespace", object.Kind)}
		}
		for _, verb := range []string{"get", "list", "watch"} {
			if !slices.Contains(one.Verbs, verb) {
				return Resource{}, &Missing{Detail: fmt.Sprintf("kind %s has no verb %s, which templates need", object.Kind, verb)}
			}
		}
		return Resource{version.WithResource(one.Name), one.Namespaced}, nil
	}
	return Resource{}, &Missing{Kind: true, Detail: fmt.Sprintf("the cluster has no kind %s in %s", object.Kind, version)}
}

// Read reads the field of an object.
func (r *Reader) Read(ctx context.Context, resource Resource, field imagetemplate.Field) (string, error) {
	found, err := r.objects.Resource(resource.GroupVersionResource).Namespace(field.Namespace).Get(ctx, field.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", &Missing{Detail: fmt.Sprintf("there is no %s", field.Object)}
	case apierrors.IsForbidden(err):
		return "", &Missing{Detail: fmt.Sprintf("there is no right to %s", resource.Right(field.Object))}
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", field.Object, err)
	}
	value, err := imagetemplate.Evaluate(field.Path, found.Object)
	switch {
	case err != nil:
		return "", &Missing{Detail: err.Error()}
	case !imagetemplate.Fits(value):
		return "", &Missing{Detail: "the value of the field cannot be part of a reference: it must be 1 to 128 letters, digits, dots, hyphens and underscores"}
	}
	return value, nil
}

// Value returns the value of a variable.
func (r *Reader) Value(ctx context.Context, variable imagetemplate.Variable) (string, error) {
	if variable.Field == nil {
		git, err := r.Version(ctx)
		if err != nil {
			return "", err
		}
		values, err := imagetemplate.KubeVersion(git)
		return values[variable.Kube], err
	}
	resource, err := r.Find(ctx, variable.Field.Object)
	if err != nil {
		return "", err
	}
	return r.Read(ctx, resource, *variable.Field)
}

// IsMissing reports whether an error is a Missing, and returns it.
func IsMissing(err error) (*Missing, bool) {
	var missing *Missing
	return missing, errors.As(err, &missing)
}
