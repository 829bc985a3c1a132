//go:build integration

package server_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// Every value that no user may see begins with this word.
const (
	hush        = "hunter2-"
	hushEncoded = "aHVudGVyMi" // the beginning of its base64
)

// secrecy is a cluster with the program, which redacts some fields.
type secrecy struct {
	*cluster.Cluster
	t      *testing.T
	server *penstock.Server
}

func (s secrecy) in(t *testing.T) secrecy {
	s.Cluster, s.t = s.Cluster.In(t), t
	return s
}

// TestSecrecy: no read shows confidential content to a user.
func TestSecrecy(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	s := secrecy{Cluster: c, t: t, server: penstock.Build(t).Serve(t, c, penstock.DataDir(t),
		// The most verbose log.
		"--v=10",
		"--redact=ConfigMap:.data.password",
		"--redact=Service:.spec.externalName",
		"--redact=Vault.example.com:.spec.pin",
		"--redact=Vault.example.com:.spec.users[*].name",
	)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the server complained of:\n%s", s.server.Complaints())
		}
	})
	t.Run("Ways", func(t *testing.T) { s.in(t).ways() })
	t.Run("Identities", func(t *testing.T) { s.in(t).identities() })
	t.Run("Hostile", func(t *testing.T) { s.in(t).hostile() })
	t.Run("Log", func(t *testing.T) { s.in(t).log() })
}

// log: the most verbose log has no body of a request or an answer. This holds for requests to the
// host, to Penstock itself and from users. The log also has no part of the authority's key, which
// the process reads and writes as a Secret.
func (s secrecy) log() {
	log := s.server.Log()
	clean(s.t, "the log", log)
	key := strings.TrimSpace(s.MustKubectl("get", "secret", "penstock-ca", "--namespace=penstock-system", "-o", `jsonpath={.data.tls\.key}`))
	decoded, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(decoded) < 100 {
		s.t.Fatalf("the key of the authority has %d bytes: %v", len(decoded), err)
	}
	for _, part := range []string{key[60:90], string(decoded[60:90])} {
		if strings.Contains(log, part) {
			s.t.Error("the log has the key of the authority")
		}
	}
	bodies := 0
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `Request Body"`) && !strings.Contains(line, `Response Body"`) {
			continue
		}
		bodies++
		if !strings.HasSuffix(line, `Body" body="(withheld)"`+"\n") {
			s.t.Errorf("the log has a body: %.300s", line)
			return
		}
	}
	if bodies == 0 {
		s.t.Error("the log has no lines for bodies: the test sees nothing")
	}
}

// clean fails the test if a text has a value that no user may see.
func clean(t *testing.T, what, text string) {
	t.Helper()
	for _, word := range []string{hush, hushEncoded} {
		if i := strings.Index(text, word); i >= 0 {
			t.Errorf("%s has a hidden value: …%s…", what, text[max(0, i-300):min(len(text), i+100)])
		}
	}
}

func encoded(value string) string { return base64.StdEncoding.EncodeToString([]byte(value)) }

// rolledOut returns a revision with one object, and with further fields of the spec.
func rolledOut(name, object string, more ...string) string {
	return fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: %s}
spec:
  revision: %s
  phases:
  - name: all
    objects:
    - object: %s
%s
`, name, name[strings.LastIndex(name, "-")+1:], object, strings.Join(more, "\n"))
}

// says waits until the YAML of a revision has all the words. It returns the YAML.
func (s secrecy) says(name string, words ...string) string {
	s.t.Helper()
	told := ""
	eventually(s.t, "what is said of "+name, func() error {
		told = s.Kubectl("get", "cer", name, "-o", "yaml").Stdout
		return missing(told, words)
	})
	return told
}

// ways tests all the ways in which a message quotes an object: from its API server, policies,
// probes, and controllers that write status.
func (s secrecy) ways() {
	s.MustKubectlInput(secrecyPolicies, "apply", "-f", "-")
	s.MustKubectlInput(vaults, "apply", "-f", "-")
	s.MustKubectl("wait", "--for=condition=Established", "crd/vaults.example.com", poll.TimeoutFlag)
	for _, probe := range []struct{ kind, says string }{
		{`{apiVersion: v1, kind: Secret, metadata: {name: denied-probe, namespace: default}, data: {password: eA==}}`, "no such Secret"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: denied-probe, namespace: default}, data: {password: new}}`, "no such ConfigMap"},
		{rolledOut("denied-1", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}}"), "no such revision"},
	} {
		eventually(s.t, "the policies", func() error {
			return missing(s.KubectlInput(probe.kind, "create", "--dry-run=server", "-f", "-").Stderr, []string{probe.says})
		})
	}

	secret := func(name, fields string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: default}, %s}", name, fields)
	}
	configMap := func(name, value string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {password: %s, other: shown}}", name, value)
	}
	vault := func(name, spec string) string {
		return fmt.Sprintf("{apiVersion: example.com/v1, kind: Vault, metadata: {name: %s, namespace: default}, spec: {%s}}", name, spec)
	}
	probe := func(kind, assertion string) string {
		return fmt.Sprintf("  progressionProbes: [{selector: {groupKind: {group: example.com, kind: %s}}, assertions: [%s]}]", kind, assertion)
	}
	ready := "status: \"True\"\n    type: Succeeded"

	for name, way := range map[string]func(s secrecy){
		"PolicyOnSecret": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-policy-1", secret("denied-a", "data: {password: "+encoded(hush+"policy")+"}")), "create", "-f", "-")
			s.says("way-policy-1", "ApplyRejected", "the API server refused it: Invalid")
		},
		"WarningOnSecret": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-warning-1", secret("warned-a", "data: {password: "+encoded(hush+"warning")+"}")), "create", "-f", "-")
			s.says("way-warning-1", ready)
			eventually(s.t, "the warning in the log", func() error { return missing(s.server.Log(), []string{"The cluster warns", "Secret default/warned-a"}) })
		},
		"InvalidKeyOfSecret": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-key-1", secret("key", "data: {a/b: "+encoded(hush+"key")+"}")), "create", "-f", "-")
			s.says("way-key-1", "data[a/b]: FieldValueInvalid")
		},
		"UndecodableSecret": func(s secrecy) {
			out := s.KubectlInput(rolledOut("way-decode-1", secret("decode", "data: {password: '"+hush+"decode!'}")), "create", "-f", "-")
			if out.ExitCode == 0 || !strings.Contains(out.Stderr, "Secret default/decode: it cannot be read as a Secret") {
				s.t.Errorf("the request was not refused for this reason: %s", out)
			}
			clean(s.t, "the refusal", out.Stderr)
		},
		"ImmutableSecret": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-immutable-1", secret("immutable", "immutable: true, stringData: {password: "+hush+"one}")), "create", "-f", "-")
			s.says("way-immutable-1", ready)
			s.MustKubectlInput(rolledOut("way-immutable-2", secret("immutable", "immutable: true, stringData: {password: "+hush+"two}")), "create", "-f", "-")
			s.says("way-immutable-2", "data: FieldValueForbidden")
		},
		"DriftOfSecret": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-drift-1", secret("drift", "data: {password: "+encoded(hush+"drift")+"}")), "create", "-f", "-")
			s.says("way-drift-1", ready)
			s.MustKubectl("patch", "secret", "drift", "--type=merge", "-p", `{"data":{"password":"`+encoded(hush+"changed")+`"}}`)
			eventually(s.t, "the event", func() error {
				return missing(s.Kubectl("get", "events", "-A", "-o", "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}").Stdout, []string{"repaired Secret default/drift: .data.password was changed by"})
			})
			history := s.MustKubectl("get", "revisionhistory", "way-drift", "-o", "json")
			if err := missing(history, []string{".data.password was changed by"}); err != nil {
				s.t.Error(err)
			}
			clean(s.t, "the history", history)
		},
		"PolicyOnListedField": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-listed-1", configMap("denied-b", hush+"old")), "create", "-f", "-")
			s.says("way-listed-1", ready)
			s.MustKubectlInput(rolledOut("way-listed-2", configMap("denied-b", hush+"new")), "create", "-f", "-")
			s.says("way-listed-2", "no such ConfigMap: it was *** and would be ***, beside shown")
		},
		"InvalidListedField": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-invalid-1", "{apiVersion: v1, kind: Service, metadata: {name: invalid, namespace: default}, spec: {type: ExternalName, externalName: '"+hush+"_!'}}"), "create", "-f", "-")
			s.says("way-invalid-1", "spec.externalName: FieldValueInvalid")
		},
		"SchemaOfListedField": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-schema-1", vault("schema", "pin: "+hush+"much-too-long-for-a-pin")), "create", "-f", "-")
			s.says("way-schema-1", "spec.pin: FieldValueTooLong")
		},
		"RuleOnListedField": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-rule-1", vault("rule", "pin: "+hush+"bad")), "create", "-f", "-")
			s.says("way-rule-1", "ApplyRejected", "spec: FieldValueInvalid")
		},
		"PathWithListedField": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-path-1", vault("path", "users: [{name: "+hush+"alice, role: reader}]")), "create", "-f", "-")
			s.says("way-path-1", ready)
			s.MustKubectl("patch", "vault", "path", "--type=json", "-p", `[{"op":"replace","path":"/spec/users/0/role","value":"writer"}]`)
			eventually(s.t, "the event", func() error {
				return missing(s.Kubectl("get", "events", "-A", "-o", "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}").Stdout, []string{"repaired Vault.example.com default/path: .spec.users[name=\"***\"].role was changed by"})
			})
			clean(s.t, "the history", s.MustKubectl("get", "revisionhistory", "way-path", "-o", "json"))
		},
		"KeyOfListedField": func(s secrecy) {
			out := s.KubectlInput(rolledOut("way-twice-1", vault("twice", "users: [{name: "+hush+"alice}, {name: "+hush+"alice}]")), "create", "-f", "-")
			if out.ExitCode == 0 || !strings.Contains(out.Stderr, "spec.users[1]") {
				s.t.Errorf("a duplicate key was not refused: %s", out)
			}
			clean(s.t, "the refusal", out.Stderr)
		},
		"FieldProbe": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-field-1", vault("field", "pin: "+hush+"f"), probe("Vault", "{fieldValue: {fieldPath: spec.pin, value: open}}")), "create", "-f", "-")
			s.says("way-field-1", `spec.pin is "***", want "open"`)
		},
		"CELProbe": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-cel-1", vault("cel", "pin: "+hush+"c"), probe("Vault", "{cel: {expression: 'int(self.spec.pin.substring(2)) > 1', message: is not above one}}")), "create", "-f", "-")
			s.says("way-cel-1", "ProbeFailed")
		},
		"StatusOfOthers": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-status-1", vault("status", "pin: "+hush+"s"), probe("Vault", "{conditionEqual: {type: Open, status: 'True'}}")), "create", "-f", "-")
			s.says("way-status-1", "has no condition Open yet")
			s.MustKubectl("patch", "vault", "status", "--subresource=status", "--type=merge", "-p",
				`{"status":{"conditions":[{"type":"Open","status":"False","reason":"WrongPin","message":"the pin `+hush+`s is wrong"}]}}`)
			s.says("way-status-1", "WrongPin: the pin *** is wrong")
		},
		"RefusedRollback": func(s secrecy) {
			s.MustKubectlInput(rolledOut("way-back-1", secret("back", "stringData: {password: "+hush+"back}")), "create", "-f", "-")
			s.MustKubectlInput(rolledOut("way-back-2", secret("back", "stringData: {password: "+hush+"forth}")), "create", "-f", "-")
			s.MustKubectl("label", "cer", "way-back-1", "policy=denied")
			out := s.KubectlInput("{}", "create", "--raw", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/way-back-1/rollback", "-f", "-")
			if out.ExitCode == 0 || !strings.Contains(out.Stderr, "no such revision: ***") {
				s.t.Errorf("the rollback was not refused with the policy's message: %s", out)
			}
			clean(s.t, "the refusal", out.String())
			s.MustKubectl("label", "cer", "way-back-1", "policy=warned", "--overwrite")
			out = s.KubectlInput("{}", "create", "--raw", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/way-back-1/rollback?dryRun=All", "-f", "-")
			if out.ExitCode != 0 || !strings.Contains(out.Stderr, "no such revision: ***") {
				s.t.Errorf("no warning has the policy's message: %s", out)
			}
			clean(s.t, "the warning", out.String())
		},
	} {
		s.t.Run(name, func(t *testing.T) { way(s.in(t)) })
	}
	for _, args := range [][]string{
		{"get", "cer", "-o", "yaml"}, {"get", "cer", "-o", "wide"}, {"get", "events", "-A", "-o", "yaml"},
		{"get", "cer", "way-listed-2", "--subresource=diff", "-o", "yaml"}, {"get", "cer", "way-immutable-2", "--subresource=diff", "-o", "yaml"},
		{"get", "revisiondiff", "way-path-1..way-cel-1", "-o", "yaml"}, {"get", "revisiondiff", "way-listed-1..way-invalid-1", "-o", "yaml"},
	} {
		clean(s.t, strings.Join(args, " "), s.MustKubectl(args...))
	}
	clean(s.t, "the log", s.server.Log())
}

// secrecyPolicies quote the objects that they check.
const secrecyPolicies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: secrets}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}]}
  matchConditions: [{name: name, expression: "object.metadata.name.startsWith('denied-')"}]
  validations: [{expression: "false", messageExpression: "'no such Secret: ' + object.data['password']"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: secrets}
spec: {policyName: secrets, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: warnings}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}]}
  matchConditions: [{name: name, expression: "object.metadata.name.startsWith('warned-')"}]
  validations: [{expression: "false", messageExpression: "'weak: ' + object.data['password']"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: warnings}
spec: {policyName: warnings, validationActions: [Warn]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: configmaps}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}
  matchConditions: [{name: name, expression: "object.metadata.name == 'denied-probe' || object.metadata.name.startsWith('denied-') && oldObject != null && oldObject.data != object.data"}]
  variables: [{name: old, expression: "oldObject == null ? '' : oldObject.data['password']"}]
  validations: [{expression: "false", messageExpression: "'no such ConfigMap: it was ' + variables.old + ' and would be ' + object.data['password'] + ', beside ' + object.data[?'other'].orValue('')"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: configmaps}
spec: {policyName: configmaps, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: revisions}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [olm.operatorframework.io], apiVersions: [v1alpha1], operations: [CREATE], resources: [clusterextensionrevisions]}]}
  matchConditions: [{name: label, expression: "object.metadata.name == 'denied-1' || object.metadata.?labels[?'policy'].orValue('') == 'denied'"}]
  variables: [{name: first, expression: "object.spec.phases[0].objects[0].object"}]
  validations: [{expression: "false", messageExpression: "'no such revision: ' + variables.first[?'stringData'][?'password'].orValue('')"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: revisions}
spec: {policyName: revisions, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: warned-revisions}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [olm.operatorframework.io], apiVersions: [v1alpha1], operations: [CREATE], resources: [clusterextensionrevisions]}]}
  matchConditions: [{name: label, expression: "object.metadata.?labels[?'policy'].orValue('') == 'warned'"}]
  variables: [{name: first, expression: "object.spec.phases[0].objects[0].object"}]
  validations: [{expression: "false", messageExpression: "'no such revision: ' + variables.first[?'stringData'][?'password'].orValue('')"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: warned-revisions}
spec: {policyName: warned-revisions, validationActions: [Warn]}
`

// vaults is a kind whose validation rules quote the object.
const vaults = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: vaults.example.com}
spec:
  group: example.com
  names: {kind: Vault, plural: vaults, singular: vault}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "!has(self.pin) || !self.pin.endsWith('bad')", messageExpression: "'the pin ' + self.pin + ' is bad'"}
            properties:
              pin: {type: string, maxLength: 20}
              users:
                type: array
                maxItems: 10
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string, maxLength: 50}, role: {type: string, maxLength: 50}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`
