// Package capabilities reads a cluster's version and served kinds, as charts see them in
// .Capabilities.
package capabilities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

// Read requests a cluster's version and all served resources. It caches nothing, because a chart is
// rendered for the current cluster.
func Read(ctx context.Context, config *rest.Config) (*template.Capabilities, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for discovery: %w", err)
	}
	version, err := client.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the version of the cluster: %w", err)
	}
	groups, resources, err := client.ServerGroupsAndResourcesWithContext(ctx)
	out, err := served(groups, resources, err)
	if err != nil {
		return nil, err
	}
	out.Version, out.Major, out.Minor = version.GitVersion, version.Major, version.Minor
	return out, nil
}

// served lists group versions and kinds as Helm does. A group whose API server does not answer is
// returned as unknown.
func served(groups []*metav1.APIGroup, resources []*metav1.APIResourceList, err error) (*template.Capabilities, error) {
	out := &template.Capabilities{}
	var partly *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partly) {
		for version := range partly.Groups {
			out.Unknown = append(out.Unknown, version.String())
		}
		slices.Sort(out.Unknown)
	} else if err != nil {
		return nil, fmt.Errorf("reading what the cluster serves: %w", err)
	}
	all, clusterScoped := map[string]bool{}, map[string]bool{}
	for _, group := range groups {
		for _, version := range group.Versions {
			all[version.GroupVersion] = true
		}
	}
	for _, list := range resources {
		for _, resource := range list.APIResources {
			all[list.GroupVersion+"/"+resource.Kind] = true
			if version, err := schema.ParseGroupVersion(list.GroupVersion); err == nil && !resource.Namespaced && !strings.Contains(resource.Name, "/") {
				clusterScoped[version.WithKind(resource.Kind).GroupKind().String()] = true
			}
		}
	}
	out.APIVersions, out.ClusterScoped = slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(clusterScoped))
	return out, nil
}
