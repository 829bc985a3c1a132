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

// beyondBuild is for builds. OpenShift requires the right to create the subresource of the build's
// strategy, because the custom strategy runs privileged code. A manifest that patches an existing
// build may leave the strategy out. The rights for all strategies are required then.
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

// beyondImages is for tags of images in other namespaces. OpenShift requires the right to pull
// those images, because users who can pull the new tag get them.
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
		// The name is stream:tag or stream@image.
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
