package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/extension"
)

func asks(name, pkg string) extension.Extension {
	one := extension.Extension{}
	one.Name, one.Spec.Source.Catalog = name, &extension.Catalog{PackageName: pkg}
	return one
}

// TestAskingFor: of extensions and what they have installed a caller sees what they may read.
func TestAskingFor(t *testing.T) {
	lamp := revision(1, "lamp", "1.0.0", true)
	lamp.Name, lamp.Annotations[v1alpha1.BundleAnnotation] = "b-1", "lamp.v1.0.0"
	rope := revision(1, "rope", "1.0.0", true)
	rope.Name = "c-1"
	extensions := func(context.Context) ([]extension.Extension, error) {
		image := extension.Extension{}
		image.Name = "image"
		return []extension.Extension{asks("c", "lamp"), asks("b", "lamp"), asks("a", "lamp"), asks("other", "rope"), image}, nil
	}
	revisions := func(context.Context) (map[string][]olm.ClusterExtensionRevision, error) {
		return map[string][]olm.ClusterExtensionRevision{"b": {lamp}, "c": {rope}}, nil
	}
	const all, allRevisions = "list clusterextensions.olm.operatorframework.io", "list clusterextensionrevisions.olm.operatorframework.io"
	const get, getRevision = "get clusterextensions.olm.operatorframework.io ", "get clusterextensionrevisions.olm.operatorframework.io "
	for name, c := range map[string]struct {
		reason string
		may    []string
		fail   error
		want   string
	}{
		"all":                  {"who may list both sees all; what another package has installed is nothing", []string{all, allRevisions}, nil, "a= b=lamp.v1.0.0 c="},
		"extensions only":      {"what is installed is in revisions", []string{all}, nil, ""},
		"one":                  {"a team that may read its own", []string{get + "b", getRevision + "b-1"}, nil, "b=lamp.v1.0.0"},
		"without the revision": {"what would be said of it tells what is installed", []string{get + "b"}, nil, ""},
		"not installed yet":    {"there is no revision to read", []string{get + "a"}, nil, "a="},
		"nothing":              {"nothing", nil, nil, ""},
		"no answer":            {"a missing answer is no", nil, errors.New("no answer"), "error"},
	} {
		t.Run(name, func(t *testing.T) {
			by := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				asked := strings.TrimSpace(a.GetVerb() + " " + a.GetResource() + "." + a.GetAPIGroup() + " " + a.GetName())
				if c.fail == nil && slices.Contains(c.may, asked) {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", c.fail
			})
			found, err := AskingFor(extensions, revisions, func(context.Context) *clusterversion.Kubernetes { return nil }, by)(request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), "lamp")
			var got []string
			for _, one := range found {
				installed := ""
				if one.Installed != nil {
					installed = one.Installed.Name
				}
				got = append(got, one.Extension.Name+"="+installed)
			}
			if c.fail != nil {
				if !apierrors.IsServiceUnavailable(err) || len(got) > 0 {
					t.Errorf("%s: got %v, %v", c.reason, got, err)
				}
				return
			}
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%s: got %v, %v, want %s", c.reason, got, err, c.want)
			}
		})
	}
}
