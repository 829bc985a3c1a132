package diff

import (
	"context"

	"github.com/penstock-project/penstock/pkg/manifest"
)

type comparison struct {
	ctx     context.Context
	options Options
}

func newComparison(ctx context.Context, options Options) *comparison {
	options.Limits = options.Limits.withDefaults()
	return &comparison{ctx: ctx, options: options}
}

func (c *comparison) change(old, new *manifest.Object) Change {
	return Change{}
}

func (c *comparison) report(old, new []manifest.Object) Report {
	return Report{}
}
