package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/readiness"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/source/bundle"
	"github.com/penstock-project/penstock/pkg/source/chart"
	"github.com/penstock-project/penstock/pkg/source/packed"
)

// errNoPool is for a program whose controllers were not made.
var errNoPool = errors.New("this replica renders no packages")

// RenderPackage implements upgradereadiness.Render, in the pool that the controllers use.
func (s *Settings) RenderPackage(ctx context.Context, user string, wanted upgradereadiness.Wanted) (readiness.Contents, error) {
	if s.pool == nil || s.Catalogs == nil {
		return readiness.Contents{}, errNoPool
	}
	var pulled *extension.Pulled
	var err error
	if waiting := s.pool.Pull(ctx, user, func() { pulled, err = catalogImages{s.Catalogs}.Pull(ctx, user, "", wanted.Image) }); waiting != nil {
		return readiness.Contents{}, fmt.Errorf("image %s: waiting for other pulls: %w: %w", wanted.Image, upgradereadiness.ErrBusy, waiting)
	}
	if err != nil {
		return readiness.Contents{}, fmt.Errorf("%w: %w", upgradereadiness.ErrNotPulled, err)
	}
	defer pulled.Close()
	var out readiness.Contents
	if waiting := s.pool.Render(ctx, user, func() { out, err = renderPulled(ctx, pulled, wanted) }); waiting != nil {
		err = fmt.Errorf("waiting for others: %w: %w", upgradereadiness.ErrBusy, waiting)
	}
	if err != nil {
		return out, fmt.Errorf("image %s: %w", wanted.Image, err)
	}
	return out, nil
}

// renderPulled renders for the version that the cluster is upgraded to, which charts ask for.
func renderPulled(ctx context.Context, pulled *extension.Pulled, wanted upgradereadiness.Wanted) (readiness.Contents, error) {
	format, err := packed.FormatOf(pulled.Kind, pulled.FS)
	if err != nil {
		return readiness.Contents{}, err
	}
	renderer := packed.Renderer{Format: format}
	switch format {
	case packed.Bundle:
		renderer.Bundle = bundle.Options{InstallNamespace: wanted.Namespace, Config: json.RawMessage(wanted.Config), Certificates: bundle.CertManager, AcceptRequirements: true}
	case packed.Chart:
		renderer.Chart.Release, renderer.Chart.Namespace = wanted.Extension, wanted.Namespace
		renderer.Chart.Cluster, renderer.Chart.KubeVersion = wanted.Cluster, wanted.Kubernetes
		if wanted.Config != "" {
			if err := json.Unmarshal([]byte(wanted.Config), &renderer.Chart.Values); err != nil {
				return readiness.Contents{}, fmt.Errorf("reading the values of the chart: %w", err)
			}
		}
	case packed.Manifests:
	}
	rendered, err := renderer.Render(ctx, pulled.FS)
	var version *chart.VersionError
	if errors.As(err, &version) {
		// The statement of the chart is the answer, unless it differs between patches of the minor.
		return readiness.Contents{Range: version.Wanted, NotLooked: err.Error()}, nil
	}
	if err != nil {
		return readiness.Contents{}, err
	}
	var objects []manifest.Object
	for _, phase := range rendered.Phases {
		objects = append(objects, phase.Objects...)
	}
	out := readiness.ContentsOf(objects)
	out.Range = rendered.KubeVersion
	return out, nil
}
