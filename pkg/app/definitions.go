package app

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/capabilities"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/operatorcondition"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/target"
)

const definitionTimeout = 15 * time.Second

type definitionReader struct {
	namespace string
	secrets   kubernetes.Interface
	usual     dynamic.Interface
	// here is the default target cluster.
	here    *rest.Config
	visitor target.Visitor
	agent   string
}

func newDefinitionReader(term leadership.Term) (*definitionReader, error) {
	secrets, err := kubernetes.NewForConfig(component(term.Host, "extensions"))
	if err != nil {
		return nil, fmt.Errorf("connecting to the host for targets of ClusterExtensions: %w", err)
	}
	config := component(term.Target, "extensions")
	usual, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the target cluster for ClusterExtensions: %w", err)
	}
	return &definitionReader{namespace: term.Namespace, secrets: secrets, usual: usual, here: config, visitor: term.Visitor, agent: config.UserAgent}, nil
}

// Definition implements extension.Definitions.
func (r *definitionReader) Definition(ctx context.Context, secret, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	client, err := r.client(ctx, secret)
	if err != nil {
		return nil, err
	}
	return readDefinition(ctx, client, name)
}

// maxConditions limits the OperatorConditions of one namespace; an operator has one
// OperatorCondition.
const maxConditions = 500

// OperatorConditions implements extension.Conditions.
func (r *definitionReader) OperatorConditions(ctx context.Context, secret string, namespaces []string) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	client, err := r.client(ctx, secret)
	if err != nil {
		return nil, err
	}
	definition, err := readDefinition(ctx, client, operatorcondition.DefinitionName)
	if err != nil || definition == nil {
		return nil, err
	}
	var served []string
	for _, version := range definition.Spec.Versions {
		if version.Served {
			served = append(served, version.Name)
		}
	}
	resource, known := operatorcondition.Resource(served)
	if !known {
		return nil, fmt.Errorf("CustomResourceDefinition %s serves neither v1 nor v2", operatorcondition.DefinitionName)
	}
	var all []unstructured.Unstructured
	for _, namespace := range namespaces {
		found, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: maxConditions})
		if err != nil {
			return nil, fmt.Errorf("listing OperatorConditions in namespace %s: %w", namespace, err)
		}
		if found.GetContinue() != "" {
			return nil, fmt.Errorf("namespace %s has more than %d OperatorConditions", namespace, maxConditions)
		}
		all = append(all, found.Items...)
	}
	return all, nil
}

// client returns the client for the cluster of a Secret. Without a Secret, it returns the client
// for the default target cluster.
func (r *definitionReader) client(ctx context.Context, secret string) (dynamic.Interface, error) {
	if secret == "" {
		return r.usual, nil
	}
	config, err := r.way(ctx, secret)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the target cluster of Secret %s/%s: %w", r.namespace, secret, err)
	}
	return client, nil
}

// readDefinition returns nil for a definition that does not exist.
func readDefinition(ctx context.Context, client dynamic.Interface, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	found, err := client.Resource(objectwatch.Definitions).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, definition); err != nil {
		return nil, err
	}
	return definition, nil
}

// Capabilities implements extension.Capabilities.
func (r *definitionReader) Capabilities(ctx context.Context, secret string) (*template.Capabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	config, err := r.configFor(ctx, secret)
	if err != nil {
		return nil, err
	}
	return capabilities.Read(ctx, config)
}

// version returns the effective version of a cluster, such as v1.36.3.
func (r *definitionReader) version(ctx context.Context, secret string) (string, error) {
	config, err := r.configFor(ctx, secret)
	if err != nil {
		return "", err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("making a client for the version of the cluster: %w", err)
	}
	found, err := client.ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the version of the cluster: %w", err)
	}
	return clusterversion.Effective(found), nil
}

// configFor returns the client configuration for the cluster of a kubeconfig Secret. If secret is
// empty, it returns the configuration for the default target cluster.
func (r *definitionReader) configFor(ctx context.Context, secret string) (*rest.Config, error) {
	if secret == "" {
		return r.here, nil
	}
	return r.way(ctx, secret)
}

// way returns the configuration for the cluster of a Secret. It fails if another Penstock has
// claimed the cluster.
func (r *definitionReader) way(ctx context.Context, secret string) (*rest.Config, error) {
	found, err := r.secrets.CoreV1().Secrets(r.namespace).Get(ctx, secret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s of the target: %w", r.namespace, secret, err)
	}
	config, err := target.Config(found)
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s of the target: %w", r.namespace, secret, err)
	}
	if _, err := r.visitor.Look(ctx, config); err != nil {
		return nil, err
	}
	config.UserAgent = r.agent
	// The API server itself limits clients that send too many requests.
	config.QPS = -1
	return config, nil
}
