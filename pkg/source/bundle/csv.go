package bundle

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
)

// csv has the needed fields of a ClusterServiceVersion. Deployments are also kept as decoded JSON,
// so that fields without a type here are not lost.
type csv struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Version        string `json:"version"`
		MinKubeVersion string `json:"minKubeVersion"`
		Install        struct {
			Spec strategy `json:"spec"`
		} `json:"install"`
		InstallModes []struct {
			Type      string `json:"type"`
			Supported bool   `json:"supported"`
		} `json:"installModes"`
		Definitions ownedAndRequired[definition] `json:"customresourcedefinitions"`
		APIServices ownedAndRequired[apiService] `json:"apiservicedefinitions"`
		Webhooks    []webhook                    `json:"webhookdefinitions"`
	} `json:"spec"`
}

type strategy struct {
	Deployments        []deployment `json:"deployments"`
	Permissions        []permission `json:"permissions"`
	ClusterPermissions []permission `json:"clusterPermissions"`
}

type deployment struct {
	Name  string            `json:"name"`
	Label map[string]string `json:"label"`
	// Spec is the spec of the Deployment as written.
	Spec map[string]any `json:"spec"`
}

// permission has the rights of a ServiceAccount. The names of roles are hashes of its JSON, so its
// fields, their order and their tags must equal OLM's.
type permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// serviceAccount returns the name of the ServiceAccount with the permission.
func (p permission) serviceAccount() string {
	if p.ServiceAccountName == "" {
		return defaultServiceAccount
	}
	return p.ServiceAccountName
}

// defaultServiceAccount exists in every namespace, so it is not created.
const defaultServiceAccount = "default"

type ownedAndRequired[T any] struct {
	Owned    []T `json:"owned"`
	Required []T `json:"required"`
}

type definition struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type apiService struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

const (
	validatingWebhook = "ValidatingAdmissionWebhook"
	mutatingWebhook   = "MutatingAdmissionWebhook"
	conversionWebhook = "ConversionWebhook"
)

type webhook struct {
	GenerateName            string                              `json:"generateName"`
	Type                    string                              `json:"type"`
	DeploymentName          string                              `json:"deploymentName"`
	ContainerPort           int32                               `json:"containerPort"`
	TargetPort              *intstr.IntOrString                 `json:"targetPort"`
	Rules                   []admissionv1.RuleWithOperations    `json:"rules"`
	FailurePolicy           *admissionv1.FailurePolicyType      `json:"failurePolicy"`
	MatchPolicy             *admissionv1.MatchPolicyType        `json:"matchPolicy"`
	ObjectSelector          *metav1.LabelSelector               `json:"objectSelector"`
	SideEffects             *admissionv1.SideEffectClass        `json:"sideEffects"`
	TimeoutSeconds          *int32                              `json:"timeoutSeconds"`
	AdmissionReviewVersions []string                            `json:"admissionReviewVersions"`
	ReinvocationPolicy      *admissionv1.ReinvocationPolicyType `json:"reinvocationPolicy"`
	WebhookPath             *string                             `json:"webhookPath"`
	ConversionCRDs          []string                            `json:"conversionCRDs"`
}

// port returns the port of the Service, which the API server calls.
func (w webhook) port() int32 {
	if w.ContainerPort == 0 {
		return defaultWebhookPort
	}
	return w.ContainerPort
}

const defaultWebhookPort = 443

// decode decodes a JSON object. Integers stay integers.
func decode(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
