package cause_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
)

// TestOfSelf: the cause is in the object's own status.
func TestOfSelf(t *testing.T) {
	crd := manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}
	api := manifest.ID{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.example.com"}
	claim := manifest.ID{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "data"}
	service := `spec: {service: {namespace: a, name: api}}`
	for name, tc := range map[string]struct {
		reason   string
		id       manifest.ID
		live     string
		manifest string
		want     string
	}{
		"quota": {"which quota", deploymentID(), `
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "server-5d4-" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=3, limited: pods=3'}]}
`, ``, "Deployment.apps a/server: FailedCreate, ResourceQuota a/compute is used up"},
		"quota-needs": {"the quota wants requests", deploymentID(), `
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "server-5d4-" is forbidden: failed quota: compute: must specify limits.cpu for: main'}]}
`, ``, "Deployment.apps a/server: FailedCreate, ResourceQuota a/compute wants requests or limits that its containers do not have"},
		"account": {"no such ServiceAccount", deploymentID(), `
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "server-5d4-" is forbidden: error looking up service account a/runner: serviceaccount "runner" not found'}]}
`, ``, "Deployment.apps a/server: FailedCreate, ServiceAccount a/runner does not exist"},
		"security": {"Pod Security refuses", deploymentID(), `
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "server-5d4-" is forbidden: violates PodSecurity "restricted:latest": privileged (container "hunter2" must not set securityContext.privileged=true)'}]}
`, ``, "Deployment.apps a/server: FailedCreate, Namespace a does not admit such Pods (Pod Security)"},
		"webhook-denies": {"which webhook; not what it says", deploymentID(), `
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'admission webhook "policy.example.com" denied the request: exceeded quota: hunter2, x'}]}
`, ``, "Deployment.apps a/server: FailedCreate, webhook policy.example.com denied the Pod"},
		"policy-denies": {"which policy", deploymentID(), `
status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "server-5d4-" is forbidden: ValidatingAdmissionPolicy ''limits.example.com'' with binding ''all'' denied request: hunter2'}]}
`, ``, "Deployment.apps a/server: FailedCreate, ValidatingAdmissionPolicy.admissionregistration.k8s.io limits.example.com denied the Pod"},
		"replicas-fine": {"no condition", deploymentID(), `status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`, ``, ""},
		"names-taken": {"which name", crd, `
status: {conditions: [{type: NamesAccepted, status: "False", reason: KindConflict, message: '"Widget" is already in use'}, {type: Established, status: "False", reason: NotAccepted}]}
`, `spec: {group: example.com, names: {plural: widgets, kind: Widget}}`,
			"CustomResourceDefinition.apiextensions.k8s.io widgets.example.com: KindConflict, another definition of group example.com already uses its spec.names.kind, Widget"},
		"names-fine": {"it is not established yet", crd, `status: {conditions: [{type: NamesAccepted, status: "True"}]}`, ``, ""},
		"no-service": {"what the aggregator says in one word", api, `status: {conditions: [{type: Available, status: "False", reason: ServiceNotFound, message: "service/api in a is not present"}]}`, service,
			"APIService.apiregistration.k8s.io v1.example.com: ServiceNotFound, Service a/api does not exist"},
		"no-endpoints": {"nobody behind it", api, `status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: 'endpoints for service/api in "a" have no addresses with port name "https"'}]}`, service,
			"APIService.apiregistration.k8s.io v1.example.com: MissingEndpoints, Service a/api has no ready Pod behind it"},
		"discovery": {"it answers something else; not what", api, `status: {conditions: [{type: Available, status: "False", reason: FailedDiscoveryCheck, message: "failing or missing response from https://10.0.0.1:443/apis/example.com/v1: hunter2"}]}`, service,
			"APIService.apiregistration.k8s.io v1.example.com: FailedDiscoveryCheck, Service a/api does not answer as an API server does"},
		"claim-waits": {"which class", claim, "metadata: {namespace: a, name: data}\nspec: {storageClassName: fast}\nstatus: {phase: Pending}", ``,
			"PersistentVolumeClaim a/data: ClaimNotBound, is not bound: storage class fast has no volume for it"},
		"claim-classless": {"no class, no volume", claim, "metadata: {namespace: a, name: data}\nstatus: {phase: Pending}", ``,
			"PersistentVolumeClaim a/data: ClaimNotBound, is not bound: it has no storage class, so that no volume is made for it"},
		"claim-lost": {"its volume went", claim, "metadata: {namespace: a, name: data}\nspec: {volumeName: v}\nstatus: {phase: Lost}", ``,
			"PersistentVolumeClaim a/data: ClaimNotBound, has lost its volume"},
		"job": {"a Job that gave up", manifest.ID{Group: "batch", Kind: "Job", Namespace: "a", Name: "migrate"}, `
status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: "Job has reached the specified backoff limit"}]}
`, ``, "Job.batch a/migrate: BackoffLimitExceeded"},
		"garbage": {"conditions that are none", deploymentID(), `status: {conditions: "hunter2"}`, ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			subject := cause.Subject{
				ID: tc.id, Live: &unstructured.Unstructured{Object: parse[map[string]any](t, tc.live)}, Manifest: parse[map[string]any](t, tc.manifest),
			}
			found, known := subject.OfSelf()
			if got := said(found, known); got != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
			}
			if strings.Contains(found.String(), secret) {
				t.Errorf("%q has what a component wrote", found)
			}
		})
	}
}

// TestByEvents: Events refine a cause.
func TestByEvents(t *testing.T) {
	creating := cause.Cause{Reason: "ContainerCreating", Object: manifest.ID{Kind: "Pod", Namespace: "a", Name: "p"}}
	mounting := pod(t, "p", main+`
volumes:
- {name: settings, configMap: {name: settings}}
- {name: login, secret: {secretName: login, items: [{key: user, path: user}]}}
`, `{phase: Pending}`)
	for name, tc := range map[string]struct {
		reason string
		cause  cause.Cause
		events []string
		want   string
	}{
		"no-events": {"what was known stays", creating, nil, "Pod a/p: ContainerCreating"},
		"volume": {"which ConfigMap", creating, []string{`{type: Warning, reason: FailedMount, message: 'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found'}`},
			"Pod a/p: FailedMount, ConfigMap a/settings does not exist"},
		"volume-key": {"which key", creating, []string{`{type: Warning, reason: FailedMount, message: 'MountVolume.SetUp failed for volume "login" : references non-existent secret key: user'}`},
			"Pod a/p: FailedMount, Secret a/login has no key user"},
		"volume-other": {"a name that the spec does not have is not repeated", creating, []string{`{type: Warning, reason: FailedMount, message: 'MountVolume.SetUp failed for volume "x" : secret "hunter2" not found'}`},
			"Pod a/p: FailedMount"},
		"newest": {"the last one counts, and warnings only", creating, []string{
			`{type: Warning, reason: FailedMount, message: old, lastTimestamp: "2026-01-02T03:04:05Z"}`,
			`{type: Normal, reason: Pulling, message: hunter2, lastTimestamp: "2026-01-02T03:04:09Z"}`,
			`{type: Warning, reason: FailedCreatePodSandBox, message: hunter2, eventTime: "2026-01-02T03:04:08.000000Z"}`,
		}, "Pod a/p: FailedCreatePodSandBox"},
		"probe": {"how the probe is answered", cause.Cause{Reason: cause.ReadinessProbeFailing, Container: "main", Object: creating.Object},
			[]string{`{type: Warning, reason: Unhealthy, message: 'Readiness probe failed: HTTP probe failed with statuscode: 503'}`},
			"Pod a/p: container main: ReadinessProbeFailing, is answered HTTP 503"},
		"probe-words": {"the words of a program are not repeated", cause.Cause{Reason: cause.ReadinessProbeFailing, Container: "main", Object: creating.Object},
			[]string{`{type: Warning, reason: Unhealthy, message: 'Readiness probe failed: hunter2'}`},
			"Pod a/p: container main: ReadinessProbeFailing"},
		"no-pods": {"of a StatefulSet only Events say it", cause.OfMissingPods(manifest.ID{Group: "apps", Kind: "StatefulSet", Namespace: "a", Name: "db"}),
			[]string{`{type: Warning, reason: FailedCreate, message: 'create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=3, limited: pods=3'}`},
			"StatefulSet.apps a/db: FailedCreate, ResourceQuota a/compute is used up"},
		"no-class": {"a class that nobody made", cause.Cause{Reason: cause.ClaimNotBound, Object: manifest.ID{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "data"}},
			[]string{`{type: Warning, reason: ProvisioningFailed, message: 'storageclass.storage.k8s.io "fast" not found'}`},
			"PersistentVolumeClaim a/data: ProvisioningFailed, StorageClass.storage.k8s.io fast does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			var events []corev1.Event
			for _, text := range tc.events {
				events = append(events, parse[corev1.Event](t, text))
			}
			if got := tc.cause.ByEvents(events, &mounting).String(); got != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestNewest: the ReplicaSet and the Pods that count.
func TestNewest(t *testing.T) {
	set := func(text string) appsv1.ReplicaSet { return parse[appsv1.ReplicaSet](t, text) }
	owned := `ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: server, uid: u, controller: true}]`
	sets := []appsv1.ReplicaSet{
		set(`metadata: {name: nine, annotations: {deployment.kubernetes.io/revision: "9"}, ` + owned + `}`),
		set(`metadata: {name: ten, annotations: {deployment.kubernetes.io/revision: "10"}, ` + owned + `}`),
		set(`metadata: {name: foreign, annotations: {deployment.kubernetes.io/revision: "11"}}`),
	}
	if newest := cause.NewestReplicaSet("u", sets); newest == nil || newest.Name != "ten" {
		t.Errorf("the newest of %v is %v", sets, newest)
	}
	if newest := cause.NewestReplicaSet("other", sets); newest != nil {
		t.Errorf("%s belongs to somebody else", newest.Name)
	}

	one := func(name, labels, status string) corev1.Pod {
		p := pod(t, name, main, status)
		owner := parse[corev1.Pod](t, `metadata: {labels: `+labels+`, ownerReferences: [{apiVersion: apps/v1, kind: x, name: x, uid: u, controller: true}]}`)
		p.Labels, p.OwnerReferences = owner.Labels, owner.OwnerReferences
		return p
	}
	ready, starting := `{phase: Running, conditions: [{type: Ready, status: "True"}]}`, `{phase: Pending}`
	live := &unstructured.Unstructured{Object: parse[map[string]any](t, `status: {updateRevision: new}`)}
	for name, tc := range map[string]struct {
		reason, kind string
		pods         []corev1.Pod
		want         string
	}{
		"statefulset": {"those of the update", "StatefulSet", []corev1.Pod{
			one("old", `{controller-revision-hash: old}`, starting), one("new", `{controller-revision-hash: new}`, starting),
		}, "new"},
		"statefulset-old": {"when the new ones are fine, an old one is the cause", "StatefulSet", []corev1.Pod{
			one("old", `{controller-revision-hash: old}`, starting), one("new", `{controller-revision-hash: new}`, ready),
		}, "old"},
		"daemonset": {"those of the newest template", "DaemonSet", []corev1.Pod{
			one("a", `{pod-template-generation: "9"}`, starting), one("b", `{pod-template-generation: "10"}`, starting),
		}, "b"},
		"job": {"all of it, and of nobody else", "Job", []corev1.Pod{one("a", `{}`, starting), pod(t, "foreign", main, starting)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			subject := cause.Subject{ID: manifest.ID{Group: "apps", Kind: tc.kind, Namespace: "a", Name: "x"}, UID: "u", Live: live}
			found, known := cause.OfPods(subject.PodsOf("u", tc.pods))
			if !known || found.Object.Name != tc.want {
				t.Errorf("%s: found %v, want Pod %s", tc.reason, found, tc.want)
			}
		})
	}
}

// TestWebhooks: webhooks whose Service has no endpoints.
func TestWebhooks(t *testing.T) {
	id := manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "x"}
	for name, tc := range map[string]struct{ reason, answer, want string }{
		"no-endpoints": {"the Service is in the address", `Internal error occurred: failed calling webhook "validate.example.com": failed to call webhook: Post "https://hook.b.svc:443/validate?timeout=10s": no endpoints available for service "hook"`,
			"ConfigMap a/x: NoEndpoints, Service b/hook of webhook validate.example.com has no ready Pod behind it"},
		"no-service": {"or it does not exist", `failed calling webhook "validate.example.com": failed to call webhook: Post "https://hook.b.svc:443/validate?timeout=10s": service "hook" not found`, "ConfigMap a/x: NoEndpoints, Service b/hook of webhook validate.example.com has no ready Pod behind it"},
		"other":      {"somebody is there, and slow", `failed calling webhook "validate.example.com": failed to call webhook: Post "https://hook.b.svc:443/validate?timeout=10s": context deadline exceeded`, ""},
		"no-webhook": {"an answer about something else", `admission webhook "x" denied the request: no endpoints available for service`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(cause.OfRefusal(id, tc.answer)); got != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
			}
		})
	}
	service := manifest.ID{Kind: "Service", Namespace: "b", Name: "hook"}
	slice := func(text string) []discoveryv1.EndpointSlice {
		return []discoveryv1.EndpointSlice{parse[discoveryv1.EndpointSlice](t, text)}
	}
	if _, missing := cause.OfEndpoints(id, service, nil); !missing {
		t.Error("a Service without slices has endpoints")
	}
	if _, missing := cause.OfEndpoints(id, service, slice(`endpoints: [{addresses: ["10.0.0.1"], conditions: {ready: false}}]`)); !missing {
		t.Error("a Service without a ready Pod has endpoints")
	}
	if _, missing := cause.OfEndpoints(id, service, slice(`endpoints: [{addresses: ["10.0.0.1"], conditions: {ready: true}}]`)); missing {
		t.Error("a Service with a ready Pod has no endpoints")
	}
}
