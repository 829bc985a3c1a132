package review_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// compare returns the change with all notes.
func compare(t *testing.T, old, new *manifest.Object) diff.Change {
	t.Helper()
	const all = math.MaxInt32
	return diff.Compare(t.Context(), old, new, diff.Options{Schema: difftest.Builtin(t), Limits: diff.Limits{Notes: all}})
}

// told returns the notes as text, without the object.
func told(notes []review.Note) []string {
	var lines []string
	for _, note := range notes {
		lines = append(lines, string(note.Severity)+" "+note.Reason+": "+note.Message)
	}
	return lines
}

func TestNotes(t *testing.T) {
	workload := func(kind, spec string) string {
		return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: w, namespace: ns}\nspec: " + spec
	}
	role := func(rules string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: " + rules
	}
	binding := func(role, subjects string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {kind: ClusterRole, name: " + role + "}\nsubjects: " + subjects
	}
	definition := func(spec string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\nspec: " + spec
	}
	schema := func(properties string) string {
		return definition("{group: example.com, scope: Namespaced, names: {kind: X, plural: xs}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: " + properties + "}}}}]}")
	}
	webhook := func(hook string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w}\nwebhooks: [" + hook + "]"
	}
	plain := func(kind, rest string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: o}\n" + rest
	}
	cases := map[string]struct {
		reason, old, new string
		want             []string
	}{
		"Image": {
			reason: "the image, where it is, and that its pods are replaced",
			old:    workload("Deployment", "{template: {spec: {initContainers: [{name: i, image: 'a/init:1'}], containers: [{name: c, image: 'example.com/a:1', env: [{name: RELATED_IMAGE_DB, value: 'db:1'}]}, {name: gone, image: g}]}}}"),
			new:    workload("Deployment", "{template: {spec: {initContainers: [{name: i, image: 'docker.io/a/init:2'}], containers: [{name: c, image: 'example.org/a:2', env: [{name: RELATED_IMAGE_DB, value: 'db:2'}]}, {name: came, image: new}]}}}"),
			want: []string{
				"Warning Image: image of container c: example.com/a:1 -> example.org/a:2 (another repository)",
				"Warning Image: new container came, image new (another repository)",
				"Info Image: image of init container i: a/init:1 -> docker.io/a/init:2",
				"Info Image: RELATED_IMAGE_DB: db:1 -> db:2",
				"Info Image: container gone is removed, image g",
				"Info Restart: the pod template changed: its pods are replaced, one after the other",
			},
		},
		"Recreate": {
			reason: "no pod runs for a while",
			old:    workload("Deployment", "{strategy: {type: Recreate}, template: {metadata: {labels: {a: b}}}}"),
			new:    workload("Deployment", "{strategy: {type: Recreate}, template: {metadata: {labels: {a: c}}}}"),
			want:   []string{"Warning Restart: the pod template changed: all its pods stop before new ones start"},
		},
		"OnDelete": {
			reason: "nothing happens by itself",
			old:    workload("DaemonSet", "{updateStrategy: {type: OnDelete}, template: {metadata: {labels: {a: b}}}}"),
			new:    workload("DaemonSet", "{updateStrategy: {type: OnDelete}, template: {metadata: {labels: {a: c}}}}"),
			want:   []string{"Info Restart: the pod template changed: each Pod takes the change when it is deleted"},
		},
		"NoRestart": {
			reason: "replicas do not replace pods",
			old:    workload("Deployment", "{replicas: 1, template: {spec: {restartPolicy: Always}}}"),
			new:    workload("Deployment", "{replicas: 2, template: {spec: {}}}"),
		},
		"ReplicasRemoved": {
			reason: "the API server fills in 1",
			old:    workload("Deployment", "{replicas: 3, template: {spec: {}}}"),
			new:    workload("Deployment", "{template: {spec: {}}}"),
			want:   []string{"Warning Replicas: replicas is no longer in the manifest: 3 becomes 1, the default, unless another field manager has the field"},
		},
		"ReplicasDefault": {
			reason: "1 stays 1",
			old:    workload("StatefulSet", "{replicas: 1, template: {spec: {}}}"),
			new:    workload("StatefulSet", "{template: {spec: {}}}"),
		},
		"Privileges": {
			reason: "what reaches the node",
			old:    workload("Deployment", "{template: {spec: {hostNetwork: true, containers: [{name: c, image: i}]}}}"),
			new:    workload("Deployment", "{template: {spec: {hostNetwork: true, hostPID: true, volumes: [{name: v, hostPath: {path: /}}], containers: [{name: c, image: i, securityContext: {privileged: true, runAsUser: 0, capabilities: {add: [SYS_ADMIN]}}}]}}}"),
			want: []string{
				"Warning Privilege: its pods gain: hostPID, the host's files at /, privileged (container c), root (container c), capability SYS_ADMIN (container c)",
				"Info Restart: the pod template changed: its pods are replaced, one after the other",
			},
		},
		"Rights": {
			reason: "atom by atom, whatever rule they are in; the dangerous ones first",
			old:    role("[{apiGroups: [''], resources: [pods, configmaps], verbs: [get, list]}, {apiGroups: [apps], resources: ['*'], verbs: ['*']}]"),
			new:    role("[{apiGroups: [''], resources: [pods], verbs: [list]}, {apiGroups: ['', apps], resources: [pods, secrets], verbs: [get]}, {apiGroups: [''], resources: [pods/exec], verbs: [create]}, {apiGroups: [''], resources: [services], verbs: [get, create]}, {nonResourceURLs: [/metrics], verbs: [get]}, {apiGroups: ['rbac.authorization.k8s.io'], resources: [clusterroles], resourceNames: [admin], verbs: [bind]}]"),
			want: []string{
				"Critical RightsGained: gains bind on clusterroles.rbac.authorization.k8s.io admin: it can give itself every right",
				"Warning RightsGained: gains get on secrets: it reads Secrets",
				"Warning RightsGained: gains create on pods/exec: it gets into pods",
				"Info RightsGained: gains get/create on services, get on /metrics",
				"Info RightsLost: loses get/list on configmaps, * on *.apps",
			},
		},
		"Wildcards": {
			reason: "they contain all that is dangerous",
			old:    role("[]"),
			new:    role("[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]"),
			want:   []string{"Critical RightsGained: gains * on *.*: any verb on any resource"},
		},
		"SameRights": {
			reason: "rules that are written in another way give the same",
			old:    role("[{apiGroups: ['', apps], resources: [pods, deployments], verbs: [get]}]"),
			new:    role("[{apiGroups: [apps], resources: [deployments, pods], verbs: [get]}, {apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: [''], resources: [deployments], verbs: [get]}]"),
		},
		"NodesProxy": {
			reason: "known ways to more",
			old:    role("[]"),
			new:    role("[{apiGroups: [''], resources: [nodes/proxy], verbs: [get]}, {apiGroups: [''], resources: [users], verbs: [impersonate]}, {apiGroups: ['rbac.authorization.k8s.io'], resources: [roles], verbs: [escalate, create]}]"),
			want: []string{
				"Critical RightsGained: gains get on nodes/proxy: it can run commands in every pod of a node",
				"Critical RightsGained: gains impersonate on users: it can act as another user",
				"Critical RightsGained: gains escalate on roles.rbac.authorization.k8s.io: it can give itself every right",
				"Warning RightsGained: gains create on roles.rbac.authorization.k8s.io: it can grant rights",
			},
		},
		"Subjects": {
			reason: "who gets the role, and who loses it",
			old:    binding("r", "[{kind: ServiceAccount, name: a, namespace: ns}]"),
			new:    binding("r", "[{kind: ServiceAccount, name: b, namespace: ns}, {kind: Group, name: 'system:authenticated'}]"),
			want: []string{
				"Critical SubjectsGained: gives ClusterRole r to ServiceAccount ns/b, Group system:authenticated: that is everybody",
				"Info SubjectsLost: takes ClusterRole r from ServiceAccount ns/a",
			},
		},
		"RoleRef": {
			reason: "it cannot be changed",
			old:    binding("r", "[{kind: User, name: u}]"),
			new:    binding("s", "[{kind: User, name: u}]"),
			want:   []string{"Critical Immutable: roleRef changes from ClusterRole r to ClusterRole s, which the API server refuses: the binding has to be deleted and created"},
		},
		"Versions": {
			reason: "clients and stored objects of a version",
			old:    definition("{names: {kind: X, plural: xs}, versions: [{name: v1alpha1, served: true, storage: true}, {name: v1beta1, served: true}, {name: v1beta2, served: true}]}"),
			new:    definition("{names: {kind: X, plural: xs}, versions: [{name: v1beta1, served: false}, {name: v1, served: true, storage: true}]}"),
			want: []string{
				"Critical VersionLost: version v1alpha1 is removed, but objects are stored in it: the API server refuses that while status.storedVersions lists it",
				"Critical VersionLost: version v1beta1 is no longer served",
				"Critical VersionLost: version v1beta2 is removed",
				"Warning StorageVersion: objects are stored in version v1, were in v1alpha1: existing objects stay as they are until they are written again",
				"Info StorageVersion: new version v1",
			},
		},
		"ScopeAndNames": {
			reason: "what cannot change",
			old:    definition("{group: example.com, scope: Namespaced, names: {kind: X, plural: xs}}"),
			new:    definition("{group: example.com, scope: Cluster, names: {kind: Z, plural: xs}}"),
			want: []string{
				"Critical Immutable: spec.scope changes, which the API server refuses: the object has to be deleted and created",
				"Critical VersionLost: its kind changes from X to Z: clients of the old one break",
				"Critical Narrowed: its scope changes from Namespaced to Cluster",
			},
		},
		"Narrowed": {
			reason: "what was accepted and is not any more",
			old:    schema("{type: object, required: [a], properties: {a: {type: string, enum: [x, z]}, b: {type: integer, maximum: 10}, c: {type: string}, d: {type: object, nullable: true, additionalProperties: {type: string}}, e: {type: array, items: {type: string}}, f: {type: string, maxLength: 5}}}"),
			new:    schema("{type: object, required: [a, b], properties: {a: {type: string, enum: [x]}, b: {type: integer, maximum: 9}, d: {type: object, additionalProperties: {type: integer}}, e: {type: array, maxItems: 3, items: {type: string, pattern: '^a'}, x-kubernetes-list-type: set}, f: {type: string}}}"),
			want: []string{
				`Critical Narrowed: v1: .spec.a no longer allows "z"`,
				"Critical Narrowed: v1: .spec.d.* changes its type from string to integer",
				"Critical FieldRemoved: v1: .spec.c is removed: its content is dropped",
				"Critical Narrowed: v1: .spec.b is now required",
				"Warning Narrowed: v1: .spec.b changes maximum from 10 to 9",
				"Warning Narrowed: v1: .spec.d may no longer be null",
				"Warning Narrowed: v1: .spec.e changes its list type from atomic to set",
				"Warning Narrowed: v1: .spec.e gets maxItems 3",
				"Warning Narrowed: v1: .spec.e[*] gets pattern",
			},
		},
		"Widened": {
			reason: "what accepts more is no matter",
			old:    schema("{type: object, required: [a], properties: {a: {type: integer, minimum: 1, enum: [1]}}}"),
			new:    schema("{type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, b: {type: string}}}"),
		},
		"Selector": {
			reason: "immutable, as most of a StatefulSet",
			old:    workload("StatefulSet", "{serviceName: a, selector: {matchLabels: {a: b}}, volumeClaimTemplates: [{metadata: {name: v}}]}"),
			new:    workload("StatefulSet", "{serviceName: a, selector: {matchLabels: {a: c}}, volumeClaimTemplates: [{metadata: {name: w}}]}"),
			want: []string{
				"Critical Immutable: spec.selector changes, which the API server refuses: the object has to be deleted and created",
				"Critical Immutable: spec.volumeClaimTemplates changes, which the API server refuses: the object has to be deleted and created",
			},
		},
		"VolumeSource": {
			reason: "where the data is",
			old:    "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {hostPath: {path: /a}}",
			new:    "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {hostPath: {path: /b}}",
			want:   []string{"Critical Immutable: spec.hostPath changes, which the API server refuses: the object has to be deleted and created"},
		},
		"VolumeDriver": {
			reason: "every source, also that of a driver",
			old:    "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {csi: {driver: a, volumeHandle: v}}",
			new:    "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {csi: {driver: a, volumeHandle: w}}",
			want:   []string{"Critical Immutable: spec.csi changes, which the API server refuses: the object has to be deleted and created"},
		},
		"VolumeCapacity": {
			reason: "what is no source may change, and a default may be written out",
			old:    "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {hostPath: {path: /a}, capacity: {storage: 1Gi}}",
			new:    "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: x}\nspec: {hostPath: {path: /a}, capacity: {storage: 2Gi}, volumeMode: Filesystem}",
		},
		"VolumeAttributesClass": {
			reason: "volumes have them already",
			old:    "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: x}\ndriverName: a\nparameters: {iops: '1'}",
			new:    "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: x}\ndriverName: a\nparameters: {iops: '2'}",
			want:   []string{"Critical Immutable: parameters changes, which the API server refuses: the object has to be deleted and created"},
		},
		"EndpointSlice": {
			reason: "its addresses are of one type",
			old:    "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: x}\naddressType: IPv4\nendpoints: [{addresses: [192.0.2.1]}]",
			new:    "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: x}\naddressType: IPv6\nendpoints: [{addresses: [192.0.2.1]}]",
			want:   []string{"Critical Immutable: addressType changes, which the API server refuses: the object has to be deleted and created"},
		},
		"QuotaScopes": {
			reason: "what it counts",
			old:    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: x}\nspec: {scopes: [BestEffort]}",
			new:    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: x}\nspec: {scopes: [NotBestEffort]}",
			want:   []string{"Critical Immutable: spec.scopes changes, which the API server refuses: the object has to be deleted and created"},
		},
		"ClusterIP": {
			reason: "it may be allocated, not changed",
			old:    plain("Service", "spec: {clusterIP: 10.0.0.1}"),
			new:    plain("Service", "spec: {clusterIP: None}"),
			want:   []string{"Critical Immutable: spec.clusterIP changes, which the API server refuses: the object has to be deleted and created"},
		},
		"ClusterIPIsSet": {
			reason: "it may be allocated, not changed",
			old:    plain("Service", "spec: {}"),
			new:    plain("Service", "spec: {clusterIP: 10.0.0.1}"),
		},
		"ImmutableData": {
			reason: "it said so itself",
			old:    plain("ConfigMap", "immutable: true\ndata: {k: v}"),
			new:    plain("ConfigMap", "immutable: true\ndata: {k: w}"),
			want:   []string{"Critical Immutable: data changes, which the API server refuses: the object has to be deleted and created"},
		},
		"Webhook": {
			reason: "what it sees, and what happens when it is down",
			old:    webhook("{name: a, failurePolicy: Ignore, namespaceSelector: {matchLabels: {a: b}}, rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]}"),
			new:    webhook("{name: a, failurePolicy: Fail, rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, DELETE]}]}, {name: b, rules: [{apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: ['*']}]}"),
			want: []string{
				"Critical Webhook: failurePolicy of webhook a changes from Ignore to Fail: requests fail while it is down",
				"Warning Webhook: webhook a also sees DELETE on deployments.apps/v1",
				"Warning Webhook: webhook a no longer has a namespaceSelector: it sees more",
				"Warning Webhook: new webhook b sees * on *.*: these requests fail while it is down",
			},
		},
		"NamespaceGoes": {reason: "and everything in it", old: plain("Namespace", ""), want: []string{"Critical Deleted: will be deleted, and everything in it"}},
		"DefinitionGoes": {
			reason: "and every object of its kind", old: definition("{}"),
			want: []string{"Critical Deleted: will be deleted, and every object of its kind in the cluster"},
		},
		"ObjectGoes":  {reason: "every deletion is said", old: plain("ConfigMap", ""), want: []string{"Warning Deleted: will be deleted"}},
		"ObjectComes": {reason: "nothing to warn of", new: plain("ConfigMap", "")},
		"RoleComes": {
			reason: "its rights are new", new: role("[{apiGroups: [''], resources: [secrets], verbs: ['*']}]"),
			want: []string{"Warning RightsGained: gains * on secrets: it reads Secrets"},
		},
		"APIVersion": {
			reason: "the author moved on",
			old:    "apiVersion: example.com/v1beta1\nkind: X\nmetadata: {name: x}", new: "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}",
			want: []string{"Info APIVersion: written in version v1, was v1beta1"},
		},
		"TooManyRights": {
			reason: "a role made to exhaust us is called what it is",
			old:    role("[]"),
			new:    role("[{apiGroups: [" + strings.Repeat("a, ", 1000) + "a], resources: [" + strings.Repeat("r, ", 1000) + "r], verbs: [get]}]"),
			want:   []string{"Critical RightsGained: it has too many rules to compare right by right"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var old, new *manifest.Object
			if tc.old != "" {
				old = difftest.Object(t, tc.old)
			}
			if tc.new != "" {
				new = difftest.Object(t, tc.new)
			}
			change := compare(t, old, new)
			if delta := cmp.Diff(tc.want, told(change.Notes)); delta != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, delta)
			}
			difftest.CheckNotes(t, change.Notes)
		})
	}
}

// TestScopeOfBindings: a cluster-wide binding gives more rights than a binding in a namespace, even
// if its manifest has a namespace.
func TestScopeOfBindings(t *testing.T) {
	role := *difftest.Object(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]")
	binding := func(kind string) manifest.Object {
		return *difftest.Object(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: "+kind+"\nmetadata: {name: b, namespace: ns}\nroleRef: {kind: ClusterRole, name: r}\nsubjects: [{kind: ServiceAccount, name: op, namespace: ns}]")
	}
	report := diff.Revisions(t.Context(), []manifest.Object{role, binding("RoleBinding")}, []manifest.Object{role, binding("ClusterRoleBinding")}, diff.Options{Schema: difftest.Builtin(t)})
	for _, note := range report.Notes {
		if note.Reason == "SubjectsGained" {
			return
		}
	}
	t.Errorf("nobody is said to gain rights: %v", report.Notes)
}

// TestRenamedRoles: operators name their roles after their version. A subject with the same rights
// as before gains no rights.
func TestRenamedRoles(t *testing.T) {
	set := func(version, rules string) []manifest.Object {
		return []manifest.Object{
			*difftest.Object(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: op."+version+"}\nrules: "+rules),
			*difftest.Object(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: op."+version+"}\nroleRef: {kind: ClusterRole, name: op."+version+"}\nsubjects: [{kind: ServiceAccount, name: op, namespace: ns}]"),
		}
	}
	old := set("v1", "[{apiGroups: [''], resources: [secrets], verbs: [get, list]}]")
	new := set("v2", "[{apiGroups: [''], resources: [secrets], verbs: [get, watch]}, {apiGroups: [apps], resources: [deployments], verbs: [get]}]")
	report := diff.Revisions(t.Context(), old, new, diff.Options{Schema: difftest.Builtin(t)})
	var got []string
	for _, note := range report.Notes {
		got = append(got, note.String())
	}
	want := []string{
		"Warning: ClusterRole.rbac.authorization.k8s.io op.v2: gains watch on secrets: it reads Secrets",
		"Info: ClusterRole.rbac.authorization.k8s.io op.v2: gains get on deployments.apps",
		"Info: ClusterRoleBinding.rbac.authorization.k8s.io op.v2: gives ClusterRole op.v2 to ServiceAccount ns/op",
		"Info: ClusterRole.rbac.authorization.k8s.io op.v1: will be deleted",
		"Info: ClusterRole.rbac.authorization.k8s.io op.v1: loses list on secrets",
		"Info: ClusterRoleBinding.rbac.authorization.k8s.io op.v1: will be deleted",
		"Info: ClusterRoleBinding.rbac.authorization.k8s.io op.v1: takes ClusterRole op.v1 from ServiceAccount ns/op",
	}
	if delta := cmp.Diff(want, got); delta != "" {
		t.Errorf("-want, +got:\n%s", delta)
	}
}

func TestNotesAreShort(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  template:\n    spec:\n      containers:\n"
	long := strings.Repeat("x", 100_000)
	old := difftest.Object(t, head+"      - {name: c, image: i}")
	new := difftest.Object(t, head+"      - {name: c, image: "+long+"}")
	for _, note := range compare(t, old, new).Notes {
		if len(note.Message) > 1000 {
			t.Errorf("a note of %d bytes", len(note.Message))
		}
	}
}
