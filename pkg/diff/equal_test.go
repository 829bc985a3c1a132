package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
)

// summarise returns the changes as lines: "replace .spec.replicas 1 -> 2".
func summarise(change Change) []string {
	var lines []string
	for _, f := range change.Fields {
		line := string(f.Op) + " " + f.Path
		if f.Redacted {
			line += " (redacted)"
		}
		if f.Old != nil {
			line += " " + string(f.Old)
		}
		if f.Old != nil || f.New != nil {
			line += " ->"
		}
		if f.New != nil {
			line += " " + string(f.New)
		}
		lines = append(lines, line)
	}
	return lines
}

const deploymentHead = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ns}\nspec:\n  template:\n    spec:\n      containers:\n"

func TestEquals(t *testing.T) {
	cases := map[string]struct{ reason, old, new string }{
		"KeyOrder": {
			reason: "the order of keys says nothing",
			old:    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {a: x, b: z}}\ndata: {k: v, l: w}",
			new:    "kind: ConfigMap\ndata: {l: w, k: v}\nmetadata: {labels: {b: z, a: x}, name: c}\napiVersion: v1",
		},
		"Null": {
			reason: "null is the same as absent",
			old:    "apiVersion: example.com/v1\nkind: X\nmetadata: {name: c}\nspec: {a: null, b: 1}",
			new:    "apiVersion: example.com/v1\nkind: X\nmetadata: {name: c, annotations: null}\nspec: {b: 1}",
		},
		"Quantities": {
			reason: "spellings of one amount are equal where the type is a quantity",
			old:    deploymentHead + "      - {name: c, image: i, resources: {requests: {cpu: 0.5, memory: 1Gi, example.com/gpu: 1}, limits: {cpu: 1e3, memory: 1.5G}}}",
			new:    deploymentHead + "      - {name: c, image: i, resources: {requests: {cpu: 500m, memory: 1024Mi, example.com/gpu: '1'}, limits: {cpu: 1k, memory: 1500M}}}",
		},
		"QuantitiesElsewhere": {
			reason: "a quota, a claim, an emptyDir and a custom resource without a schema have quantities too",
			old:    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {requests.cpu: '1', pods: 10}}",
			new:    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {requests.cpu: 1000m, pods: '10'}}",
		},
		"QuantitiesOfUnknownTypes": {
			reason: "requests and limits of resources are quantities wherever they occur",
			old:    "apiVersion: example.com/v1\nkind: X\nmetadata: {name: c}\nspec: {server: {resources: {limits: {memory: 1Gi}}}}",
			new:    "apiVersion: example.com/v1\nkind: X\nmetadata: {name: c}\nspec: {server: {resources: {limits: {memory: 1024Mi}}}}",
		},
		"Defaults": {
			reason: "to spell out what the API server fills in changes nothing",
			old:    deploymentHead + "      - {name: c, image: 'i:1', ports: [{containerPort: 80}], env: [{name: A}], readinessProbe: {httpGet: {port: 80, path: /}}}",
			new: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ns}\nspec:\n  replicas: 1\n  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}\n  template:\n    spec:\n      restartPolicy: Always\n      securityContext: {}\n      containers:\n" +
				"      - {name: c, image: 'i:1', imagePullPolicy: IfNotPresent, args: [], resources: {}, ports: [{containerPort: 80, protocol: TCP}], env: [{name: A, value: ''}], readinessProbe: {httpGet: {port: 80, scheme: HTTP}, timeoutSeconds: 1}}",
		},
		"DefaultsThatDepend": {
			reason: "the target of a port is the port, the group of a ServiceAccount none",
			old:    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}",
			new:    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {type: ClusterIP, ports: [{port: 80, targetPort: 80, protocol: TCP}]}",
		},
		"DefaultsOfBindings": {
			reason: "the groups of subjects and roles are defaults",
			old:    "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\nroleRef: {kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: a, namespace: ns}, {kind: User, name: u}]",
			new:    "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, apiGroup: '', name: a, namespace: ns}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: u}]",
		},
		"DefaultsOfDefinitions": {
			reason: "names that follow from the kind",
			old:    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\nspec: {names: {kind: X, plural: xs}}",
			new:    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\nspec: {names: {kind: X, plural: xs, singular: x, listKind: XList}, conversion: {strategy: None}, preserveUnknownFields: false}",
		},
		"SecretSpellings": {
			reason: "stringData ends up in data; equality is of the true bytes",
			old:    "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: aHVudGVyMg==, b: eA==}",
			new:    "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: Opaque\ndata: {b: 'eA==', a: AAAA}\nstringData: {a: hunter2}",
		},
		"Numbers": {
			reason: "1.0 and 1 are one number",
			old:    "apiVersion: example.com/v1\nkind: X\nmetadata: {name: c}\nspec: {a: 1.0}",
			new:    "apiVersion: example.com/v1\nkind: X\nmetadata: {name: c}\nspec: {a: 1}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]string{{tc.old, tc.new}, {tc.new, tc.old}} {
				change := compare(t, difftest.Object(t, pair[0]), difftest.Object(t, pair[1]))
				if change.Kind != Unchanged || change.Unified != "" || len(change.Notes) > 0 {
					t.Errorf("%s: got %s\n%v\n%s", tc.reason, change.Kind, summarise(change), change.Unified)
				}
			}
		})
	}
}

func TestServerFieldsAreNoDifference(t *testing.T) {
	written := difftest.Object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\ndata: {k: v}")
	running := live(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: ns
  uid: 6e6c6a1c
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {penstock.dev/chain: x}
  annotations: {penstock.dev/applied: "sha256:0", deployment.kubernetes.io/revision: "4"}
  managedFields: [{manager: x, operation: Apply}]
data: {k: v}
status: {ready: true}`)
	if change := compare(t, running, written); change.Kind != Unchanged {
		t.Errorf("got %s %v, want nothing but the server's fields", change.Kind, summarise(change))
	}
}

func TestDiffers(t *testing.T) {
	const x = "apiVersion: example.com/v1\nkind: X\nmetadata: {name: c}\nspec: "
	cases := map[string]struct {
		reason, old, new string
		want             []string
	}{
		"IntOrString": {
			reason: "80 is not the name 80",
			old:    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1, targetPort: 80}]}",
			new:    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1, targetPort: '80'}]}",
			want:   []string{`replace .spec.ports[port=1,protocol="TCP"].targetPort 80 -> "80"`},
		},
		"DefaultOfTheOther": {
			reason: "targetPort was said to be 80, and would follow the port if it were not",
			old:    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{name: a, port: 80, targetPort: 80}], clusterIP: None}",
			new:    "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{name: a, port: 80, targetPort: 81}], clusterIP: None}",
			want:   []string{`replace .spec.ports[port=80,protocol="TCP"].targetPort 80 -> 81`},
		},
		"DefaultThatGoes": {
			reason: "what the old image implied has to be said when there is no image",
			old:    deploymentHead + "      - {name: c, image: 'i:1'}",
			new:    deploymentHead + "      - {name: c, imagePullPolicy: IfNotPresent}",
			want: []string{
				`remove .spec.template.spec.containers[name="c"].image "i:1" ->`,
				`add .spec.template.spec.containers[name="c"].imagePullPolicy -> "IfNotPresent"`,
			},
		},
		"NotAQuantity": {
			reason: "labels that look like quantities are not",
			old:    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {cpu: '0.5'}",
			new:    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {cpu: 500m}",
			want:   []string{`replace .data.cpu "0.5" -> "500m"`},
		},
		"DefaultOfASecurityContext": {
			reason: "an empty securityContext of a container is stored, and replaces pods",
			old:    deploymentHead + "      - {name: c, image: i}",
			new:    deploymentHead + "      - {name: c, image: i, securityContext: {}}",
			want:   []string{`add .spec.template.spec.containers[name="c"].securityContext -> {}`},
		},
		"MergeKeys": {
			reason: "items are known by their keys, wherever they stand",
			old:    deploymentHead + "      - {name: a, image: a:1}\n      - {name: b, image: b:1}",
			new:    deploymentHead + "      - {name: x, image: x:1}\n      - {name: a, image: a:1}\n      - {name: b, image: b:2}",
			want: []string{
				`add .spec.template.spec.containers[name="x"] -> {"image":"x:1","name":"x"}`,
				`replace .spec.template.spec.containers[name="b"].image "b:1" -> "b:2"`,
			},
		},
		"Reorder": {
			reason: "another order of containers replaces pods, so it is said",
			old:    deploymentHead + "      - {name: a, image: a:1}\n      - {name: b, image: b:1}",
			new:    deploymentHead + "      - {name: b, image: b:1}\n      - {name: a, image: a:2}",
			want: []string{
				`reorder .spec.template.spec.containers ["a","b"] -> ["b","a"]`,
				`replace .spec.template.spec.containers[name="a"].image "a:1" -> "a:2"`,
			},
		},
		"Flags": {
			reason: "of arguments, the one that resembles is the one that changed",
			old:    deploymentHead + "      - {name: a, image: a, args: [serve, --v=2, --leader-elect, --x=1]}",
			new:    deploymentHead + "      - {name: a, image: a, args: [serve, --new, --v=4, --leader-elect]}",
			want: []string{
				`add .spec.template.spec.containers[name="a"].args[1] -> "--new"`,
				`replace .spec.template.spec.containers[name="a"].args[2] "--v=2" -> "--v=4"`,
				`remove .spec.template.spec.containers[name="a"].args[3] "--x=1" ->`,
			},
		},
		"Rules": {
			reason: "rules have no key: the one that is most alike is compared",
			old:    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get, list]}, {apiGroups: [apps], resources: [deployments], verbs: [get]}]",
			new:    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [batch], resources: [jobs], verbs: [create]}, {apiGroups: [''], resources: [pods], verbs: [get, watch, list]}, {apiGroups: [apps], resources: [deployments], verbs: [get]}]",
			want: []string{
				`add .rules[0] -> {"apiGroups":["batch"],"resources":["jobs"],"verbs":["create"]}`,
				`add .rules[1].verbs[1] -> "watch"`,
			},
		},
		"UnknownLists": {
			reason: "lists of unknown types are matched by keys that tell their items apart",
			old:    x + "{peers: [{name: a, weight: 1}, {name: b}], dup: [{name: a, v: 1}, {name: a, v: 2}]}",
			new:    x + "{peers: [{name: b}, {name: c}], dup: [{name: a, v: 1}, {name: a, v: 3}]}",
			want: []string{
				`replace .spec.dup[1].v 2 -> 3`,
				`remove .spec.peers[name="a"] {"name":"a","weight":1} ->`,
				`add .spec.peers[name="c"] -> {"name":"c"}`,
			},
		},
		"TypeChanges": {
			reason: "a list that becomes an object is replaced",
			old:    x + "{a: [1], b: {c: 1}}",
			new:    x + "{a: {b: 1}, b: x}",
			want:   []string{`replace .spec.a [1] -> {"b":1}`, `replace .spec.b {"c":1} -> "x"`},
		},
		"Paths": {
			reason: "keys that are no identifiers are quoted, and what does not print is escaped",
			old:    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {}",
			new:    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {a.b/c: x}}\ndata: {\"\\e]0;\\u202e\": \"\\e[31m\"}",
			want: []string{
				`add .data["\u001b]0;\u202e"] -> "\u001b[31m"`,
				`add .metadata.labels -> {"a.b/c":"x"}`,
			},
		},
		"Versions": {
			reason: "objects are matched whatever version they are written in",
			old:    "apiVersion: example.com/v1beta1\nkind: X\nmetadata: {name: c}",
			new:    "apiVersion: example.com/v1\nkind: X\nmetadata: {name: c}",
			want:   []string{`replace .apiVersion "example.com/v1beta1" -> "example.com/v1"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			old, new := difftest.Object(t, tc.old), difftest.Object(t, tc.new)
			change := compare(t, old, new)
			if change.Kind != Changed {
				t.Errorf("%s: got %s", tc.reason, change.Kind)
			}
			if diff := cmp.Diff(tc.want, summarise(change)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			checkChange(t, difftest.Builtin(t), old, new, change)
		})
	}
}
