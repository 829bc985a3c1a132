package manifest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Applied returns the JSON that Penstock applies and compares with the cluster. It has the form
// that the API server stores, without fields that controllers of Kubernetes set. Digests, packs and
// diffs keep the manifest as written. JSON that already has this form is returned unchanged.
//
//   - Secret: stringData is merged into data. Server-side apply records the fields of stringData
//     but stores data, so a removed key would otherwise stay.
//   - ClusterRole with an aggregationRule: the aggregation controller sets rules.
//   - Webhook configurations, CustomResourceDefinition, APIService: a controller replaces a
//     placeholder caBundle.
//   - PersistentVolumeClaim: the binding controller sets an empty volumeName.
//   - Deployment, DaemonSet: the annotation with the controller's number of the template is
//     removed. So is the annotation that reverts a Deployment to an earlier template, because the
//     controller would then run another template than the manifest's.
func Applied(id ID, raw []byte) ([]byte, error) {
	form, markers := formOf(id)
	if form == nil || !slices.ContainsFunc(markers, func(marker string) bool { return bytes.Contains(raw, []byte(`"`+marker+`"`)) }) {
		return raw, nil
	}
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil { // keeps integers as integers
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if !form(object) {
		return raw, nil
	}
	return json.Marshal(object)
}

// formOf returns the function that brings objects of a kind into the applied form. An object
// without any of the markers need not be changed. The function changes the object and returns
// whether it did.
func formOf(id ID) (form func(map[string]any) bool, markers []string) {
	annotations := func(keys ...string) (func(map[string]any) bool, []string) { return dropAnnotations(keys), keys }
	switch id.GroupKind().String() {
	case "Secret":
		return foldStringData, []string{"stringData"}
	case "ClusterRole.rbac.authorization.k8s.io":
		return dropAggregatedRules, []string{"aggregationRule"}
	case "ValidatingWebhookConfiguration.admissionregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io",
		"CustomResourceDefinition.apiextensions.k8s.io", "APIService.apiregistration.k8s.io":
		return dropPlaceholders, []string{"caBundle"}
	case "PersistentVolumeClaim":
		return dropEmptyVolumeName, []string{"volumeName"}
	case "Deployment.apps":
		return annotations("deployment.kubernetes.io/revision", "deprecated.deployment.rollback.to")
	case "DaemonSet.apps":
		return annotations("deprecated.daemonset.template.generation")
	}
	return nil, nil
}

// foldStringData merges stringData into data like the API server: stringData overrides data. An
// invalid Secret stays unchanged, so that the API server's error is about the written manifest.
func foldStringData(secret map[string]any) bool {
	data, readable := fieldsOf(secret["data"])
	plain, plainReadable := fieldsOf(secret["stringData"])
	if !readable || !plainReadable {
		return false
	}
	folded := maps.Clone(data)
	if folded == nil {
		folded = map[string]any{}
	}
	for key, value := range plain {
		text, isText := value.(string)
		if !isText {
			return false
		}
		folded[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(secret, "stringData")
	if len(folded) > 0 {
		secret["data"] = folded
	}
	return true
}

// fieldsOf returns value as an object; an empty object for null.
func fieldsOf(value any) (map[string]any, bool) {
	if value == nil {
		return nil, true
	}
	object, ok := value.(map[string]any)
	return object, ok
}

// dropAggregatedRules leaves rules to the aggregation controller. That includes an empty list:
// applying it would remove all rights until the controller writes them again.
func dropAggregatedRules(role map[string]any) bool {
	if _, has := role["rules"]; !has || role["aggregationRule"] == nil {
		return false
	}
	delete(role, "rules")
	return true
}

// dropPlaceholders leaves a placeholder caBundle to the manager that injects it.
func dropPlaceholders(object map[string]any) bool {
	annotated, changed := IsInjected(object), false
	for _, config := range clientConfigs(object) {
		if value, has := config["caBundle"]; has && isPlaceholder(value, annotated) {
			delete(config, "caBundle")
			changed = true
		}
	}
	return changed
}

// clientConfigs returns the parts of an object that may have a caBundle.
func clientConfigs(object map[string]any) []map[string]any {
	var found []map[string]any
	at := func(here any, names ...string) {
		for _, name := range names {
			fields, _ := here.(map[string]any)
			here = fields[name]
		}
		if config, ok := here.(map[string]any); ok {
			found = append(found, config)
		}
	}
	webhooks, _ := object["webhooks"].([]any)
	for _, webhook := range webhooks {
		at(webhook, "clientConfig")
	}
	at(object, "spec", "conversion", "webhook", "clientConfig")
	at(object, "spec")
	return found
}

// isPlaceholder reports whether a caBundle is empty or white space, such as Cg==. If the object has
// an injection annotation, any value without a certificate is a placeholder.
func isPlaceholder(value any, annotated bool) bool {
	encoded, isText := value.(string)
	if !isText {
		return value == nil
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false // the API server refuses it
	}
	if len(bytes.TrimSpace(decoded)) == 0 {
		return true
	}
	block, _ := pem.Decode(decoded)
	return annotated && block == nil
}

// IsInjected reports whether an object has an annotation with which cert-manager or OpenShift
// injects its caBundle.
func IsInjected(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range []string{
		"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
		"service.beta.openshift.io/inject-cabundle", "service.alpha.openshift.io/inject-cabundle",
	} {
		if value, _ := annotations[key].(string); value != "" {
			return true
		}
	}
	return false
}

// dropEmptyVolumeName leaves volumeName to the controller that binds the claim, because the field
// of a bound claim cannot be emptied again.
func dropEmptyVolumeName(claim map[string]any) bool {
	spec, _ := claim["spec"].(map[string]any)
	if name, has := spec["volumeName"]; !has || name != "" && name != nil {
		return false
	}
	delete(spec, "volumeName")
	return true
}

// dropAnnotations removes annotations with a controller's counters, which a manifest that was
// exported from a cluster has.
func dropAnnotations(keys []string) func(map[string]any) bool {
	return func(object map[string]any) bool {
		metadata, _ := object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		before := len(annotations)
		for _, key := range keys {
			delete(annotations, key)
		}
		return len(annotations) < before
	}
}
