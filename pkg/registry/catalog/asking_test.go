package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/registry/catalog/catalogpackage"
)

func asks(name, pkg string) extension.Extension {
	one := extension.Extension{}
	one.Name, one.Spec.Source.Catalog = name, &extension.Catalog{PackageName: pkg}
	return one
}

func noVersion(context.Context, user.Info, string) (clusterversion.Kubernetes, error) {
	return clusterversion.Kubernetes{}, errors.New("no version")
}

// TestVersions: each cluster is asked once, and the number of clusters is bounded. Each extension
// gets the version of its cluster.
func TestVersions(t *testing.T) {
	var all []catalogpackage.Asked
	for i := range maxClusters + 2 {
		one := asks(fmt.Sprintf("e%02d", i), "lamp")
		if i > 1 { // two extensions have the default cluster
			one.Annotations = map[string]string{extension.TargetAnnotation: fmt.Sprintf("t%d", i)}
		}
		all = append(all, catalogpackage.Asked{Extension: &one})
	}
	var asked sync.Map
	version := Version(func(_ context.Context, caller user.Info, target string) (clusterversion.Kubernetes, error) {
		if _, again := asked.LoadOrStore(target, true); again || caller.GetName() != "alice" {
			t.Errorf("target %q is asked again, or for %s", target, caller.GetName())
		}
		if target == "t2" {
			return clusterversion.Kubernetes{}, errors.New("you cannot use target t2")
		}
		return clusterversion.Kubernetes{Major: 1, Minor: uint(30 + len(target))}, nil
	})
	version.add(t.Context(), &user.DefaultInfo{Name: "alice"}, all)
	for i, one := range all {
		want := fmt.Sprintf("1.%d.0", 30+len(one.Extension.Annotations[extension.TargetAnnotation]))
		switch i {
		case 2:
			want = "you cannot use target t2"
		case maxClusters + 1:
			want = fmt.Sprintf("one answer asks at most %d clusters", maxClusters)
		}
		got := one.NoCluster
		if one.Cluster != nil {
			got += one.Cluster.String()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", one.Extension.Name, got, want)
		}
	}
}

// TestAskingFor: callers see the extensions and installed revisions that they may read.
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
			found, err := AskingFor(extensions, revisions, noVersion, by)(request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), "lamp")
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
