package review_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

// TestHeld: the upgrades that the default list of notes holds for review.
func TestHeld(t *testing.T) {
	set := func(documents ...string) []manifest.Object {
		var objects []manifest.Object
		for _, document := range documents {
			objects = append(objects, *difftest.Object(t, document))
		}
		return objects
	}
	rbac := func(kind, name, rest string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + rest
	}
	role := func(name, rules string) string { return rbac("ClusterRole", name, "}\nrules: "+rules) }
	bound := func(name, role, subject string) string {
		return rbac("ClusterRoleBinding", name, "}\nroleRef: {kind: ClusterRole, name: "+role+"}\nsubjects: [{kind: ServiceAccount, name: "+subject+", namespace: ns}]")
	}
	deployment := func(name, pod string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: ns}\nspec: {template: {spec: " + pod + "}}"
	}
	plain := func(kind, name, rest string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: ns}\n" + rest
	}
	hooks := func(hook string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [" + hook + "]"
	}
	const read, all, manage = "[{apiGroups: [''], resources: [configmaps], verbs: [get]}]", "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]",
		"[{apiGroups: [apps], resources: [deployments], verbs: [get, update]}]"
	admission := func(kind, spec string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: p}\nspec: " + spec
	}
	service := func(spec string) string {
		return "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.metrics.example}\nspec: " + spec
	}
	ruled := func(rule string) string {
		return "{name: a, failurePolicy: Ignore, clientConfig: {service: {name: s, namespace: ns}}, rules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], " + rule + "}]}"
	}
	gathering := rbac("ClusterRole", "all", "}\naggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: In, values: [b, c]}]}]}")
	labelled := rbac("ClusterRole", "op", ", labels: {a: b}}\nrules: "+read)
	var many []string
	for i := range 20_001 {
		many = append(many, fmt.Sprintf("r%d", i))
	}
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, tc := range map[string]struct {
		reason   string
		old, new []manifest.Object
		want     []string
	}{
		"RolesRenamedByHash": {"nobody gains anything", set(role("op-1", all), bound("op-1", "op-1", "op")), set(role("op-2", all), bound("op-2", "op-2", "op")), nil},
		"PlainRight":         {"it deserves no look by itself", set(role("op", read)), set(role("op", manage)), nil},
		"Wildcard":           {"any verb on any resource", set(role("op", read)), set(role("op", all)), []string{note.RightsGained}},
		"Aggregation":        {"everybody who is admin gains", set(role("op", read)), set(rbac("ClusterRole", "op", ", labels: {rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}\nrules: "+read)), []string{note.RightsGained}},
		"AggregationRenamed": {"admins have it already",
			set(rbac("ClusterRole", "op-1", ", labels: {rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}\nrules: "+read)),
			set(rbac("ClusterRole", "op-2", ", labels: {rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}\nrules: "+read)), nil},
		"AggregatedBySelector": {"a label gives its rights to a role that exists", set(gathering, role("op", read)), set(gathering, labelled), []string{note.RightsGained}},
		"AggregatedGains": {"its holder has it by another role, and everybody who is admin gains it",
			set(role("other", all), bound("other", "other", "op"), rbac("ClusterRole", "op", ", labels: {rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}\nrules: "+read), bound("op", "op", "op")),
			set(role("other", all), bound("other", "other", "op"), rbac("ClusterRole", "op", ", labels: {rbac.authorization.k8s.io/aggregate-to-admin: 'true'}}\nrules: "+all), bound("op", "op", "op")), []string{note.RightsGained}},
		"AggregatingBound": {"the role has more than it lists", set(role("x", read), bound("x", "x", "op"), rbac("ClusterRole", "all", "}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\nrules: "+read), labelled),
			set(role("x", read), bound("x", "x", "op"), rbac("ClusterRole", "all", "}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\nrules: "+read), labelled, bound("more", "all", "op")), []string{note.SubjectsGained}},
		"AggregatedAsBefore": {"the role had them", set(gathering, labelled), set(gathering, labelled, role("other", read)), nil},
		"AggregatingRole":    {"its rights are not in the revision", nil, set(rbac("ClusterRole", "op", "}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}")), []string{note.RightsGained}},
		"NewBinding":         {"another subject has the rights of a role", set(role("op", read), bound("a", "op", "a")), set(role("op", read), bound("a", "op", "a"), bound("b", "op", "b")), []string{note.SubjectsGained}},
		"BindingOfCluster":   {"the rights of a role that is not in the revision are unknown", nil, set(bound("b", "edit", "op")), []string{note.SubjectsGained}},
		"BindingOfEverybody": {"a new role for everybody", nil, set(role("op", read), rbac("ClusterRoleBinding", "b", "}\nroleRef: {kind: ClusterRole, name: op}\nsubjects: [{kind: Group, name: 'system:authenticated'}]")), []string{note.SubjectsGained}},
		"TooManyRights":      {"20,001 rights are not compared", set(role("op", read)), set(role("op", "[{apiGroups: [''], verbs: [get], resources: ["+strings.Join(many, ", ")+"]}]")), []string{note.RightsGained}},
		"ImageMoved": {"later images come from there, too", set(deployment("d", "{containers: [{name: c, image: 'a.example/x"+digest+"'}]}")),
			set(deployment("d", "{containers: [{name: c, image: 'b.example/x"+digest+"'}]}")), []string{note.Image}},
		"ImageTag":         {"the next version of the same", set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}")), set(deployment("d", "{containers: [{name: c, image: 'a.example/x:2'}]}")), nil},
		"ContainerRenamed": {"another name hides no other repository", set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}")), set(deployment("d", "{containers: [{name: e, image: 'b.example/x:1'}]}")), []string{note.Image}},
		"ContainerAdded":   {"of the same repository", set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}")), set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}, {name: e, image: 'a.example/x:1'}]}")), nil},
		"ServiceAccount":   {"pods gain its rights", set(deployment("d", "{serviceAccountName: a}")), set(deployment("d", "{serviceAccountName: b}")), []string{note.Privilege}},
		"PrivilegedAdded":  {"a new workload gains what it has", nil, set(deployment("d", "{hostNetwork: true}")), []string{note.Privilege}},
		"HostUsers":        {"root of the container becomes root of the node", set(deployment("d", "{hostUsers: false, containers: [{name: c, image: x}]}")), set(deployment("d", "{containers: [{name: c, image: x}]}")), []string{note.Privilege}},
		"HostProcess": {"each of these options is the pod's where the container has none", set(deployment("d", "{securityContext: {windowsOptions: {hostProcess: false}}, containers: [{name: c, image: x, securityContext: {windowsOptions: {runAsUserName: a}}}]}")),
			set(deployment("d", "{securityContext: {windowsOptions: {hostProcess: true}}, containers: [{name: c, image: x, securityContext: {windowsOptions: {runAsUserName: a}}}]}")), []string{note.Privilege}},
		"HostPathWritten": {"the node's files could only be read", set(deployment("d", "{volumes: [{name: v, hostPath: {path: /etc}}], containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /e, readOnly: true}]}]}")),
			set(deployment("d", "{volumes: [{name: v, hostPath: {path: /etc}}], containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /e}]}]}")), []string{note.Privilege}},
		"SecretChanged":    {"what is hidden has no notes", set(plain("Secret", "s", "data: {a: YQ==}")), set(plain("Secret", "s", "data: {a: Yg==}")), nil},
		"WorkloadReplaced": {"its pods stop and others start", set(deployment("d-1", "{}")), set(deployment("d-2", "{}")), []string{note.Deleted}},
		"ConfigReplaced":   {"a digest in the name", set(plain("ConfigMap", "c-5f2a", "data: {a: b}")), set(plain("ConfigMap", "c-77d1", "data: {a: c}")), nil},
		"ConfigOfOther":    {"another one takes no place of it", set(plain("ConfigMap", "settings", "data: {a: b}")), set(plain("ConfigMap", "others-1", "data: {a: c}")), []string{note.Deleted}},
		"ConfigOfNamespace": {"neither does one of another namespace", set(plain("ConfigMap", "c-1", "")),
			set("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-2, namespace: other}"), []string{note.Deleted}},
		"SecretSibling":  {"its name begins alike, and that is all", set(plain("Secret", "db-credentials", "data: {a: YQ==}")), set(plain("Secret", "db-config", "data: {a: YQ==}")), []string{note.Deleted}},
		"SecretOfOther":  {"what had one key has another", set(plain("Secret", "db-1", "data: {a: YQ==}")), set(plain("Secret", "db-2", "data: {b: YQ==}")), []string{note.Deleted}},
		"SecretReplaced": {"a digest in the name, and one more key", set(plain("Secret", "db-5f2a", "data: {a: YQ==}")), set(plain("Secret", "db-77d1", "data: {a: Yg==, b: Yg==}")), nil},
		"ConfigFilled":   {"its content comes at run time", set(plain("ConfigMap", "state-1", "")), set(plain("ConfigMap", "state-2", "")), []string{note.Deleted}},
		"SecretsByOne":   {"one cannot take the place of two", set(plain("Secret", "db-1", ""), plain("Secret", "db-2", "")), set(plain("Secret", "db-3", "")), []string{note.Deleted}},
		"WorkloadAdded": {"it runs what was never looked at", set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}")),
			set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}"), deployment("e", "{containers: [{name: c, image: 'b.example/x:1'}]}")), []string{note.Image}},
		"WorkloadOfSame": {"of the same repository", set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}")),
			set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}"), deployment("e", "{containers: [{name: c, image: 'a.example/x:1'}]}")), nil},
		"WorkloadFirst": {"there is nothing before", nil, set(deployment("e", "{serviceAccountName: a, containers: [{name: c, image: 'b.example/x:1'}]}")), nil},
		"AccountAdded":  {"a new workload has rights that no pod had", set(deployment("d", "{}")), set(deployment("d", "{}"), deployment("e", "{serviceAccountName: admin}")), []string{note.Privilege}},
		"AccountCame":   {"its rights are noted", set(deployment("d", "{}")), set(deployment("d", "{}"), deployment("e", "{serviceAccountName: admin}"), plain("ServiceAccount", "admin", "")), nil},
		"AccountKnown":  {"pods had them", set(deployment("d", "{serviceAccountName: a}")), set(deployment("d", "{serviceAccountName: a}"), deployment("e", "{serviceAccountName: a}")), nil},
		"RelatedAdded": {"an image from elsewhere in a new variable", set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}")),
			set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1', env: [{name: RELATED_IMAGE_DB, value: 'b.example/db:1'}]}]}")), []string{note.Image}},
		"RelatedOfSame": {"of the same repository", set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1'}]}")),
			set(deployment("d", "{containers: [{name: c, image: 'a.example/x:1', env: [{name: RELATED_IMAGE_X, value: 'a.example/x:2'}]}]}")), nil},
		"RootOfPod":     {"the pod says it for all", set(deployment("d", "{containers: [{name: c}]}")), set(deployment("d", "{securityContext: {runAsUser: 0}, containers: [{name: c}]}")), []string{note.Privilege}},
		"RootOverruled": {"the container says otherwise", set(deployment("d", "{containers: [{name: c, securityContext: {runAsUser: 7}}]}")), set(deployment("d", "{securityContext: {runAsUser: 0}, containers: [{name: c, securityContext: {runAsUser: 7}}]}")), nil},
		"NonRootLost":   {"the image's user may be root", set(deployment("d", "{securityContext: {runAsNonRoot: true}, containers: [{name: c}]}")), set(deployment("d", "{securityContext: {runAsNonRoot: false}, containers: [{name: c}]}")), []string{note.Privilege}},
		"NonRootMoved":  {"the container says it now", set(deployment("d", "{securityContext: {runAsNonRoot: true}, containers: [{name: c}]}")), set(deployment("d", "{containers: [{name: c, securityContext: {runAsNonRoot: true}}]}")), nil},
		"Unconfined":    {"no filter of system calls", set(deployment("d", "{containers: [{name: c}]}")), set(deployment("d", "{securityContext: {seccompProfile: {type: Unconfined}}, containers: [{name: c}]}")), []string{note.Privilege}},
		"DropLost":      {"its capabilities come back", set(deployment("d", "{containers: [{name: c, securityContext: {capabilities: {drop: [ALL]}}}]}")), set(deployment("d", "{containers: [{name: c, securityContext: {}}]}")), []string{note.Privilege}},
		"HostPort":      {"a port of the node", set(deployment("d", "{containers: [{name: c}]}")), set(deployment("d", "{containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}")), []string{note.Privilege}},
		"Policy":        {"it refuses requests", nil, set(admission("ValidatingAdmissionPolicy", "{matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]}}")), []string{note.Webhook}},
		"PolicyBinding": {"it puts a policy into force", nil, set(admission("MutatingAdmissionPolicyBinding", "{policyName: p}")), []string{note.Webhook}},
		"PolicyChanged": {"it refuses others", set(admission("ValidatingAdmissionPolicy", "{validations: [{expression: 'true'}]}")), set(admission("ValidatingAdmissionPolicy", "{validations: [{expression: 'false'}]}")), []string{note.Webhook}},
		"APIService":    {"requests go there", nil, set(service("{group: metrics.example, version: v1, service: {name: s, namespace: ns}}")), []string{note.Webhook}},
		"APIServiceMoved": {"requests go elsewhere", set(service("{group: metrics.example, version: v1, service: {name: s, namespace: ns}}")),
			set(service("{group: metrics.example, version: v1, service: {name: t, namespace: ns}}")), []string{note.Webhook}},
		"APIServiceLocal": {"it is served as before", nil, set(service("{group: metrics.example, version: v1}")), nil},
		"WebhookScope":    {"it sees what is in no namespace", set(hooks(ruled("scope: Namespaced, resources: [pods]"))), set(hooks(ruled("scope: '*', resources: [pods]"))), []string{note.Webhook}},
		"WebhookNarrowed": {"it sees less", set(hooks(ruled("resources: [pods]"))), set(hooks(ruled("scope: Namespaced, resources: [pods]"))), nil},
		"WebhookNested":   {"subresources are none of the resources", set(hooks(ruled("resources: ['*']"))), set(hooks(ruled("resources: ['*/*']"))), []string{note.Webhook}},
		"QuietWebhook":    {"it sees what it changes", nil, set(hooks("{name: a, failurePolicy: Ignore, clientConfig: {service: {name: s, namespace: ns}}, rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]}")), []string{note.Webhook}},
		"WebhookMoved":    {"what it sees goes elsewhere", set(hooks("{name: a, clientConfig: {service: {name: s, namespace: ns}}}")), set(hooks("{name: a, clientConfig: {url: 'https://b.example'}}")), []string{note.Webhook}},
	} {
		t.Run(name, func(t *testing.T) {
			report := diff.Revisions(t.Context(), tc.old, tc.new, diff.Options{Schema: difftest.Builtin(t)})
			var held []string
			for _, one := range report.Notes {
				if note.DefaultHoldOn().Holds(one.Reason, one.Severity) && !slices.Contains(held, one.Reason) {
					held = append(held, one.Reason)
				}
			}
			if !slices.Equal(held, tc.want) {
				t.Errorf("%s: held by %v, want %v: %v", tc.reason, held, tc.want, told(report.Notes))
			}
		})
	}
}
