package privilege

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// beyond is a check that an API server makes of the author of an object in addition to the right to
// write it. When Penstock writes, the API server checks Penstock, so Penstock must check the
// requester.
type beyond struct {
	// rights that the API server would check.
	rights []authz.Right
	// refusal is the reason why no right allows the change; "" if a right does.
	refusal string
}

// beyondOf returns these additional checks for an object of a revision.
// docs/reference/privileges.md has this table and its limits.
func beyondOf(object manifest.Object, k *kinds) (beyond, error) {
	switch (schema.GroupKind{Group: object.Group, Kind: object.Kind}) {
	case schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:
		return beyond{refusal: "the cluster would treat it as a request of Penstock"}, nil
	case schema.GroupKind{Group: olm.GroupName, Kind: "ClusterExtensionRevision"}:
		return beyond{refusal: "Penstock would be the requester of a revision within a revision"}, nil
	case schema.GroupKind{Group: olm.GroupName, Kind: "ClusterExtension"}:
		return beyond{refusal: "it would be installed in the name of Penstock"}, nil
	case schema.GroupKind{Group: hco.GroupName, Kind: "ConfigurationProfileDefinition"}:
		return beyond{refusal: "its ServiceAccount gets rights of its author, and Penstock would be the author"}, nil
	case schema.GroupKind{Group: "cert-manager.io", Kind: "CertificateRequest"}:
		return beyond{refusal: "it would be approved as a request of Penstock"}, nil
	case schema.GroupKind{Group: "template.openshift.io", Kind: "TemplateInstance"}:
		return beyond{refusal: "its objects would be made with the rights of Penstock"}, nil
	case schema.GroupKind{Group: openshiftRBAC, Kind: "Role"}, schema.GroupKind{Group: openshiftRBAC, Kind: "ClusterRole"},
		schema.GroupKind{Group: openshiftRBAC, Kind: "RoleBinding"}, schema.GroupKind{Group: openshiftRBAC, Kind: "ClusterRoleBinding"}:
		return beyond{refusal: "it grants rights, which are only checked in roles and bindings of " + rbacv1.GroupName}, nil
	case schema.GroupKind{Group: openshiftBuilds, Kind: "Build"}, schema.GroupKind{Group: openshiftBuilds, Kind: "BuildConfig"}:
		return beyondBuild(object)
	case schema.GroupKind{Group: openshiftImages, Kind: "ImageStream"}, schema.GroupKind{Group: openshiftImages, Kind: "ImageStreamTag"}:
		return beyondImages(object)
	case schema.GroupKind{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:
		return beyondTrustBundle(object)
	case schema.GroupKind{Group: admissionGroup, Kind: "ValidatingAdmissionPolicy"},
		schema.GroupKind{Group: admissionGroup, Kind: "MutatingAdmissionPolicy"},
		schema.GroupKind{Group: admissionGroup, Kind: "ValidatingAdmissionPolicyBinding"},
		schema.GroupKind{Group: admissionGroup, Kind: "MutatingAdmissionPolicyBinding"}:
		return beyondPolicy(object, k)
	default:
		return beyond{}, nil
	}
}

const (
	admissionGroup = "admissionregistration.k8s.io"
	// openshiftRBAC serves the same roles and bindings under another group.
	openshiftRBAC = "authorization.openshift.io"
)

func beyondTrustBundle(object manifest.Object) (beyond, error) {
	var bundle struct {
		Spec struct {
			SignerName string `json:"signerName"`
		} `json:"spec"`
	}
	if err := decode(object, &bundle); err != nil {
		return beyond{}, err
	}
	// A bundle with a signer has a colon in its name, and a bundle without a signer has none. A
	// manifest that patches an existing bundle may leave the signer out. The right on all signers
	// is required then.
	if bundle.Spec.SignerName == "" && !strings.Contains(object.Name, ":") {
		return beyond{}, nil
	}
	return beyond{rights: []authz.Right{{Verb: "attest", Group: "certificates.k8s.io", Resource: "signers", Name: bundle.Spec.SignerName}}}, nil
}

// beyondPolicy is for policies that read parameters, because their messages can reveal the
// parameters. A binding does not name the kind of its parameters, so its author needs the right to
// read all kinds.
func beyondPolicy(object manifest.Object, k *kinds) (beyond, error) {
	parameters, err := parametersOf(object)
	switch {
	case err != nil:
		return beyond{}, err
	case parameters.kind != nil:
		return beyond{rights: []authz.Right{k.right("get", *parameters.kind)}}, nil
	case parameters.some:
		return beyond{rights: []authz.Right{{Verb: "get", Group: "*", Resource: "*"}}}, nil
	default:
		return beyond{}, nil
	}
}

// parameters of a policy, or of a binding of a policy.
type parameters struct {
	// kind that a policy names, as a reference without a name.
	kind *manifest.Ref
	// some is true for a binding that has parameters.
	some bool
}

func parametersOf(object manifest.Object) (parameters, error) {
	var policy struct {
		Spec struct {
			ParamKind *struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
			} `json:"paramKind"`
			ParamRef *struct{} `json:"paramRef"`
		} `json:"spec"`
	}
	if err := decode(object, &policy); err != nil {
		return parameters{}, err
	}
	found := parameters{some: policy.Spec.ParamRef != nil}
	if named := policy.Spec.ParamKind; named != nil {
		version, err := schema.ParseGroupVersion(named.APIVersion)
		if err != nil {
			return parameters{}, &unreadableError{object: object.ID, cause: fmt.Errorf("spec.paramKind.apiVersion: %w", err)}
		}
		found.kind = &manifest.Ref{ID: manifest.ID{Group: version.Group, Kind: named.Kind}, Version: version.Version}
	}
	return found, nil
}
