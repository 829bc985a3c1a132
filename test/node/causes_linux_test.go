//go:build integration

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/console/screens"
	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// workloadImage is the image built from ./workload.
const workloadImage = "penstock.local/workload:1"

// soon bounds the time between the kubelet's report of a cause and Penstock's message.
const soon = time.Minute

// causeCase is a workload that never becomes ready. The case and its namespace have the same name.
type causeCase struct {
	object drafts.Object
	// known reports whether the kubelet or the scheduler has reported the cause in the Pod.
	known func(*corev1.Pod) bool
	// says lists texts that Penstock's message must contain.
	says []string
}

// deployment returns a Deployment with one container. container and pod are further fields in YAML.
// By default the container is ready at once.
func deployment(name, container, pod string) drafts.Object {
	made := objects.Deployment(name, name, workloadImage)
	spec := made["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	main := spec["containers"].([]any)[0].(map[string]any)
	main["readinessProbe"] = decode(`{httpGet: {path: /ready, port: 8080}, periodSeconds: 1}`)
	for field, value := range decode(container) {
		main[field] = value
	}
	for field, value := range decode(pod) {
		spec[field] = value
	}
	spec["terminationGracePeriodSeconds"] = 5
	return made
}

// decode parses the YAML of this file.
func decode(text string) map[string]any {
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(text), &decoded); err != nil {
		panic(err)
	}
	return decoded
}

// ended reports whether a container of the Pod has terminated.
func ended(pod *corev1.Pod) bool {
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// waiting returns a function that reports whether a container of a Pod waits for a reason.
func waiting(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		statuses := pod.Status.ContainerStatuses
		return len(statuses) > 0 && statuses[0].State.Waiting != nil && statuses[0].State.Waiting.Reason == reason
	}
}

// unschedulable reports whether no node fits the Pod.
func unschedulable(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

func causeCases() map[string]causeCase {
	return map[string]causeCase{
		"exit": {deployment("exit", "args: [-exit=3]", ""), ended, []string{"container main: ", ", exit code 3"}},
		"image": {deployment("image", `image: "127.0.0.1:1/workload:9"`, ""), waiting("ErrImagePull"),
			[]string{"container main: ImagePullBackOff, image 127.0.0.1:1/workload:9"}},
		"unready": {deployment("unready", "args: [-ready-after=-1s]", ""), func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning },
			[]string{"container main: ReadinessProbeFailing, is answered HTTP 503"}},
		"memory": {deployment("memory", "{args: [-hungry], resources: {limits: {memory: 32Mi}}}", ""), ended,
			[]string{"container main: OOMKilled, exit code 137"}},
		"init": {deployment("init", "", `initContainers: [{name: prepare, image: "`+workloadImage+`", args: [-exit=4]}]`), ended,
			[]string{"init container prepare: ", ", exit code 4"}},
		"variable": {deployment("variable", "envFrom: [{configMapRef: {name: absent}}]", ""), waiting("CreateContainerConfigError"),
			[]string{"container main: CreateContainerConfigError, ConfigMap variable/absent does not exist"}},
		"mount": {deployment("mount", "volumeMounts: [{name: v, mountPath: /v}]", "volumes: [{name: v, configMap: {name: absent}}]"), waiting("ContainerCreating"),
			[]string{"FailedMount, ConfigMap mount/absent does not exist"}},
		"node": {deployment("node", "", `nodeSelector: {nowhere: "yes"}`), unschedulable,
			[]string{"Unschedulable, none of 1 node fits: 1 not matched by its node selector or affinity"}},
		"claim": {deployment("claim", "", "volumes: [{name: v, persistentVolumeClaim: {claimName: big}}]"), unschedulable,
			[]string{"Unschedulable, PersistentVolumeClaim claim/big is not bound: storage class local has no volume for it"}},
		"job": {decode(`{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: job}, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never,
containers: [{name: main, image: "` + workloadImage + `", args: [-exit=7]}]}}}}`), ended, []string{"container main: Error, exit code 7"}},
	}
}

// TestCauses rolls out Pods that the kubelet can run, and Pods that it cannot run. Penstock's
// conditions and `kubectl penstock why` name the cause soon after the kubelet reports it. The next
// phase waits. Rollbacks and deletions complete.
func TestCauses(t *testing.T) {
	c := cluster.Start(t, cluster.Node(tools))
	image, err := plane.ProgramImage(goBuild(t, "./workload"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Plane().Import(t.Context(), workloadImage, image); err != nil {
		t.Fatal(err)
	}
	penstock.Build(t).Serve(t, c, penstock.DataDir(t))
	revisions := client.New(t, c.Config(), "default")
	namespace := func(name string) drafts.Object { return objects.Namespace(name) }

	var names []string
	for name, one := range causeCases() {
		names = append(names, name)
		claim := decode(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: big, namespace: ` + name + `},
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Ti}}}}`)
		revisions.Create(drafts.Revision(name, 1).Phase("before", namespace(name), claim).Phase("work", one.object).
			Phase("behind", drafts.Object(objects.ConfigMap(name, "behind"))).String())
	}
	working := drafts.Revision("late", 1).Phase("before", namespace("late")).Phase("work", deployment("late", "args: [-ready-after=5s]", "")).
		Phase("behind", drafts.Object(objects.ConfigMap("late", "behind")))
	revisions.Create(working.String())
	t.Run("Words", func(t *testing.T) { words(t, c.In(t)) })
	t.Run("Late", func(t *testing.T) { late(t, c.In(t)) })
	t.Run("Logs", func(t *testing.T) { logs(t, c.In(t)) })
	t.Run("Gates", func(t *testing.T) {
		for _, name := range names {
			client.New(t, c.Config(), name).Absent("configmap/behind")
		}
	})
	t.Run("Rollback", func(t *testing.T) {
		late := client.New(t, c.Config(), "late")
		late.Create(drafts.Revision("late", 2).Phase("before", namespace("late")).Phase("work", deployment("late", "args: [-exit=3]", "")).String())
		late.Mentions("cer/late-2", `.status.conditions[?(@.type=="Progressing")].message`, "exit code 3")
		if out := (plugin.User{Kubeconfig: c.Kubeconfig(), Answer: "y"}).Run(t, "kubectl penstock rollback late"); out.ExitCode != 0 {
			t.Fatal(out)
		}
		late.Condition("cer/late-3", "Succeeded", "True")
		late.Becomes("deployment/late", ".status.availableReplicas", "1")
		late.There("configmap/behind")
	})
	t.Run("Deletion", func(t *testing.T) {
		for _, name := range append(names, "late") {
			c.MustKubectl("delete", "cer", "--wait=false", "--selector="+v1alpha1.ChainLabel+"="+name)
		}
		for _, name := range append(names, "late") {
			revisions.Gone("namespace/" + name)
		}
		if left := c.MustKubectl("get", "cer", "--output=name"); left != "" {
			t.Errorf("revisions that are left: %s", left)
		}
	})
}

// late: the next phase begins only after the Pod is ready.
func late(t *testing.T, c *cluster.Cluster) {
	in := client.New(t, c.Config(), "late")
	in.Condition("cer/late-1", "Succeeded", "True")
	behind := in.Get("configmap/behind").GetCreationTimestamp()
	typed, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	pods, err := typed.CoreV1().Pods("late").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("want one Pod: %v, %v", pods, err)
	}
	for _, condition := range pods.Items[0].Status.Conditions {
		if condition.Type == corev1.PodReady && behind.Time.Before(condition.LastTransitionTime.Time) {
			t.Errorf("the next phase began at %s, before the Pod was ready: %v", behind, condition)
		}
	}
	if took := pods.Items[0].Status.ContainerStatuses[0].State.Running; took == nil || behind.Sub(took.StartedAt.Time) < 4*time.Second {
		t.Errorf("the container was ready after 5 s, and the next phase began at %s: %v", behind, took)
	}
}

// words measures the time between the kubelet's report of each cause and Penstock's message.
func words(t *testing.T, c *cluster.Cluster) {
	typed, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	in := client.New(t, c.Config(), "default")
	known, open := map[string]time.Time{}, causeCases()
	poll.Eventually(t, "the causes of all", func() (bool, string) {
		pods, err := typed.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for i := range pods.Items {
			name := pods.Items[i].Namespace
			if one := open[name]; one.known != nil && known[name].IsZero() && one.known(&pods.Items[i]) {
				known[name] = time.Now()
			}
		}
		var lacks []string
		for name, one := range open {
			said := in.Field("cer/"+name+"-1", `.status.conditions[?(@.type=="Progressing")].message`)
			if lack := lacking(said, one.says); lack != "" {
				lacks = append(lacks, fmt.Sprintf("%s does not say %q: %s", name, lack, said))
				continue
			}
			if took := time.Since(known[name]); known[name].IsZero() || took > soon {
				t.Errorf("%s: Penstock said why %s after the kubelet knew, want at most %s: %s", name, took, soon, said)
			} else {
				t.Logf("%s: %s after the kubelet knew: %s", name, took.Round(time.Second), said)
			}
			why := plugin.User{Kubeconfig: c.Kubeconfig()}.Run(t, "kubectl penstock why "+name)
			if lack := lacking(strings.Join(strings.Fields(why.Stdout), " "), one.says); lack != "" {
				t.Errorf("it does not say %q: %s", lack, why)
			}
			delete(open, name)
		}
		return len(open) == 0, strings.Join(lacks, "\n")
	})
}

// logs: the console finds the Pod of a crash-looping container, and the Pod's ReplicaSet. It reads
// the logs of the current and the previous run from the kubelet.
func logs(t *testing.T, c *cluster.Cluster) {
	api, err := screens.New(screens.Options{Config: c.Config(), Cluster: "node"})
	if err != nil {
		t.Fatal(err)
	}
	console := httptest.NewServer(api.Handler())
	t.Cleanup(console.Close)
	// Streams stay open, so each line of a stream is checked when it arrives.
	ask := func(path string, is func(json.RawMessage) bool) error {
		ctx, stop := context.WithTimeout(t.Context(), poll.Patience/5)
		defer stop()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, console.URL+path, nil)
		if err != nil {
			return err
		}
		answer, err := console.Client().Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		for said, all := json.NewDecoder(answer.Body), ""; ; {
			var one json.RawMessage
			if err := said.Decode(&one); err != nil {
				return fmt.Errorf("%w: %s", err, all)
			}
			if all += string(one); is(one) {
				return nil
			}
		}
	}
	var pod screens.Pod
	poll.Eventually(t, "a container that has run twice", func() (bool, string) {
		err := ask("/api/revisions/exit-1/pods", func(said json.RawMessage) bool {
			var pods screens.Pods
			if json.Unmarshal(said, &pods) != nil || len(pods.Workloads) != 1 || len(pods.Workloads[0].Pods) != 1 {
				return false
			}
			pod = pods.Workloads[0].Pods[0]
			return pod.Containers[0].Restarts > 0 && pod.Containers[0].Ended == "exit code 3" && pod.ReplicaSet != "" && strings.HasPrefix(pod.Name, pod.ReplicaSet)
		})
		return err == nil, fmt.Sprint(err)
	})
	for _, previous := range []string{"false", "true"} {
		// Between two runs, and while a container starts, the log is missing for a moment.
		poll.Eventually(t, "its log, previous="+previous, func() (bool, string) {
			err := ask("/api/watch/logs/exit/"+pod.Name+"?container=main&tailLines=10&previous="+previous, func(said json.RawMessage) bool {
				return strings.Contains(string(said), "error: cannot open /etc/workload.yaml")
			})
			return err == nil, fmt.Sprint(err)
		})
	}
}

// lacking returns the first of parts that text does not contain.
func lacking(text string, parts []string) string {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// goBuild builds the Go program of a subfolder, statically linked.
func goBuild(t *testing.T, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, folder)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", folder, err, out)
	}
	return program
}
