package clusterreads

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/readiness"
)

// mostServices bounds the Services of webhooks that one answer checks.
const mostServices = 100

// pageOfObjects bounds the objects of one list: a CustomResourceDefinition may have 1 MiB.
const pageOfObjects = 50

// upgrades reads the objects that an upgrade of the cluster depends on. It lists as the reader, and
// only objects that the caller may list.
type upgrades struct {
	cluster
	client rest.Interface
}

func newUpgrades(here cluster) (*upgrades, error) {
	client, err := discovery.NewDiscoveryClientForConfig(here.config)
	if err != nil {
		return nil, fmt.Errorf("making a client for upgrade readiness: %w", err)
	}
	return &upgrades{here, client.RESTClient()}, nil
}

type state struct {
	*upgrades
	caller user.Info
	wanted map[manifest.ID]bool
	now    readiness.Live
	// waiting holds the webhooks that refuse requests while their Service does not answer.
	waiting map[types.NamespacedName][]waiting
}

type waiting struct {
	id   manifest.ID
	name string
}

// Upgrade returns the wanted objects that a caller may see.
func (u *upgrades) Upgrade(ctx context.Context, caller user.Info, wanted map[manifest.ID]bool) readiness.Live {
	s := &state{upgrades: u, caller: caller, wanted: wanted, waiting: map[types.NamespacedName][]waiting{}}
	admission := admissionregistrationv1.SchemeGroupVersion
	for _, err := range []error{
		list(ctx, s, "CustomResourceDefinition", objectwatch.Definitions, s.definition),
		list(ctx, s, "PodDisruptionBudget", policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), s.budget),
		list(ctx, s, "ValidatingWebhookConfiguration", admission.WithResource("validatingwebhookconfigurations"), s.webhooks),
		list(ctx, s, "MutatingWebhookConfiguration", admission.WithResource("mutatingwebhookconfigurations"), s.webhooks),
		s.services(ctx),
	} {
		if err != nil {
			s.now.NotLooked = append(s.now.NotLooked, err.Error())
		}
	}
	return s.now
}

// may returns the reason why the caller must not see an object, or nil.
func (s *state) may(ctx context.Context, asked authz.Right) error {
	allowed, err := asked.Has(ctx, s.rights, s.caller)
	switch {
	case allowed:
		return nil
	case err != nil:
		return fmt.Errorf("whether you may %s cannot be found out: %w", asked, err)
	}
	return fmt.Errorf("you cannot %s", asked)
}

type named struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

func (n named) key() types.NamespacedName { return types.NamespacedName(n.Metadata) }

// list passes on the wanted objects of a kind.
func list[T interface{ key() types.NamespacedName }](ctx context.Context, s *state, kind string, resource schema.GroupVersionResource, look func(id manifest.ID, object T)) error {
	some := false
	for id := range s.wanted {
		some = some || id.Group == resource.Group && id.Kind == kind
	}
	if !some {
		return nil
	}
	asked := authz.On(resource, "list", "", "")
	if err := s.may(ctx, asked); err != nil {
		return err
	}
	for next := ""; ; {
		raw, err := s.client.Get().AbsPath("/apis", resource.Group, resource.Version, resource.Resource).
			Param("limit", strconv.Itoa(pageOfObjects)).Param("continue", next).Do(ctx).Raw()
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		if err == nil {
			err = json.Unmarshal(raw, &page)
		}
		if err != nil {
			return fmt.Errorf("penstock cannot %s: %w", asked, err)
		}
		for _, item := range page.Items {
			at := item.key()
			if id := (manifest.ID{Group: resource.Group, Kind: kind, Namespace: at.Namespace, Name: at.Name}); s.wanted[id] {
				look(id, item)
			}
		}
		if next = page.Metadata.Continue; next == "" {
			return nil
		}
	}
}

type definition struct {
	named
	Spec struct {
		Versions []readiness.DefinedVersion `json:"versions"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions"`
	} `json:"status"`
}

func (s *state) definition(id manifest.ID, object definition) {
	if s.now.Definitions == nil {
		s.now.Definitions = map[manifest.ID]readiness.Definition{}
	}
	s.now.Definitions[id] = readiness.Definition{Versions: object.Spec.Versions, Stored: object.Status.StoredVersions}
}

type budget struct {
	named
	Status policyv1.PodDisruptionBudgetStatus `json:"status"`
}

func (s *state) budget(id manifest.ID, object budget) {
	if s.now.Budgets == nil {
		s.now.Budgets = map[manifest.ID]readiness.Budget{}
	}
	status := object.Status
	s.now.Budgets[id] = readiness.Budget{Allowed: status.DisruptionsAllowed, Healthy: status.CurrentHealthy, Desired: status.DesiredHealthy, Expected: status.ExpectedPods}
}

type webhooks struct {
	named
	Webhooks []struct {
		Name          string                                      `json:"name"`
		FailurePolicy admissionregistrationv1.FailurePolicyType   `json:"failurePolicy"`
		ClientConfig  admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`
	} `json:"webhooks"`
}

// webhooks collects the Services that must answer.
func (s *state) webhooks(id manifest.ID, object webhooks) {
	for _, hook := range object.Webhooks {
		if service := hook.ClientConfig.Service; service != nil && hook.FailurePolicy == admissionregistrationv1.Fail {
			at := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
			s.waiting[at] = append(s.waiting[at], waiting{id, hook.Name})
		}
	}
}

// services finds the Services of webhooks that have no ready endpoint.
func (s *state) services(ctx context.Context) error {
	if len(s.waiting) == 0 {
		return nil
	}
	slices := discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	asked := authz.On(slices, "list", "", "")
	if err := s.may(ctx, asked); err != nil {
		return err
	}
	if len(s.waiting) > mostServices {
		return fmt.Errorf("webhooks have %d Services, and Penstock checks at most %d", len(s.waiting), mostServices)
	}
	s.now.Webhooks = map[manifest.ID][]readiness.Unanswered{}
	for at, hooks := range s.waiting {
		raw, err := s.client.Get().AbsPath("/apis", slices.Group, slices.Version, "namespaces", at.Namespace, slices.Resource).
			Param("labelSelector", discoveryv1.LabelServiceName+"="+at.Name).Do(ctx).Raw()
		var found struct {
			Items []struct {
				Endpoints []discoveryv1.Endpoint `json:"endpoints"`
			} `json:"items"`
		}
		if err == nil {
			err = json.Unmarshal(raw, &found)
		}
		if err != nil {
			return fmt.Errorf("penstock cannot %s: %w", asked, err)
		}
		ready := false
		for _, slice := range found.Items {
			for _, endpoint := range slice.Endpoints {
				ready = ready || endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			}
		}
		if ready {
			continue
		}
		for _, hook := range hooks {
			s.now.Webhooks[hook.id] = append(s.now.Webhooks[hook.id], readiness.Unanswered{Webhook: hook.name, Service: at.String()})
		}
	}
	return nil
}
