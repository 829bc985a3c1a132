package maker

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/right"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

// Definitions reads CustomResourceDefinitions of the cluster that a target names, of the default
// one when it is empty. It returns nil for a definition that does not exist.
type Definitions interface {
	Definition(ctx context.Context, target, name string) (*apiextensionsv1.CustomResourceDefinition, error)
}

// Capabilities reads what charts see of the cluster that a target names, of the default one when
// it is empty.
type Capabilities interface {
	Capabilities(ctx context.Context, target string) (*template.Capabilities, error)
}

// Rights asks the host, now, whether a user has a right.
type Rights interface {
	May(ctx context.Context, who user.Info, asked right.Right) (bool, error)
}
