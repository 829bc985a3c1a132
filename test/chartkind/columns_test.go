//go:build integration

package chartkind_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// columns tests the columns of Centrals, as kubectl prints them and as a Table.
func columns(w shared) {
	list := func(args ...string) string {
		return strings.Join(strings.Fields(w.MustKubectl(append([]string{"-n", w.name, "get", "centrals"}, args...)...)), " ")
	}
	if out := w.Kubectl("-n", w.name, "get", "centrals"); !strings.Contains(out.Stderr, "No resources found") {
		w.t.Errorf("of none it is said %s", out)
	}
	watched := w.watchTable()
	w.central("b", "central: {adminPasswordSecretName: first}, scanner: {scannerComponent: Enabled}")
	w.patch("b", `{"spec":{"central":{"adminPasswordSecretName":"second"}}}`)
	w.awaitCentral("b", "it is changed", settled)
	w.t.Run("Watch", func(t *testing.T) { watched(t) })

	// The second Central has the same extension name, and so different columns.
	w.MustKubectlInput(fmt.Sprintf("{apiVersion: platform.stackrox.io/v1alpha1, kind: Central, metadata: {name: a, namespace: %s, labels: {team: x}}}", w.name), "create", "-f", "-")
	w.awaitCentral("a", "its name is taken", is(report.Progressing, "True", report.Irreconcilable))
	const header = "NAME VERSION ADMINPASSWORD MESSAGE AVAILABLE PROGRESSING AGE"
	for _, c := range []struct {
		args []string
		has  []string
	}{
		{nil, []string{header, "b 4.9.0 second StackRox Central Services has been installed. True ReconcileSuccessful"}},
		{[]string{"-o", "wide"}, []string{header}},
		{[]string{"-A"}, []string{"NAMESPACE " + header, w.name + " b 4.9.0 second"}},
		{[]string{"--show-labels"}, []string{header + " LABELS", "team=x"}},
		{[]string{"-L", "team"}, []string{header + " TEAM"}},
		{[]string{"--no-headers"}, []string{"b 4.9.0 second"}},
		{[]string{"--chunk-size=1"}, []string{header + " a extension central-" + w.name + " has revisions of another owner"}},
		{[]string{"--sort-by={.metadata.creationTimestamp}"}, []string{header + " b 4.9.0"}},
		{[]string{"-o", "name"}, []string{"central.platform.stackrox.io/a central.platform.stackrox.io/b"}},
		{[]string{"b", "-o", "jsonpath={.status.reconciledVersion}"}, []string{"4.9.0"}},
		{[]string{"b", "-o", "yaml"}, []string{"reconciledVersion: 4.9.0"}},
	} {
		shown := list(c.args...)
		for _, want := range c.has {
			if !strings.Contains(shown, want) {
				w.t.Errorf("%v: want %q in\n%s", c.args, want, shown)
			}
		}
		if (c.args == nil || c.args[0] == "-o" && c.args[1] == "wide") && strings.Count(shown, header) != 1 {
			w.t.Errorf("%v: the header comes more than once:\n%s", c.args, shown)
		}
	}
}

// watchTable watches the Centrals of the scenario as kubectl get -w does. The returned function
// checks all rows so far: the column definitions come once, the values of Progressing in order, and
// each row has an age.
func (w shared) watchTable() func(t *testing.T) {
	w.t.Helper()
	client, err := rest.HTTPClientFor(w.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*poll.Patience)
	w.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/apis/platform.stackrox.io/v1alpha1/namespaces/%s/centrals?watch=true", w.Config().Host, w.name), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = answer.Body.Close() })
	return func(t *testing.T) { checkTable(t, answer.Body) }
}

func checkTable(t *testing.T, events io.Reader) {
	t.Helper()
	var seen []string
	headers, lines := 0, bufio.NewReader(events)
	for !slices.Equal(seen, []string{"Reconciling", "ReconcileSuccessful", "Reconciling", "ReconcileSuccessful"}) {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("Progressing was %v: %v", seen, err)
		}
		var event struct{ Object metav1.Table }
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if len(event.Object.ColumnDefinitions) > 0 {
			headers++
		}
		for _, row := range event.Object.Rows {
			const columns = 7
			if len(row.Cells) != columns {
				t.Fatalf("a row has %v", row.Cells)
			}
			if age, is := row.Cells[columns-1].(string); !is || age == "" || strings.Contains(age, "invalid") || strings.Contains(age, "unknown") {
				t.Errorf("Age is %v", row.Cells[columns-1])
			}
			if said, is := row.Cells[columns-2].(string); is && (len(seen) == 0 || seen[len(seen)-1] != said) {
				seen = append(seen, said)
			}
		}
	}
	if headers != 1 {
		t.Errorf("the columns came %d times", headers)
	}
}
