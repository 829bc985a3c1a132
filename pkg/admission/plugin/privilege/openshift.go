package privilege

import (
	"cmp"
	"strings"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	openshiftBuilds = "build.openshift.io"
	openshiftImages = "image.openshift.io"
)

// beyondBuild is for builds, which OpenShift admits when their author may create the
// subresource of their strategy: what the custom strategy runs is privileged. Applied to
// what exists, the manifest needs not say which one it is: then all are asked about.
func beyondBuild(object manifest.Object) (beyond, error) {
	var build struct {
		Spec struct {
			Strategy struct {
				Docker *struct {
					ImageOptimizationPolicy string `json:"imageOptimizationPolicy"`
				} `json:"dockerStrategy"`
				Source          *struct{} `json:"sourceStrategy"`
				Custom          *struct{} `json:"customStrategy"`
				JenkinsPipeline *struct{} `json:"jenkinsPipelineStrategy"`
			} `json:"strategy"`
		} `json:"spec"`
	}
	if err := decode(object, &build); err != nil {
		return beyond{}, err
	}
	strategy := build.Spec.Strategy
	var found beyond
	needs := func(subresources ...string) {
		for _, subresource := range subresources {
			found.rights = append(found.rights, authz.Right{Verb: "create", Group: openshiftBuilds, Resource: "builds", Subresource: subresource,
				Namespace: object.Namespace, Name: object.Name})
		}
	}
	if strategy.Docker != nil {
		if policy := cmp.Or(strategy.Docker.ImageOptimizationPolicy, "None"); policy == "None" {
			needs("docker")
		} else {
			needs("optimizeddocker")
		}
	}
	if strategy.Source != nil {
		needs("source")
	}
	if strategy.Custom != nil {
		needs("custom")
	}
	if strategy.JenkinsPipeline != nil {
		needs("jenkinspipeline")
	}
	if len(found.rights) == 0 {
		needs("custom", "docker", "jenkinspipeline", "optimizeddocker", "source")
	}
	return found, nil
}

// beyondImages is for tags of images of other namespaces, which OpenShift admits when
// their author may pull those images: from then on, users who may pull the new tag may.
func beyondImages(object manifest.Object) (beyond, error) {
	type tag struct {
		From struct {
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"from"`
	}
	var images struct {
		Spec struct {
			Tags []tag `json:"tags"`
		} `json:"spec"`
		Tag tag `json:"tag"`
	}
	if err := decode(object, &images); err != nil {
		return beyond{}, err
	}
	var found beyond
	seen := map[authz.Right]bool{}
	for _, t := range append(images.Spec.Tags, images.Tag) {
		if t.From.Kind == "DockerImage" || t.From.Namespace == "" || t.From.Namespace == object.Namespace {
			continue
		}
		// Both streams:tags and streams@images.
		stream, _, _ := strings.Cut(t.From.Name, ":")
		stream, _, _ = strings.Cut(stream, "@")
		pull := authz.Right{Verb: "get", Group: openshiftImages, Resource: "imagestreams", Subresource: "layers", Namespace: t.From.Namespace, Name: stream}
		if !seen[pull] {
			seen[pull] = true
			found.rights = append(found.rights, pull)
		}
	}
	return found, nil
}
