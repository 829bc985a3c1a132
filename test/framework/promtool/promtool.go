// Package promtool evaluates expressions with promtool, on series that a test scraped and with the
// rules of artifacts/monitoring.
package promtool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// Check fails the test for each expression that promtool cannot evaluate, or that has an empty
// result without permission. Series are in promtool's form: a metric with its labels, and its
// values a minute apart. Expressions are evaluated at a time such as 16m. Alerts are the series
// ALERTS. root is the root of the repository.
func Check(t testing.TB, root string, series map[string]string, at string, expressions map[string]bool) {
	t.Helper()
	type values map[string]any
	var inputs, tests []values
	for name, points := range series {
		inputs = append(inputs, values{"series": name, "values": points})
	}
	for expression, mayBeEmpty := range expressions {
		expression = fmt.Sprintf("count(%s) > bool 0", expression)
		if mayBeEmpty {
			expression = fmt.Sprintf("(%s) or vector(1)", expression)
		}
		tests = append(tests, values{"expr": expression, "eval_time": at, "exp_samples": []values{{"labels": "{}", "value": 1}}})
	}
	if len(tests) == 0 {
		t.Fatal("no alert has an expression")
	}
	rules, err := os.ReadFile(filepath.Join(root, "artifacts/monitoring/prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Spec any }
	if err := yaml.Unmarshal(rules, &read); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string]any{
		"rules.yaml": read.Spec,
		"tests.yaml": values{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": []values{{
			"name": t.Name(), "interval": "1m", "input_series": inputs, "promql_expr_test": tests,
		}}},
	} {
		data, err := yaml.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(filepath.Join(root, "hack/promtool.sh"), "test", "rules", filepath.Join(folder, "tests.yaml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
