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

// breed is a type whose manners are looked at: all that they need to know of it.
type breed struct {
	kind, singular string
	resource       schema.GroupVersionResource
	// namespace of the objects; empty for a type that has none.
	namespace string
	// finalizer holds every object of it until it is taken off, so that what happens
	// to an object that is being deleted can be seen, and the same is seen of all.
	finalizer string
	// spec of an object, with the knob at a number.
	spec func(knob int) map[string]any
	// knob is the field of spec that changes, and what it is at a number.
	knob    []string
	setting func(knob int) any
	// status is a field of status and what it is at a number.
	status  []string
	outcome func(n int) any
	// keepsStatus is set for a type whose status nobody may write but the server
	// itself: it does, for the test.
	keepsStatus bool
	// typed is a list and watch of the typed client.
	typed source
	// object and list are those of the typed client, which add knows.
	object func() client.Object
	list   func() client.ObjectList
	add    func(*runtime.Scheme) error
}

// source is a list and watch of a scenario's objects, and what they are.
type source func(config *rest.Config, scenario string) (cache.ListerWatcher, runtime.Object, error)

// ours are the types that are compared.
func ours() []breed {
	return []breed{revisionBreed(), planBreed()}
}

// ingress is the host's type that resembles ours the most and that no controller of
// the host touches: it has spec, status, generation and immediate deletion.
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

// ingressClass has no namespace, and no status.
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

// revisionBreed has manifests, so that what becomes of those is part of it.
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

// planBreed is of plans that nobody acts on, so that any number has one profile.
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

// conditions are a list of one.
func conditions(n int) any {
	return []any{map[string]any{
		"type": "Ready", "status": "Unknown", "reason": fmt.Sprintf("Number%d", n), "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}
}

// listWatch is that of a client, of the objects of a scenario.
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

// draft is a new object.
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

// path of the type, or of an object of it.
func (b breed) path(names ...string) string {
	path := "/apis/" + b.resource.GroupVersion().String()
	if b.namespace != "" {
		path += "/namespaces/" + b.namespace
	}
	return strings.Join(append([]string{path, b.resource.Resource}, names...), "/")
}

// neutral takes the type's names out of what was said of it.
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
