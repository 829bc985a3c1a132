package app

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// valueReader reads Secrets and ConfigMaps of the host with the engine's identity. If the default
// target is another cluster, it uses the identity of this process.
type valueReader struct {
	core     kubernetes.Interface
	metadata metadata.Interface
}

func newValueReader(config *rest.Config) (r valueReader, err error) {
	if r.core, err = kubernetes.NewForConfig(config); err == nil {
		r.metadata, err = metadata.NewForConfig(config)
	}
	if err != nil {
		return r, fmt.Errorf("connecting to the host for values of ClusterExtensions: %w", err)
	}
	return r, nil
}

// Data implements extension.ValueObjects.
func (r valueReader) Data(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string][]byte, string, error) {
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	if resource.Resource == "secrets" {
		secret, err := r.core.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, "", nil
		}
		if err != nil {
			return nil, "", err
		}
		return secret.Data, secret.ResourceVersion, nil
	}
	found, err := r.core.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	data := map[string][]byte{}
	for key, value := range found.Data {
		data[key] = []byte(value)
	}
	return data, found.ResourceVersion, nil
}

// Follow implements extension.ValueObjects.
func (r valueReader) Follow(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, changed func(version string)) {
	var watch *objectwatch.Watch[*metav1.PartialObjectMetadata]
	watch = objectwatch.New(r.metadata, r.metadata.Resource(resource).Namespace(namespace), &metav1.PartialObjectMetadata{}, objectwatch.Options{
		Name: name,
		Changed: func() {
			switch found, err := watch.Get(); {
			case err != nil:
			case found == nil:
				changed("")
			default:
				changed(found.ResourceVersion)
			}
		},
	})
	watch.Run(ctx)
}
