package hostile

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/hostile"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const (
	// mostPerRequest limits the processor time of a request from a user without rights, in seconds.
	// mostQuestions limits the requests to the host that it causes.
	mostPerRequest = 1.0
	mostQuestions  = 30
	// settled is the time during which the process must be idle after an answer, because work after
	// the answer counts, too.
	settled = 300 * time.Millisecond
	path    = "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions"
)

const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [{apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [%[2]s]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`

const victim = `apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: victim-1}
spec:
  revision: 1
  phases:
  - name: all
    objects:
    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: default}, data: {k: v}}
`

type hostilePlane struct {
	*cluster.Cluster
	t      *testing.T
	server *penstock.Server
}

// TestHostile runs the benchmark.
func TestHostile(t *testing.T) {
	if os.Getenv("BENCH") != "hostile" {
		t.Skip("a benchmark that wants the machine for itself: run it by `make bench SUITE=hostile`")
	}
	report := &measure.Report{}
	t.Run("Expressions", func(t *testing.T) { expressions(t, report) })
	t.Run("Requests", func(t *testing.T) { requests(t, report) })
	if err := report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
	for _, missed := range report.Missed() {
		t.Errorf("%s: %s, want %s", missed.What, missed.Measured, missed.Target)
	}
}

func requests(t *testing.T, report *measure.Report) {
	c := cluster.Start(t, cluster.AllProcessors())
	w := hostilePlane{c, t, penstock.Build(t).Serve(t, c, penstock.DataDir(t))}
	c.MustKubectlInput(fmt.Sprintf(role, "alice", "create"), "create", "-f", "-")
	c.MustKubectlInput(fmt.Sprintf(role, "carol", "patch"), "create", "-f", "-")
	c.MustKubectlInput(victim, "create", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Succeeded", "cer/victim-1", poll.TimeoutFlag)
	w.requests(report, "creates of who may only create revisions", "alice", hostile.Creates())
	w.requests(report, "patches of who may only patch revisions", "carol", hostile.Patches("victim-1"))
}

func (w hostilePlane) requests(report *measure.Report, title, who string, all map[string]hostile.Request) {
	client, err := rest.HTTPClientFor(w.User(who).Config())
	if err != nil {
		w.t.Fatal(err)
	}
	table := report.Table("One request: "+title, "request", "KiB", "answer", "answer, KiB", "processor, s", "questions")
	worst, asked := 0.0, 0
	for _, name := range hostile.Names(all) {
		processor, questions := w.request(client, table, name, all[name])
		worst, asked = max(worst, processor), max(asked, questions)
	}
	report.AtMost("worst of "+title, mostPerRequest*1000, worst*1000, "ms of processor time")
	report.AtMost("worst of "+title, mostQuestions, float64(asked), "questions")
}

func (w hostilePlane) request(client *http.Client, table *measure.Table, name string, r hostile.Request) (processor float64, questions int) {
	w.quiet()
	before, mark := w.processor(), w.Audit().Mark()
	target := w.Config().Host + path + "?dryRun=All"
	if r.Name != "" {
		target = w.Config().Host + path + "/" + r.Name + "?dryRun=All"
	}
	if r.ContentType == "application/apply-patch+yaml" {
		target += "&fieldManager=hostile"
	}
	request, err := http.NewRequestWithContext(w.t.Context(), r.Method, target, bytes.NewReader([]byte(r.Body)))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", r.ContentType)
	response, err := client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	w.quiet()
	processor = (w.processor() - before).Seconds()
	questions = len(w.Audit().Since(mark, func(r plane.Request) bool { return strings.HasSuffix(r.UserAgent, "/privilege") }))
	table.Row(name, fmt.Sprint(len(r.Body)>>10), fmt.Sprint(response.StatusCode), fmt.Sprint((len(answer)+1023)>>10), fmt.Sprintf("%.2f", processor), fmt.Sprint(questions))
	return processor, questions
}

func (w hostilePlane) processor() time.Duration {
	used, err := measure.CPUOf(w.server.Pid())
	if err != nil {
		w.t.Fatal(err)
	}
	return used
}

// quiet waits until the process is nearly idle.
func (w hostilePlane) quiet() {
	for last := w.processor(); ; {
		time.Sleep(settled)
		now := w.processor()
		if now-last <= 10*time.Millisecond {
			return
		}
		last = now
	}
}
