package app

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/imagetemplate"
	"github.com/penstock-project/penstock/pkg/controller/metrics"
	"github.com/penstock-project/penstock/pkg/extension/author"
	template "github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/leadership"
)

// startTemplates adds the loop of image templates to a term.
func startTemplates(ctx context.Context, term leadership.Term) error {
	options, core, err := templateOptions(ctx, term)
	if err != nil {
		return err
	}
	return term.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for _, kind := range annotated.Kinds() {
			feature := "Templates of images of " + kind.Kind + "s"
			if accessreview.MayWatch(ctx, core, objectwatch.Definitions, "", kind.Definition(), feature) && accessreview.MayWatch(ctx, core, kind.Resource, "", "", feature) {
				options.Kinds = append(options.Kinds, kind)
			}
		}
		controller := imagetemplate.New(options)
		if err := metrics.AddTemplates(term.Metrics, func() metrics.Templates { return controller.States() }); err != nil {
			return err
		}
		return controller.Run(ctx)
	}))
}

func templateOptions(ctx context.Context, term leadership.Term) (o imagetemplate.Options, core kubernetes.Interface, err error) {
	own, granted := component(term.Host, "image-templates"), component(term.Templates, "image-templates")
	o = imagetemplate.Options{Key: author.NewKey(term.Digester.SecretKey), Clock: clock.RealClock{}}
	if core, err = kubernetes.NewForConfig(own); err == nil {
		o.Catalogs, err = dynamic.NewForConfig(own)
	}
	if err == nil {
		o.Definitions, err = metadata.NewForConfig(own)
	}
	if err == nil {
		o.Objects, err = metadata.NewForConfig(granted)
	}
	if err != nil {
		return o, nil, fmt.Errorf("connecting to the host for templates of images: %w", err)
	}
	reads := templateReads{}
	if reads.Reader, err = lookup.New(own); err != nil {
		return o, nil, err
	}
	if reads.granted, err = lookup.New(granted); err != nil {
		return o, nil, err
	}
	o.Reader, o.Rights = reads, hostRights{core}
	o.Events, err = recorder(ctx, term, &targetclient.Counter{})
	return o, core, err
}

// templateReads reads versions and kinds, which are not secret, as this process. It reads objects
// as the identity that has been granted the right.
type templateReads struct {
	*lookup.Reader
	granted *lookup.Reader
}

// Read implements imagetemplate.Reader.
func (r templateReads) Read(ctx context.Context, resource lookup.Resource, field template.Field) (string, error) {
	return r.granted.Read(ctx, resource, field)
}

type hostRights struct{ host kubernetes.Interface }

// May implements imagetemplate.Rights and extension.Rights.
func (r hostRights) May(ctx context.Context, who user.Info, asked authz.Right) (bool, error) {
	return accessreview.May(ctx, r.host, who, asked)
}
