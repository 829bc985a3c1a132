package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/plugin/command"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// served is a console that somebody has opened.
type served struct {
	// address has the key, origin is the beginning of it.
	address, origin string
	// stop ends it, as an interruption does.
	stop func()
}

// serve runs a line of the plugin until the test ends, without a browser of its own and on a
// free port.
func serve(t *testing.T, kubeconfig, line string) *served {
	t.Helper()
	words := strings.Fields(strings.Replace(line, "--port 8090", "--port 0", 1))
	ctx, interrupt := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	var complaints strings.Builder
	go func() {
		ended <- command.Main(ctx, session.Process{
			Name: "kubectl-penstock", Args: append(words[2:], "--no-browser", "--kubeconfig", kubeconfig),
			Stdin: strings.NewReader(""), Stdout: writer, Stderr: &complaints,
			Getenv: func(string) string { return "" }, Terminal: func(any) (screen.Size, bool) { return screen.Size{}, false },
			Clock: clock.RealClock{}, Version: "v0.1.0",
		})
		writer.Close()
	}()
	printed, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		interrupt()
		<-ended
		t.Fatalf("the console did not begin: %v: %s", err, complaints.String())
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		interrupt()
		if code := <-ended; code != 130 {
			t.Errorf("the console ended with %d: %s", code, complaints.String())
		}
	}
	t.Cleanup(stop)
	address := strings.TrimSpace(printed)
	origin, _, found := strings.Cut(address, "/#key=")
	if !found {
		t.Fatalf("no address with a key: %q", printed)
	}
	return &served{address: address, origin: origin, stop: stop}
}

// asTyped is how people open a console.
const asTyped = `kubectl penstock console`

// object is one of the cluster.
type object = map[string]any

func configMap(namespace, name string, data ...string) object {
	pairs := object{}
	for i := 0; i+1 < len(data); i += 2 {
		pairs[data[i]] = data[i+1]
	}
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"namespace": namespace, "name": name}, "data": pairs}
}

func deployment(namespace, name, image, zone string) object {
	pod := object{"containers": []any{object{"name": "main", "image": image}}}
	if zone != "" {
		pod["nodeSelector"] = object{"zone": zone}
	}
	labels := object{"app": name}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"namespace": namespace, "name": name}, "spec": object{
		"replicas": 1, "selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels}, "spec": pod}}}
}

// phase is one of a revision.
type phase struct {
	name    string
	objects []object
}

// revision is one to be created.
type revision struct {
	extension, version, cause, state string
	number                           int
	annotations                      map[string]string
	phases                           []phase
}

func (r revision) object() object {
	annotations := object{}
	for key, value := range r.annotations {
		annotations[key] = value
	}
	if r.version != "" {
		annotations["olm.operatorframework.io/bundle-version"] = r.version
	}
	if r.cause != "" {
		annotations["kubernetes.io/change-cause"] = r.cause
	}
	var phases []any
	for _, one := range r.phases {
		var objects []any
		for _, content := range one.objects {
			objects = append(objects, object{"object": content})
		}
		phases = append(phases, object{"name": one.name, "objects": objects})
	}
	spec := object{"revision": r.number, "phases": phases}
	if r.state != "" {
		spec["lifecycleState"] = r.state
	}
	return object{"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
		"metadata": object{"name": fmt.Sprintf("%s-%d", r.extension, r.number), "annotations": annotations}, "spec": spec}
}
