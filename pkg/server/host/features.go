package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/client-go/kubernetes"

	"github.com/penstock-project/penstock/pkg/admission/plugin/privilege"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
)

// Feature is a part of the generic API server that reads resources of the host. Without the right
// to list them it does not work: an admission plugin then answers every write with 403 after ten
// seconds.
type Feature struct {
	// Name is the name of the admission plugin, or the name for the log.
	Name string
	// Lists holds the resources that the feature lists and watches.
	Lists []schema.GroupVersionResource
	// Gets holds the resources that the feature reads one by one.
	Gets []schema.GroupVersionResource
	// Optional features are switched off if a right is missing. A feature that enforces policies of
	// users is not optional: without its rights the process does not start, unless the host does
	// not serve the policies.
	Optional bool
}

// PriorityAndFairness is the name of the only feature that is not a plugin.
const PriorityAndFairness = "APIPriorityAndFairness"

// Features returns the features that this process uses, with the versions that the library's
// informers use.
func Features() []Feature {
	admission := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	flow := schema.GroupVersion{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	return []Feature{
		{Name: lifecycle.PluginName, Lists: []schema.GroupVersionResource{{Version: "v1", Resource: "namespaces"}}},
		{Name: mutatingpolicy.PluginName, Lists: []schema.GroupVersionResource{
			admission.WithResource("mutatingadmissionpolicies"), admission.WithResource("mutatingadmissionpolicybindings")}},
		{Name: mutatingwebhook.PluginName, Lists: []schema.GroupVersionResource{admission.WithResource("mutatingwebhookconfigurations")}},
		{Name: validatingpolicy.PluginName, Lists: []schema.GroupVersionResource{
			admission.WithResource("validatingadmissionpolicies"), admission.WithResource("validatingadmissionpolicybindings")}},
		{Name: validatingwebhook.PluginName, Lists: []schema.GroupVersionResource{admission.WithResource("validatingwebhookconfigurations")}},
		{Name: privilege.PluginName, Gets: []schema.GroupVersionResource{rbac.WithResource("roles"), rbac.WithResource("clusterroles")}},
		{Name: PriorityAndFairness, Optional: true, Lists: []schema.GroupVersionResource{
			flow.WithResource("flowschemas"), flow.WithResource("prioritylevelconfigurations")}},
	}
}

// delegated returns the rights that every request needs.
func delegated() []authz.Right {
	rights := []authz.Right{
		{Verb: "create", Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"},
		{Verb: "create", Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"},
	}
	// The ConfigMap lists the trusted authorities of client certificates.
	for _, verb := range []string{"get", "list", "watch"} {
		rights = append(rights, authz.Right{
			Verb: verb, Version: "v1", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: authenticationConfigMap,
		})
	}
	return rights
}

type findings struct {
	served  map[schema.GroupVersionResource]bool
	allowed map[authz.Right]bool
}

// Off is a feature that is switched off, and the reason.
type Off struct {
	Name, Reason string
}

// Without returns the features that the host does not support, and the features whose rights are
// missing. disabled lists the features that the user has disabled. The error lists every missing
// right, or names the failed request.
func Without(ctx context.Context, client kubernetes.Interface, disabled []string) ([]Off, error) {
	found, err := find(ctx, client, Features())
	if err != nil {
		return nil, err
	}
	return decide(Features(), disabled, found)
}

// decide returns the features to switch off, given the findings and the features that the user has
// disabled. Its error lists every missing right, so that one round of granting is enough.
func decide(wanted []Feature, disabled []string, found findings) ([]Off, error) {
	var without []Off
	var missing []string
	for _, needed := range delegated() {
		if !found.allowed[needed] {
			missing = append(missing, needed.String()+" (to authenticate and authorize requests)")
		}
	}
	for _, f := range wanted {
		if slices.Contains(disabled, f.Name) {
			continue
		}
		absent, forbidden := f.lacks(found)
		switch {
		case len(absent) > 0:
			without = append(without, Off{f.Name, "the host does not serve " + strings.Join(absent, ", ")})
		case len(forbidden) > 0 && f.Optional:
			without = append(without, Off{f.Name, "the right is missing to " + strings.Join(forbidden, ", ")})
		case len(forbidden) > 0:
			for _, lacking := range forbidden {
				missing = append(missing, fmt.Sprintf("%s (for admission plugin %s)", lacking, f.Name))
			}
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the host does not grant this process the right to\n  %s\n"+
			"Grant it, or disable an admission plugin with --disable-admission-plugins: nothing then enforces its rules for Penstock's resources",
			strings.Join(missing, "\n  "))
	}
	return without, nil
}

func (f Feature) lacks(found findings) (absent, forbidden []string) {
	for _, resource := range f.Lists {
		if !found.served[resource] {
			absent = append(absent, resource.GroupVersion().String()+" "+resource.Resource)
		}
	}
	for _, needed := range f.rights() {
		served := found.served[schema.GroupVersionResource{Group: needed.Group, Version: needed.Version, Resource: needed.Resource}]
		if !found.allowed[needed] && (needed.Verb == "get" || served) {
			forbidden = append(forbidden, needed.String())
		}
	}
	return absent, forbidden
}

func (f Feature) rights() []authz.Right {
	var rights []authz.Right
	for _, resource := range f.Lists {
		rights = append(rights, authz.On(resource, "list", "", ""), authz.On(resource, "watch", "", ""))
	}
	for _, resource := range f.Gets {
		rights = append(rights, authz.On(resource, "get", "", ""))
	}
	return rights
}

// find asks the host all questions at the same time. A missing answer is an error, never a "no".
func find(ctx context.Context, client kubernetes.Interface, wanted []Feature) (findings, error) {
	found := findings{served: map[schema.GroupVersionResource]bool{}, allowed: map[authz.Right]bool{}}
	questions := delegated()
	versions := map[schema.GroupVersion]bool{}
	for _, f := range wanted {
		for _, resource := range f.Lists {
			versions[resource.GroupVersion()] = true
		}
		questions = append(questions, f.rights()...)
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for version := range versions {
		group.Go(func() error {
			resources, err := servedResources(client, version)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, resource := range resources {
				found.served[version.WithResource(resource)] = true
			}
			return nil
		})
	}
	for _, question := range questions {
		group.Go(func() error {
			allowed, err := accessreview.Allowed(ctx, client, question)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found.allowed[question] = allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return findings{}, err
	}
	return found, nil
}

func servedResources(client kubernetes.Interface, version schema.GroupVersion) ([]string, error) {
	list, err := client.Discovery().ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking the host what it serves in %s: %w", version, err)
	}
	var names []string
	for _, resource := range list.APIResources {
		names = append(names, resource.Name)
	}
	return names, nil
}
