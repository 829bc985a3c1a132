// Package deployment writes the YAML that users without --register apply: rights, identities and
// webhooks. It derives all objects from the lists in the code.
package deployment

import (
	"fmt"
	"io"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/metriccheck"
	"github.com/penstock-project/penstock/pkg/server/certificates"
	"github.com/penstock-project/penstock/pkg/server/crdconflict"
	"github.com/penstock-project/penstock/pkg/server/host"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
)

type reasonedRule struct {
	why  string
	rule rbacv1.PolicyRule
}

func to(why, group string, resources []string, verbs []string, names ...string) reasonedRule {
	return reasonedRule{why, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, ResourceNames: names, Verbs: verbs}}
}

func all(words ...string) []string { return words }

// clusterRights returns the rights that this process needs in the host in its own name.
func clusterRights() []reasonedRule {
	var rights []reasonedRule
	for _, f := range host.Features() {
		for _, resource := range f.Lists {
			rights = append(rights, to(f.Name, resource.Group, all(resource.Resource), all("list", "watch")))
		}
		for _, resource := range f.Gets {
			rights = append(rights, to(f.Name, resource.Group, all(resource.Resource), all("get")))
		}
	}
	return append(rights,
		to("NamespaceLifecycle: a namespace that is not known yet", "", all("namespaces"), all("get")),
		to(host.PriorityAndFairness, "flowcontrol.apiserver.k8s.io", all("flowschemas/status"), all("patch")),
		to("rollback: the generation of an owner, and who is held by one", hub.GroupName, all("clusterextensions"), all("get", "list", "watch")),
		to("rollback: in which versions objects are stored", "apiextensions.k8s.io", all("customresourcedefinitions"), all("get")),
		to("whether kubectl shows another resource of the name of ours", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch"), crdconflict.Definition(v1alpha1.Resource("clusterextensionrevisions"))),
		to("ClusterCatalogs", clustercatalog.Resource.Group, all(clustercatalog.Resource.Resource), all("list", "watch", "patch")),
		to("ClusterCatalogs", clustercatalog.Resource.Group, all(clustercatalog.Resource.Resource+"/status"), all("update", "patch")),
		to("ClusterCatalogs: whether the cluster has them", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch"), clustercatalog.DefinitionName),
		to("ClusterExtensions: whether the cluster has them", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch"), extension.DefinitionName),
		to("ClusterCatalogs: whether catalogd writes them", "coordination.k8s.io", all("leases"), all("list", "watch"), clustercatalog.CatalogdLease),
		to("ClusterExtensions", extension.Resource.Group, all(extension.Resource.Resource+"/status"), all("update")),
		to("ClusterExtensions: whether the cluster has them", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch"), extension.Resource.GroupResource().String()),
		to("ClusterExtensions: whether operator-controller writes them", "coordination.k8s.io", all("leases"), all("list", "watch"), extension.OperatorControllerLease),
		to("templates of images: CatalogSources", annotated.CatalogSources().Resource.Group, all(annotated.CatalogSources().Resource.Resource), all("list", "watch", "patch")),
		to("templates of images: CatalogSources", annotated.CatalogSources().Resource.Group, all(annotated.CatalogSources().Resource.Resource+"/status"), all("patch")),
		to("templates of images: whether a kind has come, while one is missing", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch")),
		to("ChartKinds", chartkind.Resource.Group, all(chartkind.Resource.Resource), all("list", "watch", "patch")),
		to("ChartKinds", chartkind.Resource.Group, all(chartkind.Resource.Resource+"/status"), all("patch")),
		to("ChartKinds: whether the cluster has them", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch"), chartkind.DefinitionName),
		to("MaintenanceWindows", maintenancewindow.Resource.Group, all(maintenancewindow.Resource.Resource), all("list", "watch")),
		to("MaintenanceWindows", maintenancewindow.Resource.Group, all(maintenancewindow.Resource.Resource+"/status"), all("patch")),
		to("MaintenanceWindows: whether the cluster has them", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch"), maintenancewindow.DefinitionName),
		to("MetricChecks", metriccheck.Resource.Group, all(metriccheck.Resource.Resource), all("list", "watch")),
		to("MetricChecks: whether the cluster has them", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch"), metriccheck.DefinitionName),
		to("ClusterExtensionSets", extensionset.Resource.Group, all(extensionset.Resource.Resource), all("list", "watch", "update")),
		to("ClusterExtensionSets", extensionset.Resource.Group, all(extensionset.Resource.Resource+"/status"), all("update")),
		to("ClusterExtensionSets: the extensions of their clusters", extension.Resource.Group, all(extension.Resource.Resource), all("create", "update", "delete")),
		to("ClusterExtensionSets: whether the cluster has them", "apiextensions.k8s.io", all("customresourcedefinitions"), all("list", "watch"), extensionset.DefinitionName),
		to("what happened to revisions", "", all("events"), all("create", "patch")),
	)
}

// setOwner is needed where the admission plugin OwnerReferencesPermissionEnforcement runs, as on
// OpenShift.
const setOwner = "--register: an owner for them, where the cluster asks for this right before it lets anybody set one"

// registrationRights returns the additional rights for --register. A user who grants rights must
// have them, or have escalate and bind.
func registrationRights(versions []schema.GroupVersion) []reasonedRule {
	apiServices := make([]string, 0, len(versions))
	for _, version := range versions {
		apiServices = append(apiServices, registration.APIServiceName(version))
	}
	names := jobNames(serviceaccounts.Jobs())
	const admission = "admissionregistration.k8s.io"
	policies := all("validatingadmissionpolicies", "validatingadmissionpolicybindings")
	return []reasonedRule{
		to("--register: the namespace", "", all("namespaces"), all("create")),
		to("--register: the API", "apiregistration.k8s.io", all("apiservices"), all("create", "list", "watch")),
		to("--register: the API", "apiregistration.k8s.io", all("apiservices"), all("get", "patch"), apiServices...),
		to(setOwner, "apiregistration.k8s.io", all("apiservices"), all("delete"), apiServices...),
		to("--register: the definitions of kinds that people declare things with", "apiextensions.k8s.io", all("customresourcedefinitions"), all("create")),
		to("--register: the definitions of kinds that people declare things with", "apiextensions.k8s.io", all("customresourcedefinitions"), all("get", "patch"), clustercatalog.DefinitionName, extension.DefinitionName, chartkind.DefinitionName, maintenancewindow.DefinitionName, metriccheck.DefinitionName, extensionset.DefinitionName),
		to("--register: identities of jobs", rbacv1.GroupName, all("clusterroles", "clusterrolebindings"), all("create")),
		to("--register: identities of jobs", rbacv1.GroupName, all("clusterroles"), all("list", "watch", "patch", "escalate", "bind"), names...),
		to("--register: identities of jobs", rbacv1.GroupName, all("clusterrolebindings"), all("list", "watch", "patch"), names...),
		to("--register: policies that limit the jobs, and that check the author of a freeze", admission, policies, all("create")),
		to("--register: policies that limit the jobs, and that check the author of a freeze", admission, policies, all("patch"), serviceaccounts.LimitsName, v1alpha1.FreezeConfigMap),
		to("--register: webhooks", admission, all("validatingwebhookconfigurations", "mutatingwebhookconfigurations"), all("create")),
		to("--register: webhooks", admission, all("validatingwebhookconfigurations"), all("get", "patch"), registration.WebhookConfiguration),
		to("--register: webhooks", admission, all("mutatingwebhookconfigurations"), all("patch"), registration.WebhookConfiguration),
		to(setOwner, admission, all("validatingwebhookconfigurations", "mutatingwebhookconfigurations"), all("delete"), registration.WebhookConfiguration),
	}
}

// namespaceRights returns the rights that this process needs in its own namespace.
func namespaceRights() []reasonedRule {
	names := jobNames(serviceaccounts.Jobs())
	return []reasonedRule{
		to("the certificate authority", "", all("secrets"), all("create")),
		to("the certificate authority", "", all("secrets"), all("update"), certificates.AuthoritySecret),
		to("kubeconfigs of targets, receivers of notifications, tokens of MetricChecks", "", all("secrets"), all("get", "list", "watch")),
		to("pull secrets of this ServiceAccount", "", all("serviceaccounts"), all("get"), registration.ServiceAccount),
		to("the witness of the store", "", all("configmaps"), all("create")),
		to("the witness of the store", "", all("configmaps"), all("get", "update"), storeguard.WitnessName),
		to("the freeze", "", all("configmaps"), all("list", "watch"), v1alpha1.FreezeConfigMap),
		to("leader election", "coordination.k8s.io", all("leases"), all("create")),
		to("leader election", "coordination.k8s.io", all("leases"), all("get", "update"), leadership.LeaseName),
		to("tokens of jobs", "", all("serviceaccounts/token"), all("create"), names...),
		to("--register: identities of jobs", "", all("serviceaccounts"), all("create")),
		to("--register: identities of jobs", "", all("serviceaccounts"), all("list", "watch", "patch"), names...),
		to("--register: where it is reached", "", all("services"), all("create")),
		to("--register: where it is reached", "", all("services"), all("get", "list", "watch", "patch"), registration.ServiceName),
	}
}

func jobNames(jobs []serviceaccounts.Job) []string {
	names := make([]string, len(jobs))
	for i, j := range jobs {
		names[i] = j.Name
	}
	return names
}

// WriteServerRights writes YAML: the ServiceAccount of this process and its rights in the host. It
// derives the rights from the requests that the code sends, so no right is missing or unused.
// versions are the registered group versions.
func WriteServerRights(w io.Writer, namespace string, versions []schema.GroupVersion) error {
	y := &manifests{w: w}
	y.text("# Roles of the server itself, --register included; those of jobs are in rbac-engine.yaml. Generated by\n" +
		"# hack/update-deploy.sh. TestLeastRights runs the server with these rights alone.\n")
	y.object("", "v1", "ServiceAccount", registration.ServiceAccount, namespace, nil)
	own := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: registration.ServiceAccount, Namespace: namespace}
	y.role("", registration.ServerRole, "", append(clusterRights(), registrationRights(versions)...))
	y.bind(registration.ServerRole, "", "ClusterRole", registration.ServerRole, own)
	y.role("", registration.ServerRole, namespace, namespaceRights())
	y.bind(registration.ServerRole, namespace, "Role", registration.ServerRole, own)
	// The users that call Penstock, and their rights.
	y.bind("penstock-delegation", "", "ClusterRole", "system:auth-delegator", own)
	y.bind("penstock-authentication", metav1.NamespaceSystem, "Role", "extension-apiserver-authentication-reader", own)
	return y.err
}

// WriteJobRights writes the identities of jobs as YAML, as --register applies them.
func WriteJobRights(w io.Writer, namespace string) error {
	y := &manifests{w: w}
	y.text("# Roles of the jobs, each in a name of its own: docs/reference/identities.md. Generated by hack/update-deploy.sh;\n" +
		"# --register keeps them so.\n")
	y.apply("# Limits of jobs, in addition to their rights.\n", serviceaccounts.LimitPolicy(namespace))
	y.apply("", serviceaccounts.LimitBinding())
	for _, j := range serviceaccounts.Jobs() {
		y.object("", "v1", "ServiceAccount", j.Name, namespace, nil)
		rights := make([]reasonedRule, len(j.Rules))
		for i, rule := range j.Rules {
			rights[i] = reasonedRule{rule: rule}
		}
		y.role("", j.Name, "", rights)
		y.bind(j.Name, "", "ClusterRole", j.Name, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: j.Name, Namespace: namespace})
	}
	y.apply("# The author of a freeze gives their own name.\n", registration.FreezePolicy(namespace))
	y.apply("", registration.FreezeBinding())
	return y.err
}

// manifests writes YAML documents, with comments on rules.
type manifests struct {
	w   io.Writer
	err error
}

func (m *manifests) text(text string) {
	if m.err == nil {
		_, m.err = io.WriteString(m.w, text)
	}
}

func (m *manifests) apply(comment string, object any) {
	out, err := yaml.Marshal(object)
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("writing a %T: %w", object, err)
	}
	m.text("---\n" + comment + string(out))
}

func (m *manifests) object(comment, apiVersion, kind, name, namespace string, rest map[string]any) {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range rest {
		object[key] = value
	}
	m.apply(comment, object)
}

func (m *manifests) role(comment, name, namespace string, rights []reasonedRule) {
	kind := "Role"
	if namespace == "" {
		kind = "ClusterRole"
	}
	m.object(comment, rbacv1.SchemeGroupVersion.String(), kind, name, namespace, nil)
	if len(rights) == 0 {
		m.text("rules: []\n")
		return
	}
	m.text("rules:\n")
	last := ""
	for _, r := range rights {
		if r.why != last {
			m.text("# " + r.why + "\n")
			last = r.why
		}
		line := fmt.Sprintf("- {apiGroups: %s, resources: %s", flow(r.rule.APIGroups), flow(r.rule.Resources))
		if len(r.rule.ResourceNames) > 0 {
			line += ", resourceNames: " + flow(r.rule.ResourceNames)
		}
		m.text(line + ", verbs: " + flow(r.rule.Verbs) + "}\n")
	}
}

func flow(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; word == "" || word == "*" {
			quoted[i] = fmt.Sprintf("%q", word)
		}
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (m *manifests) bind(name, namespace, kind, role string, subject rbacv1.Subject) {
	binding := "RoleBinding"
	if namespace == "" {
		binding = "ClusterRoleBinding"
	}
	m.object("", rbacv1.SchemeGroupVersion.String(), binding, name, namespace, map[string]any{
		"roleRef":  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		"subjects": []rbacv1.Subject{subject},
	})
}

// WriteWebhooks writes the webhook configurations that --register applies, without the CA bundle of
// our certificate.
func WriteWebhooks(w io.Writer, namespace string, webhooks []webhook.Webhook) error {
	y := &manifests{w: w}
	y.text("# The webhooks for kinds of the cluster. Generated by hack/update-deploy.sh; docs/reference/webhooks.md explains it.\n" +
		"# clientConfig.caBundle of those that lead to Service penstock is missing: it is tls.crt of Secret penstock-ca, or what verifies --tls-cert-file.\n")
	at := webhook.Address{Namespace: namespace, Service: registration.ServiceName, Port: servicePort}
	y.apply("", webhook.Configuration(registration.WebhookConfiguration, webhooks, at))
	y.apply("", webhook.MutatingConfiguration(registration.WebhookConfiguration, webhooks, at))
	return y.err
}

// WriteDefinitions writes the CustomResourceDefinitions that --register installs.
func WriteDefinitions(w io.Writer) error {
	for i, d := range registration.Definitions() {
		if i > 0 {
			if _, err := io.WriteString(w, "---\n"); err != nil {
				return err
			}
		}
		if _, err := w.Write(d.YAML()); err != nil {
			return err
		}
	}
	return nil
}

const servicePort = 443
