//go:build integration

package server_test

import (
	"context"
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
)

// breed describes a type whose API behaviour is compared.
type breed struct {
	kind, singular string
	resource       schema.GroupVersionResource
	// namespace is the namespace of the objects. It is empty for a cluster-scoped type.
	namespace string
	// finalizer blocks the deletion of each object until it is removed. So the state of an object
	// during its deletion can be observed.
	finalizer string
	// spec returns the spec of an object with a value of the knob.
	spec func(knob int) map[string]any
	// knob is the path of a spec field that changes. setting returns its n-th value.
	knob    []string
	setting func(knob int) any
	// status is the path of a status field. outcome returns its n-th value.
	status  []string
	outcome func(n int) any
	// keepsStatus is set for a type whose status only the server can write. Then the server writes
	// it for the test.
	keepsStatus bool
	// typed is a list and watch with the typed client.
	typed source
	// object and list return values of the typed client's types. add registers them.
	object func() client.Object
	list   func() client.ObjectList
	add    func(*runtime.Scheme) error
}

// source returns a list and watch of a scenario's objects, with their type.
type source func(config *rest.Config, scenario string) (cache.ListerWatcher, runtime.Object, error)

// ours returns Penstock's compared types.
func ours() []breed {
	return []breed{revisionBreed(), planBreed()}
}

// ingress is the host's type that is most similar to ours and that no controller changes. It has
// spec, status, generation and immediate deletion.
func ingress() breed {
	return breed{
		kind: "Ingress", singular: "ingress", namespace: "default", finalizer: "example.com/held",
		resource: networkingv1.SchemeGroupVersion.WithResource("ingresses"),
		spec: func(knob int) map[string]any {
			return map[string]any{
				"ingressClassName": ingressClassName(knob),
				"defaultBackend":   map[string]any{"service": map[string]any{"name": "web", "port": map[string]any{"number": int64(80)}}},
			}
		},
		knob: []string{"spec", "ingressClassName"}, setting: ingressClassName,
		status: []string{"status", "loadBalancer"},
		outcome: func(n int) any {
			return map[string]any{"ingress": []any{map[string]any{"ip": fmt.Sprintf("192.0.2.%d", n)}}}
		},
		typed: func(config *rest.Config, scenario string) (cache.ListerWatcher, runtime.Object, error) {
			clients, err := kubernetes.NewForConfig(config)
			if err != nil {
				return nil, nil, err
			}
			api := clients.NetworkingV1().Ingresses("default")
			return listWatch(scenario, api.List, api.Watch), &networkingv1.Ingress{}, nil
		},
		object: func() client.Object { return &networkingv1.Ingress{} },
		list:   func() client.ObjectList { return &networkingv1.IngressList{} },
		add:    networkingv1.AddToScheme,
	}
}

func ingressClassName(knob int) any { return fmt.Sprintf("class-%d", knob) }

// ingressClass is cluster-scoped and has no status.
func ingressClass() breed {
	parameters := func(knob int) any {
		return map[string]any{"apiGroup": "example.com", "kind": "Parameters", "name": fmt.Sprintf("set-%d", knob)}
	}
	return breed{
		kind: "IngressClass", singular: "ingressclass", finalizer: "example.com/held",
		resource: networkingv1.SchemeGroupVersion.WithResource("ingressclasses"),
		spec: func(knob int) map[string]any {
			return map[string]any{"controller": "example.com/none", "parameters": parameters(knob)}
		},
		knob: []string{"spec", "parameters"}, setting: parameters,
		object: func() client.Object { return &networkingv1.IngressClass{} },
		list:   func() client.ObjectList { return &networkingv1.IngressClassList{} },
		add:    networkingv1.AddToScheme,
	}
}

// revisionBreed has manifests, to test their handling too.
func revisionBreed() breed {
	return breed{
		kind: "ClusterExtensionRevision", singular: "clusterextensionrevision", finalizer: v1alpha1.TeardownFinalizer,
		resource: revisionsResource(),
		spec: func(knob int) map[string]any {
			return map[string]any{
				"revision": int64(1), "progressDeadlineMinutes": int64(knob),
				"phases": []any{map[string]any{"name": "deploy", "objects": []any{map[string]any{"object": map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "default"},
					"data": map[string]any{"colour": "red"},
				}}}}},
			}
		},
		knob: []string{"spec", "progressDeadlineMinutes"}, setting: func(knob int) any { return int64(knob) },
		status: []string{"status", "conditions"}, outcome: conditions, keepsStatus: true,
		typed: func(config *rest.Config, scenario string) (cache.ListerWatcher, runtime.Object, error) {
			clients, err := versioned.NewForConfig(config)
			if err != nil {
				return nil, nil, err
			}
			api := clients.OlmV1alpha1().ClusterExtensionRevisions()
			return listWatch(scenario, api.List, api.Watch), &v1alpha1.ClusterExtensionRevision{}, nil
		},
		object: func() client.Object { return &v1alpha1.ClusterExtensionRevision{} },
		list:   func() client.ObjectList { return &v1alpha1.ClusterExtensionRevisionList{} },
		add:    v1alpha1.AddToScheme,
	}
}

// planBreed has plans that no controller handles, so any number of plans can have the same profile.
func planBreed() breed {
	waitTimeout := func(knob int) any { return fmt.Sprintf("%dm0s", knob) }
	return breed{
		kind: "ConfigurationPlan", singular: "configurationplan", finalizer: "example.com/held",
		resource: hcov1alpha1.SchemeGroupVersion.WithResource("configurationplans"),
		spec: func(knob int) map[string]any {
			return map[string]any{"profile": "LoadAwareRebalancing", "action": "Ignore", "waitTimeout": waitTimeout(knob)}
		},
		knob: []string{"spec", "waitTimeout"}, setting: waitTimeout,
		status: []string{"status", "conditions"}, outcome: conditions, keepsStatus: true,
		typed: func(config *rest.Config, scenario string) (cache.ListerWatcher, runtime.Object, error) {
			clients, err := versioned.NewForConfig(config)
			if err != nil {
				return nil, nil, err
			}
			api := clients.HcoV1alpha1().ConfigurationPlans()
			return listWatch(scenario, api.List, api.Watch), &hcov1alpha1.ConfigurationPlan{}, nil
		},
		object: func() client.Object { return &hcov1alpha1.ConfigurationPlan{} },
		list:   func() client.ObjectList { return &hcov1alpha1.ConfigurationPlanList{} },
		add:    hcov1alpha1.AddToScheme,
	}
}

// keptStatus is a deviation where a client writes status.
func keptStatus(what string) deviation {
	return deviation{
		what: what, host: "…", ours: "…nobody but Penstock writes it…",
		why: "users who could write status could approve a plan, or have objects deleted",
	}
}

// conditions returns a list of one condition.
func conditions(n int) any {
	return []any{map[string]any{
		"type": "Ready", "status": "Unknown", "reason": fmt.Sprintf("Number%d", n), "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}
}

// listWatch lists and watches the objects of a scenario with a typed client.
func listWatch[L runtime.Object](
	scenario string,
	list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) cache.ListerWatcher {
	selector := "scenario=" + scenario
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return follow(ctx, options)
		},
	}
}

// draft returns a new object.
func (b breed) draft(name string) map[string]any {
	metadata := map[string]any{"name": name, "finalizers": []any{b.finalizer}}
	if b.namespace != "" {
		metadata["namespace"] = b.namespace
	}
	return map[string]any{
		"apiVersion": b.resource.GroupVersion().String(), "kind": b.kind,
		"metadata": metadata, "spec": b.spec(1),
	}
}

// qualified returns the type's name for kubectl.
func (b breed) qualified() string { return b.resource.Resource + "." + b.resource.Group }

// path returns the path of the type or of an object.
func (b breed) path(names ...string) string {
	path := "/apis/" + b.resource.GroupVersion().String()
	if b.namespace != "" {
		path += "/namespaces/" + b.namespace
	}
	return strings.Join(append([]string{path, b.resource.Resource}, names...), "/")
}

// neutral replaces the type's names in a text.
func (b breed) neutral() *strings.Replacer {
	return strings.NewReplacer(
		b.qualified(), "RESOURCES", b.singular+"."+b.resource.Group, "RESOURCE",
		b.resource.GroupVersion().String(), "GROUPVERSION", b.resource.Group, "GROUP",
		b.kind+"List", "KINDLIST", b.kind, "KIND",
		b.resource.Resource, "RESOURCES", b.finalizer, "FINALIZER",
		strings.Join(b.knob, "."), "KNOB", "version \""+b.resource.Version+`"`, `version "VERSION"`, b.resource.Version+"."+b.kind, "VERSION.KIND",
		"("+b.namespace+"/", "(", " from "+b.namespace+" namespace", "", " in "+b.namespace+" namespace.", "",
	)
}
