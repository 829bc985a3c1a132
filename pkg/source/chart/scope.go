package chart

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// ofCluster are the kinds that are in no namespace, of Kubernetes itself and of what many
// charts use.
func ofCluster(kind schema.GroupKind) bool {
	names := map[string]string{
		"":                             "Namespace Node PersistentVolume",
		"admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
		"apiextensions.k8s.io":         "CustomResourceDefinition",
		"apiregistration.k8s.io":       "APIService",
		"certificates.k8s.io":          "CertificateSigningRequest ClusterTrustBundle",
		"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
		"gateway.networking.k8s.io":    "GatewayClass",
		"internal.apiserver.k8s.io":    "StorageVersion",
		"networking.k8s.io":            "IPAddress IngressClass ServiceCIDR",
		"node.k8s.io":                  "RuntimeClass",
		"policy":                       "PodSecurityPolicy",
		"rbac.authorization.k8s.io":    "ClusterRole ClusterRoleBinding",
		"resource.k8s.io":              "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
		"scheduling.k8s.io":            "PriorityClass",
		"security.openshift.io":        "SecurityContextConstraints",
		"snapshot.storage.k8s.io":      "VolumeSnapshotClass VolumeSnapshotContent",
		"storage.k8s.io":               "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
		"storagemigration.k8s.io":      "StorageVersionMigration",
	}
	return slices.Contains(strings.Fields(names[kind.Group]), kind.Kind)
}

// isBuiltin tells whether a group is one of Kubernetes itself: which of its kinds are in
// no namespace is known. Names do not tell: projects beside it define kinds under k8s.io too.
func isBuiltin(group string) bool { return kubernetesscheme.Scheme.IsGroupRegistered(group) }

// scope puts objects into the namespace of the release, when they name none.
type scope struct {
	namespace string
	// defined says which kinds the chart defines, and whether they are in a namespace.
	defined map[schema.GroupKind]bool
	warned  map[schema.GroupKind]bool
	out     *source.Rendered
}

func scopes(of objects, namespace string, out *source.Rendered) *scope {
	s := &scope{namespace: namespace, defined: map[schema.GroupKind]bool{}, warned: map[schema.GroupKind]bool{}, out: out}
	for _, one := range slices.Concat(of.definitions, of.manifests) {
		if !one.IsDefinition() {
			continue
		}
		kind, err := one.DefinedKind()
		content, decodeErr := decode(one.Object)
		if err != nil || decodeErr != nil {
			// What is wrong with it, source.Sort says.
			continue
		}
		spec, _ := content["spec"].(map[string]any)
		s.defined[kind] = spec["scope"] != "Cluster"
	}
	return s
}

// place gives an object the namespace of the release. Of a kind that nobody here defines it
// is not known whether it has one; most have, but for those whose names say otherwise.
func (s *scope) place(one directory.Located) (directory.Located, error) {
	kind := one.GroupKind()
	if one.Namespace != "" || ofCluster(kind) {
		return one, nil
	}
	inNamespace, known := s.defined[kind]
	switch {
	case known && !inNamespace:
		return one, nil
	case !known && !isBuiltin(kind.Group):
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
	content, err := decode(one.Object)
	if err != nil {
		return one, err
	}
	content["metadata"].(map[string]any)["namespace"] = s.namespace
	return changed(one, content)
}
