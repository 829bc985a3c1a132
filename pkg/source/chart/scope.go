package chart

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// isBuiltin reports whether a group belongs to Kubernetes itself, whose cluster-scoped kinds are
// known. The name does not suffice, because other projects also define kinds under k8s.io.
func isBuiltin(group string) bool { return kubernetesscheme.Scheme.IsGroupRegistered(group) }

// scope sets the namespace of objects that have none.
type scope struct {
	namespace string
	// defined has the kinds that the chart defines; true for namespaced kinds.
	defined map[schema.GroupKind]bool
	// cluster has the kinds that the cluster serves; nil if unknown.
	cluster *template.Capabilities
	warned  map[schema.GroupKind]bool
	out     *source.Rendered
}

func scopes(of objects, options Options, out *source.Rendered) *scope {
	return &scope{
		namespace: options.Namespace, defined: directory.Scopes(slices.Concat(of.definitions, of.manifests)), cluster: options.Cluster,
		warned: map[schema.GroupKind]bool{}, out: out,
	}
}

// inNamespace reports whether a kind is namespaced, if that is known.
func (s *scope) inNamespace(kind schema.GroupVersionKind) (inNamespace, known bool) {
	if source.IsClusterScoped(kind.GroupKind()) {
		return false, true
	}
	if inNamespace, known = s.defined[kind.GroupKind()]; known {
		return inNamespace, true
	}
	if s.cluster != nil && slices.Contains(s.cluster.APIVersions, kind.GroupVersion().String()+"/"+kind.Kind) {
		return !slices.Contains(s.cluster.ClusterScoped, kind.GroupKind().String()), true
	}
	return true, isBuiltin(kind.Group)
}

// place sets the namespace of the release. An unknown kind is assumed to be namespaced, unless its
// name begins with Cluster.
func (s *scope) place(one directory.Located) (directory.Located, error) {
	kind := one.GroupKind()
	inNamespace, known := s.inNamespace(one.GroupVersionKind())
	ofCluster := known && !inNamespace
	switch {
	case one.Namespace != "" && ofCluster:
		s.out.Warnings = append(s.out.Warnings, source.Warning{File: one.File, Line: one.LineAt("metadata", "namespace"),
			Message: fmt.Sprintf("%s: metadata.namespace is left out, because %s is cluster-scoped", describe(one.Object), kind)})
		return one.InNamespace("")
	case one.Namespace != "" || ofCluster:
		return one, nil
	case !known:
		inNamespace = !strings.HasPrefix(kind.Kind, "Cluster")
		if !s.warned[kind] {
			s.warned[kind] = true
			where := "in no namespace"
			if inNamespace {
				where = "in the namespace of the release"
			}
			s.out.Warnings = append(s.out.Warnings, source.Warning{File: one.File, Line: one.Line,
				Message: fmt.Sprintf("%s: the chart does not say whether %s is in a namespace; it is assumed to be %s: set metadata.namespace if it is not", describe(one.Object), kind, where)})
		}
		if !inNamespace {
			return one, nil
		}
	}
	return one.InNamespace(s.namespace)
}
