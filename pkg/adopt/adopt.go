// Package adopt creates extensions from Helm releases, from ClusterExtensions of OLM v1, and from
// Subscriptions of OLM v0. The newest revisions of the release become revisions of the extension.
// The objects keep their content. The package is a client: it calls the APIs of the cluster and of
// Penstock with the caller's rights.
//
// Every step can be repeated after an interruption:
//
//  1. It reads the release, and compares each object with its manifest by a dry-run.
//  2. It imports the revisions as one archive, which is written whole or not at all. Equal releases
//     give equal archives.
//  3. It annotates the Secret of the release with the name of the extension.
//
// Then the controller adopts the objects, like all existing objects.
package adopt

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/source/helm"
)

// Request names the release to adopt and the extension to create.
type Request struct {
	// Namespace and Release name the Helm release.
	Namespace, Release string
	// Extension is the name of the new extension.
	Extension string
	// Overwrite restores objects that differ from the release, and creates deleted objects again.
	// Without it, such objects prevent the adoption.
	Overwrite bool
}

func (r Request) String() string { return r.Namespace + "/" + r.Release }

// Adopter adopts releases with the rights of its caller.
type Adopter struct {
	revisions versioned.Interface
	secrets   corev1client.SecretsGetter
	maps      corev1client.ConfigMapsGetter
	target    *targetclient.Client
	// objects and deployments read the objects of OLM.
	objects     dynamic.Interface
	deployments appsv1client.DeploymentsGetter
	metadata    metadata.Interface
}

// New returns an adopter. Revisions is a client of Penstock's API. Config connects to the cluster
// that has the release.
func New(config *rest.Config, revisions versioned.Interface) (*Adopter, error) {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	target, err := targetclient.New(targetclient.Options{Config: config})
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	apps, err := appsv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	about, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Adopter{revisions: revisions, secrets: core, maps: core, target: target, objects: objects, deployments: apps, metadata: about}, nil
}

type release struct {
	helm.History
	secret corev1.Secret
	// unreadable lists older revisions that are left out, each with the reason.
	unreadable []string
	// marked are the Secrets whose annotation names the extension.
	marked []corev1.Secret
}

// read reads all revisions of a release that Helm keeps in Secrets.
func (a *Adopter) read(ctx context.Context, request Request) (release, error) {
	selector := metav1.ListOptions{LabelSelector: "owner=helm,name=" + request.Release}
	list, err := a.secrets.Secrets(request.Namespace).List(ctx, selector)
	if err != nil {
		return release{}, fmt.Errorf("reading the Helm release %s: %w", request, err)
	}
	var all []helm.Release
	var unreadable []string
	found := map[int]corev1.Secret{}
	for _, secret := range list.Items {
		if secret.Type != helm.SecretType {
			continue
		}
		one, err := helm.Decode(secret.Data[helm.DataKey])
		if err != nil && secret.Labels["status"] == helm.StatusSuperseded {
			unreadable = append(unreadable, fmt.Sprintf("Secret %s/%s of a superseded revision is left out: %s", secret.Namespace, secret.Name, err))
			continue
		}
		if err != nil {
			return release{}, fmt.Errorf("the Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		all, found[one.Version] = append(all, one), secret
	}
	if len(all) == 0 {
		return release{}, a.missing(ctx, request, selector)
	}
	out := release{unreadable: unreadable}
	if out.History, err = helm.Choose(all); err != nil {
		return release{}, fmt.Errorf("the Helm release %s: %w", request, err)
	}
	out.secret = found[out.Deployed.Version]
	for _, secret := range found {
		if secret.Annotations[supersededBy] == request.Extension {
			out.marked = append(out.marked, secret)
		}
	}
	return out, nil
}

func (a *Adopter) missing(ctx context.Context, request Request, selector metav1.ListOptions) error {
	maps, err := a.maps.ConfigMaps(request.Namespace).List(ctx, selector)
	if err == nil && len(maps.Items) > 0 {
		return fmt.Errorf("the Helm release %s is kept in ConfigMaps (HELM_DRIVER=configmap), which is not supported: "+
			"copy it into Secrets first: each of type %s, with the same name, labels and data", request, helm.SecretType)
	}
	return fmt.Errorf("there is no Helm release %s: no Secret of type %s in namespace %s has the label name=%s", request, helm.SecretType, request.Namespace, request.Release)
}

// inNamespace returns a function that asks the cluster whether a kind is namespaced.
func (a *Adopter) inNamespace(ctx context.Context) helm.InNamespace {
	return func(kind schema.GroupVersionKind) (inNamespace, known bool, err error) {
		mapping, err := a.target.Served(ctx, kind)
		switch {
		case meta.IsNoMatchError(err):
			return false, false, nil
		case err != nil:
			return false, false, fmt.Errorf("finding out whether %s is in a namespace: %w", kind.GroupKind(), err)
		}
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
	}
}
