package bundle

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// validator is one rule for bundles. It does not depend on the configuration.
type validator struct {
	name string
	// rule is the text in the documentation.
	rule  string
	check func(*contents, *findings)
}

// validators returns all validators, in the order of their messages.
func validators() []validator {
	return []validator{
		{"deployment-name-unique", "no two Deployments have the same name", uniqueDeployments},
		{"deployment-name", "the name of a Deployment is a DNS-1123 subdomain", deploymentNames},
		{"definition-unique", "no two CustomResourceDefinitions have the same name", uniqueDefinitions},
		{"owned-definition-exists", "each owned CustomResourceDefinition is in the bundle", ownedDefinitions},
		{"package-name", "metadata/annotations.yaml names the package", packageName},
		{"conversion-install-mode", "a bundle with a ConversionWebhook supports AllNamespaces and no other install mode", conversionModes},
		{"webhook-deployment", "the Deployment of a webhook is in the ClusterServiceVersion", webhookDeployments},
		{"webhook-name-unique", "no two webhooks of the same type have the same generateName", uniqueWebhooks},
		{"webhook-name", "the generateName of a webhook is a DNS-1123 subdomain, apart from one dash at its end", webhookNames},
		{"conversion-unique", "at most one ConversionWebhook converts a CustomResourceDefinition", uniqueConversions},
		{"conversion-owned", "a ConversionWebhook converts only owned CustomResourceDefinitions", ownedConversions},
		{"webhook-rules", "no rule is about all API groups, olm.operatorframework.io, or webhook configurations", webhookRules},
		{"supported-kind", "every other object is of a kind that a bundle may have", supportedKinds},
	}
}

// findings collects the errors of validators.
type findings struct {
	contents *contents
	errs     directory.Errors
}

func (f *findings) add(field []any, format string, args ...any) {
	f.at(f.contents.csvFile, field, format, args...)
}

// at adds an error about a field of any object; a nil field means the whole object.
func (f *findings) at(object directory.Located, field []any, format string, args ...any) {
	where := ""
	if len(field) > 0 {
		where = fieldName(field) + ": "
	}
	f.errs.List = append(f.errs.List, &directory.Error{File: object.File, Line: object.LineAt(field...),
		Message: fmt.Sprintf("%s %s: %s%s", object.Kind, object.Name, where, fmt.Sprintf(format, args...))})
}

// fieldName formats a path: spec.install.spec.deployments[0].name.
func fieldName(field []any) string {
	var b strings.Builder
	for _, step := range field {
		switch step := step.(type) {
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		}
	}
	return b.String()
}

func (c *contents) validate() error {
	found := findings{contents: c}
	for _, one := range validators() {
		one.check(c, &found)
	}
	if len(found.errs.List) > 0 {
		return &found.errs
	}
	return nil
}

// Paths of fields of a ClusterServiceVersion.
func deploymentPath(i int, more ...any) []any {
	return append([]any{"spec", "install", "spec", "deployments", i}, more...)
}

func webhookPath(i int, more ...any) []any {
	return append([]any{"spec", "webhookdefinitions", i}, more...)
}

func uniqueDeployments(c *contents, found *findings) {
	seen := map[string]bool{}
	for i, one := range c.csv.Spec.Install.Spec.Deployments {
		if seen[one.Name] {
			found.add(deploymentPath(i, "name"), "Deployment %q is in the list already", one.Name)
		}
		seen[one.Name] = true
	}
}

func deploymentNames(c *contents, found *findings) {
	for i, one := range c.csv.Spec.Install.Spec.Deployments {
		for _, problem := range validation.IsDNS1123Subdomain(one.Name) {
			found.add(deploymentPath(i, "name"), "is %q: %s", one.Name, problem)
		}
	}
}

// uniqueDefinitions refuses duplicate definitions and definitions that are not of version v1. Reading
// already refuses duplicates.
func uniqueDefinitions(c *contents, found *findings) {
	seen := map[string]bool{}
	for _, one := range c.definitions {
		if seen[one.Name] {
			found.at(one, nil, "is in the bundle twice")
		}
		seen[one.Name] = true
		if one.Version != "v1" {
			found.at(one, []any{"apiVersion"}, "is %s, want apiextensions.k8s.io/v1: no supported Kubernetes serves another", one.APIVersion())
		}
	}
}

func ownedDefinitions(c *contents, found *findings) {
	for i, owned := range c.csv.Spec.Definitions.Owned {
		if !slices.ContainsFunc(c.definitions, func(one directory.Located) bool { return one.Name == owned.Name }) {
			found.add([]any{"spec", "customresourcedefinitions", "owned", i, "name"}, "CustomResourceDefinition %q is not in the bundle", owned.Name)
		}
	}
}

func packageName(c *contents, found *findings) {
	if c.packageName == "" {
		found.errs.List = append(found.errs.List, &directory.Error{File: annotationsFile, Message: "annotation " + packageAnnotation + " is missing or empty: it names the package"})
	}
}

func conversionModes(c *contents, found *findings) {
	modes := c.installModes()
	for i, one := range c.csv.Spec.Webhooks {
		if one.Type == conversionWebhook && (!modes.AllNamespaces || modes.OwnNamespace || modes.SingleNamespace || c.supportsMultiNamespace()) {
			found.add(webhookPath(i, "type"), "a %s needs a bundle that supports the install mode AllNamespaces and no other: a definition has one conversion for the whole cluster", conversionWebhook)
			return
		}
	}
}

func (c *contents) supportsMultiNamespace() bool {
	supported := false
	for _, mode := range c.csv.Spec.InstallModes {
		if mode.Type == "MultiNamespace" {
			supported = mode.Supported
		}
	}
	return supported
}

func webhookDeployments(c *contents, found *findings) {
	for i, one := range c.csv.Spec.Webhooks {
		if c.deployment(one.DeploymentName) == nil {
			found.add(webhookPath(i, "deploymentName"), "Deployment %q is not in spec.install.spec.deployments", one.DeploymentName)
		}
	}
}

// deployment returns a Deployment of the ClusterServiceVersion by name; nil if it does not exist.
func (c *contents) deployment(name string) *deployment {
	all := c.csv.Spec.Install.Spec.Deployments
	if i := slices.IndexFunc(all, func(one deployment) bool { return one.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func uniqueWebhooks(c *contents, found *findings) {
	type named struct{ kind, name string }
	seen := map[named]bool{}
	for i, one := range c.csv.Spec.Webhooks {
		if key := (named{one.Type, one.GenerateName}); seen[key] {
			found.add(webhookPath(i, "generateName"), "%s %q is in the list already", one.Type, one.GenerateName)
		} else {
			seen[key] = true
		}
	}
}

func webhookNames(c *contents, found *findings) {
	for i, one := range c.csv.Spec.Webhooks {
		for _, problem := range validation.IsDNS1123Subdomain(one.objectName()) {
			found.add(webhookPath(i, "generateName"), "is %q: %s", one.GenerateName, problem)
		}
		switch one.Type {
		case validatingWebhook, mutatingWebhook, conversionWebhook:
		default:
			found.add(webhookPath(i, "type"), "is %q, want %s, %s or %s", one.Type, validatingWebhook, mutatingWebhook, conversionWebhook)
		}
	}
}

func uniqueConversions(c *contents, found *findings) {
	seen := map[string]string{}
	for i, one := range c.csv.Spec.Webhooks {
		if one.Type != conversionWebhook {
			continue
		}
		for j, name := range one.ConversionCRDs {
			if by, twice := seen[name]; twice {
				found.add(webhookPath(i, "conversionCRDs", j), "CustomResourceDefinition %q is converted by %q already", name, by)
			}
			seen[name] = one.GenerateName
		}
	}
}

func ownedConversions(c *contents, found *findings) {
	for i, one := range c.csv.Spec.Webhooks {
		if one.Type != conversionWebhook {
			continue
		}
		for j, name := range one.ConversionCRDs {
			if !slices.ContainsFunc(c.csv.Spec.Definitions.Owned, func(owned definition) bool { return owned.Name == name }) {
				found.add(webhookPath(i, "conversionCRDs", j), "CustomResourceDefinition %q is not in spec.customresourcedefinitions.owned", name)
			}
		}
	}
}

// webhookRules refuses webhooks that could decide about extensions or about webhooks.
func webhookRules(c *contents, found *findings) {
	for i, one := range c.csv.Spec.Webhooks {
		for j, rule := range one.Rules {
			path := func(field string) []any { return webhookPath(i, "rules", j, field) }
			if slices.Contains(rule.APIGroups, "*") {
				found.add(path("apiGroups"), "* is not allowed: a webhook of a bundle names the API groups that it is about")
			}
			if slices.Contains(rule.APIGroups, "olm.operatorframework.io") {
				found.add(path("apiGroups"), "olm.operatorframework.io is not allowed: a webhook must not decide about extensions")
			}
			if !slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") {
				continue
			}
			for _, resource := range rule.Resources {
				switch strings.Split(resource, "/")[0] {
				case "*", "mutatingwebhookconfigurations", "validatingwebhookconfigurations":
					found.add(path("resources"), "%s of admissionregistration.k8s.io is not allowed: a webhook must not decide about webhooks", resource)
				}
			}
		}
	}
}

func supportedKinds(c *contents, found *findings) {
	for _, one := range c.extras {
		if _, supported := extraKinds()[one.GroupKind()]; !supported {
			found.at(one, []any{"kind"}, "%s is of a kind that a bundle cannot have; allowed are %s", one.GroupKind(), kindNames())
		}
	}
}

// kubernetesWarning returns a warning if the cluster is older than the bundle requires, or if its
// version is unknown.
func (c *contents) kubernetesWarning(cluster string) (source.Warning, bool) {
	wanted := c.csv.Spec.MinKubeVersion
	warning := source.Warning{File: c.csvFile.File, Line: c.csvFile.LineAt("spec", "minKubeVersion"),
		Message: fmt.Sprintf("ClusterServiceVersion %s: spec.minKubeVersion: the operator needs Kubernetes %s or later", c.csvFile.Name, wanted)}
	least, err := version.ParseGeneric(wanted)
	if err != nil {
		warning.Message = fmt.Sprintf("ClusterServiceVersion %s: spec.minKubeVersion is %q, which is no version: not checked", c.csvFile.Name, wanted)
		return warning, true
	}
	if has, err := version.ParseGeneric(cluster); cluster != "" && err == nil {
		warning.Message += fmt.Sprintf(", and the cluster has %s", cluster)
		return warning, has.LessThan(least)
	}
	return warning, true
}
