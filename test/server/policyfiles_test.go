//go:build integration

package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPolicyFiles: policies in files apply to requests to our API, with the API's defaults. The
// host's policies do not, because it does not check requests that it passes on. A file that cannot
// be read fails the start.
func TestPolicyFiles(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	folder, configuration := t.TempDir(), filepath.Join(t.TempDir(), "admission.yaml")
	write := func(file, content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(configuration, `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ValidatingAdmissionPolicyConfiguration, staticManifestsDir: `+folder+`}
- name: MutatingAdmissionPolicy
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: MutatingAdmissionPolicyConfiguration, staticManifestsDir: `+folder+`/mutating}
`)
	const rules = "matchConstraints: {resourceRules: [{apiGroups: [olm.operatorframework.io], apiVersions: [v1alpha1], operations: [CREATE], resources: [clusterextensionrevisions]}]}"
	if err := os.Mkdir(filepath.Join(folder, "mutating"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Several policies in one file, in the format of kubectl get -o yaml.
	write(filepath.Join(folder, "names.yaml"), `apiVersion: v1
kind: List
items:
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicy
  metadata: {name: names.static.k8s.io}
  spec:
    `+rules+`
    validations: [{expression: "!object.metadata.name.startsWith('forbidden-')", message: no extension may be called forbidden}]
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicyBinding
  metadata: {name: names.static.k8s.io}
  spec: {policyName: names.static.k8s.io, validationActions: [Deny]}
`)
	write(filepath.Join(folder, "mutating", "notes.yaml"), `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: notes.static.k8s.io}
spec:
  `+rules+`
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: {'example.com/from': 'a file'}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: notes.static.k8s.io}
spec: {policyName: notes.static.k8s.io}
`)
	flag := "--admission-control-config-file=" + configuration
	p := start(t, newOptions(t, c, dataDir(t), flag))
	if out := c.KubectlInput(revision("forbidden", 1), "create", "-f", "-"); !strings.Contains(out.Stderr, "no extension may be called forbidden") {
		t.Errorf("the policy of the file: %s", out)
	}
	if out := c.KubectlInput(revision("allowed", 1), "create", "--dry-run=server", "-o", `jsonpath={.metadata.annotations.example\.com/from}`, "-f", "-"); out.Stdout != "a file" {
		t.Errorf("the other policy of the file: %s", out)
	}
	p.halt(t)

	broken := filepath.Join(folder, "names.yaml")
	write(broken, "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: names.static.k8s.io}\nspec: {validation: []}\n")
	p = begin(t, newOptions(t, c, dataDir(t), flag))
	await(t, "the refusal", p.done)
	if p.err == nil || !strings.Contains(p.err.Error(), broken) || !strings.Contains(p.err.Error(), `unknown field "spec.validation"`) {
		t.Errorf("a file that cannot be read: %v", p.err)
	}
}
