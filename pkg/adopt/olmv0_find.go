package adopt

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/adopt/olmv0"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

// alwaysMade returns the kinds that OLM creates for each ClusterServiceVersion, and the kinds of
// most bundles. The InstallPlan and the Operator name further kinds.
func alwaysMade() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for version, kinds := range map[schema.GroupVersion][]string{
		{Version: "v1"}: {"ServiceAccount", "Service", "ConfigMap", "Secret"},
		{Group: "rbac.authorization.k8s.io", Version: "v1"}:    {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"},
		{Group: "apps", Version: "v1"}:                         {"Deployment"},
		{Group: "admissionregistration.k8s.io", Version: "v1"}: {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
		{Group: "apiregistration.k8s.io", Version: "v1"}:       {"APIService"},
		{Group: "networking.k8s.io", Version: "v1"}:            {"NetworkPolicy"},
		{Group: "policy", Version: "v1"}:                       {"PodDisruptionBudget"},
	} {
		for _, kind := range kinds {
			all = append(all, version.WithKind(kind))
		}
	}
	return all
}

// madeBy finds the objects that OLM made for a bundle, and returns their manifests in phases. The
// objects are:
//
//  1. objects whose owner reference or OLM labels name the ClusterServiceVersion;
//  2. the CustomResourceDefinitions and APIServices that it names;
//  3. the objects that the InstallPlan created for it.
func (a *Adopter) madeBy(ctx context.Context, plan *OLMv0Plan, of *olmv0.Subscription, csv *olmv0.ClusterServiceVersion) ([]source.Phase, error) {
	steps, err := a.steps(ctx, csv)
	if err != nil {
		return nil, err
	}
	kinds, err := a.kindsOf(ctx, of, steps)
	if err != nil {
		return nil, err
	}
	refs, err := a.owned(ctx, csv, kinds)
	if err != nil {
		return nil, err
	}
	for _, ref := range slices.Concat(namedBy(csv), steps) {
		found, err := a.namespaced(ctx, ref, csv.Namespace)
		if err != nil {
			return nil, err
		}
		refs[found.ID] = found
	}
	return a.contents(ctx, plan, slices.SortedFunc(maps.Values(refs), func(a, b manifest.Ref) int { return strings.Compare(a.String(), b.String()) }))
}

func namedBy(csv *olmv0.ClusterServiceVersion) []manifest.Ref {
	definitions := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	apiServices := schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}
	var refs []manifest.Ref
	for _, one := range csv.Spec.CRDs.Owned {
		refs = append(refs, refTo(definitions, one.Name))
	}
	for _, one := range csv.Spec.APIs.Owned {
		refs = append(refs, refTo(apiServices, one.Version+"."+one.Group))
	}
	return refs
}

func refTo(kind schema.GroupVersionKind, name string) manifest.Ref {
	return manifest.Ref{ID: manifest.ID{Group: kind.Group, Kind: kind.Kind, Name: name}, Version: kind.Version}
}

// steps returns the objects that InstallPlans created for a ClusterServiceVersion, without their
// namespaces. It leaves out objects of OLM's own kinds.
func (a *Adopter) steps(ctx context.Context, csv *olmv0.ClusterServiceVersion) ([]manifest.Ref, error) {
	list, err := a.objects.Resource(olmv0.InstallPlans).Namespace(csv.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing InstallPlans in namespace %s: %w", csv.Namespace, err)
	}
	var refs []manifest.Ref
	for i := range list.Items {
		one := olmv0.InstallPlan{}
		if err := olmv0.Read(&list.Items[i], &one); err != nil {
			return nil, err
		}
		for _, step := range one.Status.Plan {
			if step.Resolving == csv.Name && step.Resource.Group != olmv0.Group {
				refs = append(refs, refTo(step.Kind(), step.Resource.Name))
			}
		}
	}
	return refs, nil
}

// kindsOf returns the kinds that the objects of an operator may have.
func (a *Adopter) kindsOf(ctx context.Context, of *olmv0.Subscription, steps []manifest.Ref) ([]*meta.RESTMapping, error) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, kind := range alwaysMade() {
		kinds[kind] = true
	}
	for _, step := range steps {
		kinds[step.GroupVersionKind()] = true
	}
	live, err := a.objects.Resource(olmv0.Operators).Get(ctx, of.OperatorName(), metav1.GetOptions{})
	if err == nil {
		operator := olmv0.Operator{}
		if err := olmv0.Read(live, &operator); err != nil {
			return nil, err
		}
		for _, ref := range operator.Status.Components.Refs {
			kinds[schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)] = true
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading Operator %s: %w", of.OperatorName(), err)
	}
	var mappings []*meta.RESTMapping
	for kind := range kinds {
		if kind.Group == olmv0.Group {
			continue
		}
		mapping, err := a.target.Served(ctx, kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding out whether the cluster serves %s: %w", kind.GroupKind(), err)
		}
		mappings = append(mappings, mapping)
	}
	return mappings, nil
}

// owned lists the objects of kinds that a ClusterServiceVersion owns. It finds objects in its
// namespace by owner reference, and in all namespaces by OLM's labels.
func (a *Adopter) owned(ctx context.Context, csv *olmv0.ClusterServiceVersion, kinds []*meta.RESTMapping) (map[manifest.ID]manifest.Ref, error) {
	labelled := metav1.ListOptions{LabelSelector: labels.Set{
		olmv0.OwnerLabel: csv.Name, olmv0.OwnerNamespaceLabel: csv.Namespace, olmv0.OwnerKindLabel: olmv0.Kind,
	}.String()}
	lists := make([][]metav1.PartialObjectMetadata, len(kinds))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(lookAtOnce)
	for i, kind := range kinds {
		group.Go(func() error {
			list, err := a.metadata.Resource(kind.Resource).List(groupCtx, labelled)
			if err == nil {
				lists[i] = list.Items
			}
			if err == nil && kind.Scope.Name() == meta.RESTScopeNameNamespace {
				list, err = a.metadata.Resource(kind.Resource).Namespace(csv.Namespace).List(groupCtx, metav1.ListOptions{})
				if err == nil {
					lists[i] = append(lists[i], ownedBy(list.Items, csv)...)
				}
			}
			if err != nil {
				return fmt.Errorf("listing %s: %w", kind.Resource.GroupResource(), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	refs := map[manifest.ID]manifest.Ref{}
	for i, list := range lists {
		for _, one := range list {
			ref := refTo(kinds[i].GroupVersionKind, one.Name)
			ref.Namespace = one.Namespace
			refs[ref.ID] = ref
		}
	}
	return refs, nil
}

func ownedBy(all []metav1.PartialObjectMetadata, csv *olmv0.ClusterServiceVersion) []metav1.PartialObjectMetadata {
	return slices.DeleteFunc(all, func(one metav1.PartialObjectMetadata) bool {
		return !slices.ContainsFunc(one.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == csv.UID })
	})
}

// namespaced sets the namespace of a reference if its kind is namespaced.
func (a *Adopter) namespaced(ctx context.Context, ref manifest.Ref, namespace string) (manifest.Ref, error) {
	mapping, err := a.target.Served(ctx, ref.GroupVersionKind())
	switch {
	case meta.IsNoMatchError(err):
		return ref, nil
	case err != nil:
		return ref, fmt.Errorf("finding out whether %s is in a namespace: %w", ref.GroupKind(), err)
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		ref.Namespace = namespace
	}
	return ref, nil
}

// contents returns the objects as OLM made them, without deleted objects.
func (a *Adopter) contents(ctx context.Context, plan *OLMv0Plan, refs []manifest.Ref) ([]source.Phase, error) {
	var objects []manifest.Object
	for _, ref := range refs {
		live, err := a.target.Read(ctx, ref)
		if isAbsent(err) {
			plan.NotTaken = append(plan.NotTaken, NotTaken{What: ref.ID.String(), Why: "the InstallPlan made it, and it is gone"})
			continue
		}
		if err != nil {
			return nil, err
		}
		if secret, _ := live.Object["type"].(string); ref.IsSecret() && secret == string(corev1.SecretTypeServiceAccountToken) {
			continue // kube-controller-manager writes this Secret
		}
		if owner := live.GetLabels()[v1alpha1.ChainLabel]; owner != "" && owner != plan.Extension {
			return nil, fmt.Errorf("%s belongs to the extension %s, and an object belongs to one extension: leave this operator to OLM, or delete its Subscription and ClusterServiceVersion while OLM runs, when extension %s is to serve its namespace, too", ref.ID, owner, owner)
		}
		content, people, err := olmv0.Content(live)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref.ID, err)
		}
		if len(people) > 0 {
			plan.Warnings = append(plan.Warnings, fmt.Sprintf("%s was changed by hand (%s), and is taken over as it is", ref.ID, strings.Join(people, ", ")))
		}
		object, err := manifest.Canonical(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref.ID, err)
		}
		objects = append(objects, object)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("no object was found that OLM made from %s", cmp.Or(plan.CSV, "the Subscription"))
	}
	return source.Sort(objects)
}
