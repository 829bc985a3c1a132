package server

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/readiness"
	"github.com/penstock-project/penstock/pkg/registry/catalog"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/server/clusterreads"
	"github.com/penstock-project/penstock/pkg/text"
)

// readiness returns the sources for an upgrade of the cluster, besides revisions and catalogs.
func (a *api) readiness(reads *clusterreads.Reads) (upgradereadiness.Sources, error) {
	host, err := dynamic.NewForConfig(a.host.ConfigFor("extensions"))
	if err != nil {
		return upgradereadiness.Sources{}, fmt.Errorf("connecting to the host for ChartKinds: %w", err)
	}
	return upgradereadiness.Sources{
		Live: reads.Upgrade, Plans: a.plansToJudge, ChartKinds: chartKindsOf(host), Extensions: settingsOf(extensionsOf(host)),
	}, nil
}

// plansToJudge returns the plans that have changed the cluster, or would change it.
func (a *api) plansToJudge(ctx context.Context) ([]readiness.Plan, error) {
	if a.plans == nil {
		return nil, errNotInstalled
	}
	found, err := a.plans.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("the plans cannot be listed: %w", err)
	}
	list, ok := found.(*hco.ConfigurationPlanList)
	if !ok {
		return nil, fmt.Errorf("listing plans: got a %T", found)
	}
	var out []readiness.Plan
	unreadable := 0
	for i := range list.Items {
		plan := &list.Items[i]
		one := readiness.Plan{Name: plan.Name, Role: readiness.RolledOut}
		switch {
		case objectmeta.IsUnreadable(plan):
			unreadable++
			continue
		case plan.Spec.Action == hco.ActionIgnore:
			continue
		case plan.Spec.Action == hco.ActionDryRun:
			one.Role = readiness.Proposed
		}
		for _, item := range plan.Status.Items {
			version, err := schema.ParseGroupVersion(item.TargetRef.APIVersion)
			if err != nil {
				continue // the phase explains this already
			}
			one.Targets = append(one.Targets, manifest.Ref{
				ID:      manifest.ID{Group: version.Group, Kind: item.TargetRef.Kind, Namespace: item.TargetRef.Namespace, Name: item.TargetRef.Name},
				Version: version.Version,
			})
		}
		out = append(out, one)
	}
	if unreadable > 0 {
		return out, errors.New(text.Count(unreadable, "plan") + " cannot be read: see kubectl get configplan")
	}
	return out, nil
}

// chartKindsOf lists the ChartKinds of a cluster. The list is empty if the cluster lacks the kind.
func chartKindsOf(host dynamic.Interface) func(ctx context.Context) ([]readiness.ChartKind, error) {
	return func(ctx context.Context) ([]readiness.ChartKind, error) {
		listed, err := host.Resource(chartkind.Resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the ChartKinds cannot be listed: %w", err)
		}
		var out []readiness.ChartKind
		var failed error
		for i := range listed.Items {
			kind, err := chartkind.From(&listed.Items[i])
			if err != nil {
				failed = err
				continue
			}
			one := readiness.ChartKind{Name: kind.Name}
			for _, input := range kind.Spec.Inputs {
				one.Inputs = append(one.Inputs, schema.GroupVersionKind{Group: input.Group, Version: input.Version, Kind: input.Kind})
			}
			out = append(out, one)
		}
		return out, failed
	}
}

func settingsOf(list catalog.Extensions) func(ctx context.Context) (map[string]upgradereadiness.Settings, error) {
	return func(ctx context.Context) (map[string]upgradereadiness.Settings, error) {
		all, err := list(ctx)
		out := map[string]upgradereadiness.Settings{}
		for i := range all {
			has := upgradereadiness.Settings{Namespace: all[i].Spec.Namespace}
			if config := all[i].Spec.Config; config != nil {
				has.Config = string(config.Inline)
			}
			out[all[i].Name] = has
		}
		return out, err
	}
}
