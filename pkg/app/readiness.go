package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/readiness"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/source/bundle"
	"github.com/penstock-project/penstock/pkg/source/packed"
)

var errNoPool = errors.New("this replica renders no packages")

// RenderPackage implements upgradereadiness.Render. It shares the pool of the controllers.
func (s *Settings) RenderPackage(ctx context.Context, user string, wanted upgradereadiness.Wanted) (readiness.Contents, error) {
	if s.pool == nil || s.Catalogs == nil {
		return readiness.Contents{}, errNoPool
	}
	var pulled *extension.Pulled
	var err error
	if waiting := s.pool.Pull(ctx, user, func() { pulled, err = catalogImages{s.Catalogs}.Pull(ctx, user, wanted.Catalog, wanted.Image) }); waiting != nil {
		return readiness.Contents{}, fmt.Errorf("image %s: waiting for other pulls: %w: %w", wanted.Image, upgradereadiness.ErrBusy, waiting)
	}
	if refused := (*image.Refused)(nil); errors.As(err, &refused) {
		return readiness.Contents{}, err // the error comes from the registry
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

// renderPulled renders an image as the controller does for a catalog: it accepts only bundles.
func renderPulled(ctx context.Context, pulled *extension.Pulled, wanted upgradereadiness.Wanted) (readiness.Contents, error) {
	format, err := packed.FormatOf(pulled.Kind, pulled.FS)
	if err == nil && format != packed.Bundle {
		err = fmt.Errorf("it is a %s, and a %s is expected", format, packed.Bundle)
	}
	if err != nil {
		return readiness.Contents{}, err
	}
	renderer := bundle.Renderer{Options: bundle.Options{
		InstallNamespace: wanted.Namespace, Config: json.RawMessage(wanted.Config), Certificates: bundle.CertManager, AcceptRequirements: true,
	}}
	rendered, err := renderer.Render(ctx, pulled.FS)
	if err != nil {
		return readiness.Contents{}, err
	}
	var objects []manifest.Object
	for _, phase := range rendered.Phases {
		objects = append(objects, phase.Objects...)
	}
	return readiness.ContentsOf(objects), nil
}
