package check

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// serve returns an installation in a cluster that answers paths with YAML, and other paths with
// 404.
func serve(t *testing.T, answers map[string]string) *installation {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, found := answers[r.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			text = "{kind: Status, apiVersion: v1, status: Failure, reason: NotFound, code: 404, message: there is none}"
		}
		content, err := yaml.YAMLToJSON([]byte(text))
		if err != nil || !json.Valid(content) {
			t.Error(err)
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	client, err := rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	return &installation{client: client, services: map[string]*apiService{}}
}

func TestPods(t *testing.T) {
	const in = "/namespaces/penstock-system/"
	deployment := func(ready string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: penstock, namespace: penstock-system, uid: d, generation: 2},
spec: {replicas: 1, selector: {matchLabels: {app: penstock}}}, status: {observedGeneration: 2, updatedReplicas: 1, readyReplicas: ` + ready + `}}`
	}
	owner := func(kind, uid string) string {
		return "ownerReferences: [{apiVersion: apps/v1, kind: " + kind + ", name: x, uid: " + uid + ", controller: true}]"
	}
	sets := `{apiVersion: v1, kind: List, items: [{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: penstock-1, namespace: penstock-system, uid: r, ` + owner("Deployment", "d") + `}}]}`
	pod := func(rest string) string {
		return `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: penstock-1-a, namespace: penstock-system, uid: p, ` + owner("ReplicaSet", "r") + `}, ` + rest + `}]}`
	}
	for name, tc := range map[string]struct {
		deployment, pods, claims string
		state                    State
		says                     string
	}{
		"outside": {"", "", "", Skipped, "runs outside the cluster"},
		"ready":   {deployment("1"), "", "", OK, "1 of 1 ready"},
		"memory": {deployment("0"), pod(`spec: {containers: [{name: penstock, image: i}]}, status: {phase: Running, containerStatuses: [{name: penstock, ready: false, restartCount: 3, image: i, imageID: i,
state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`), "", Failed,
			"0 of 1 ready: Pod penstock-system/penstock-1-a: container penstock: OOMKilled, exit code 137, 3 restarts"},
		"image": {deployment("0"), pod(`spec: {containers: [{name: penstock, image: "registry.example.com/p:1"}]}, status: {phase: Pending, containerStatuses: [{name: penstock, ready: false, restartCount: 0, image: i, imageID: "",
state: {waiting: {reason: ErrImagePull, message: hunter2}}}]}`), "", Failed, "container penstock: ImagePullBackOff, image registry.example.com/p:1"},
		"claim": {deployment("0"), pod(`spec: {containers: [{name: penstock, image: i}], volumes: [{name: data, persistentVolumeClaim: {claimName: penstock-data}}]}, status: {phase: Pending,
conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."}]}`),
			`{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: penstock-data, namespace: penstock-system}, spec: {storageClassName: fast}, status: {phase: Pending}}]}`,
			Failed, "Unschedulable, PersistentVolumeClaim penstock-system/penstock-data is not bound: storage class fast has no volume for it"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{"/apis/apps/v1" + in + "replicasets": sets, "/api/v1" + in + "pods": tc.pods, "/api/v1" + in + "persistentvolumeclaims": tc.claims}
			if tc.deployment != "" {
				answers["/apis/apps/v1"+in+"deployments/penstock"] = tc.deployment
			}
			results := serve(t, answers).pods(t.Context())
			if len(results) != 1 {
				t.Fatalf("%d results", len(results))
			}
			expect(t, name, results[0], tc.state, tc.says)
			if strings.Contains(results[0].Found, "hunter2") {
				t.Errorf("it repeats what a registry wrote: %s", results[0].Found)
			}
		})
	}
}
