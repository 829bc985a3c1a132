package metrics

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const monitoring = "../../artifacts/monitoring/"

var (
	item     = regexp.MustCompile("(?m)^- `([a-z0-9_]+)` \\([a-z]+(?:; ([a-z, ]+))?\\):")
	selector = regexp.MustCompile(`\b([a-z][a-z0-9_:]*)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
)

// TestRules: alerts and the dashboard use labels of the metrics, and values that the code sets. A
// misspelled name matches nothing, so the alert would never fire. The alert's own tests would not
// notice, because they invent the series.
func TestRules(t *testing.T) {
	labels, words := pageLabels(t), literals(t)
	for where, expr := range expressions(t) {
		checkExpression(t, where, expr, labels, words)
	}
}

// TestEveryRuleGives: a promtool test fires each alert, and each recording rule has a value.
// promtool itself accepts untested rules.
func TestEveryRuleGives(t *testing.T) {
	files, err := filepath.Glob(monitoring + "tests/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	gives := map[string]bool{}
	for _, file := range files {
		var tests struct {
			Tests []struct {
				Alerts []struct {
					Name   string `json:"alertname"`
					Firing []any  `json:"exp_alerts"`
				} `json:"alert_rule_test"`
				Records []struct {
					Expr    string
					Samples []any `json:"exp_samples"`
				} `json:"promql_expr_test"`
			}
		}
		read(t, file, &tests)
		for _, test := range tests.Tests {
			for _, alert := range test.Alerts {
				gives[alert.Name] = gives[alert.Name] || len(alert.Firing) > 0
			}
			for _, record := range test.Records {
				gives[record.Expr] = gives[record.Expr] || len(record.Samples) > 0
			}
		}
	}
	var rules ruleFile
	read(t, monitoring+"prometheusrule.yaml", &rules)
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			if !gives[rule.Alert+rule.Record] {
				t.Errorf("no test of %stests has %s give anything", monitoring, rule.Alert+rule.Record)
			}
		}
	}
}

type ruleFile struct {
	Spec struct {
		Groups []struct {
			Rules []struct{ Alert, Record, Expr string }
		}
	}
}

func pageLabels(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, parts := range item.FindAllStringSubmatch(string(data), -1) {
		found[parts[1]] = strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	if len(found) < len(Catalogue()) {
		t.Fatalf("%s describes %d metrics, and there are %d at least", page, len(found), len(Catalogue()))
	}
	return found
}

// literals returns the quoted texts of all code except tests.
func literals(t *testing.T) map[string]bool {
	t.Helper()
	found, quoted := map[string]bool{}, regexp.MustCompile(`"([A-Za-z]+)"`)
	err := filepath.WalkDir("../../pkg", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, match := range quoted.FindAllSubmatch(data, -1) {
			found[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// expressions returns the expressions of the rules and the dashboard, and the series in the tests
// of rules.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	var rules ruleFile
	read(t, monitoring+"prometheusrule.yaml", &rules)
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			found["rule "+rule.Alert+rule.Record] = rule.Expr
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	data, err := os.ReadFile(monitoring + "dashboard.json")
	if err == nil {
		err = json.Unmarshal(data, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for i, target := range panel.Targets {
			found[fmt.Sprintf("panel %q, query %d", panel.Title, i)] = target.Expr
		}
	}
	files, err := filepath.Glob(monitoring + "tests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("the tests of rules are %v: %v", files, err)
	}
	for _, file := range files {
		var tests struct {
			Tests []struct {
				Input []struct{ Series string } `json:"input_series"`
			}
		}
		read(t, file, &tests)
		for _, test := range tests.Tests {
			for _, input := range test.Input {
				found[filepath.Base(file)+": "+input.Series] = input.Series
			}
		}
	}
	return found
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}
}

func checkExpression(t *testing.T, where, expr string, labels map[string][]string, words map[string]bool) {
	t.Helper()
	// Scraping and histograms add these labels and suffixes.
	all := []string{"instance", "job", "le"}
	groupings := grouping.FindAllStringSubmatch(expr, -1)
	theirs := false
	for _, match := range selector.FindAllStringSubmatch(grouping.ReplaceAllString(expr, " "), -1) {
		known, ours := labels[match[1]]
		if !ours {
			known, ours = labels[regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(match[1], "")]
		}
		if !ours {
			// This is a function, or a metric of a library.
			theirs = theirs || match[2] != "" || strings.HasPrefix(match[1], "penstock:") || strings.Contains(match[1], "_total") || strings.Contains(match[1], "_bucket")
			if regexp.MustCompile(`^(penstock|clusterextension|clusterextensionrevision|configurationplan)_`).MatchString(match[1]) {
				t.Errorf("%s: there is no metric %s", where, match[1])
			}
			continue
		}
		all = append(all, known...)
		for _, m := range matcher.FindAllStringSubmatch(match[2], -1) {
			if !slices.Contains(known, m[1]) && !slices.Contains([]string{"instance", "job", "le"}, m[1]) {
				t.Errorf("%s: metric %s has no label %s, it has %v", where, match[1], m[1], known)
			}
			checkValues(t, where, m[1], m[3], words)
		}
	}
	for _, match := range groupings {
		for label := range strings.SplitSeq(match[1], ",") {
			if label = strings.TrimSpace(label); label != "" && !theirs && !slices.Contains(all, label) {
				t.Errorf("%s: none of its metrics has the label %s", where, label)
			}
		}
	}
}

// checkValues checks values of labels whose values are constants of the code.
func checkValues(t *testing.T, where, label, values string, words map[string]bool) {
	t.Helper()
	if !slices.Contains([]string{"condition", "status", "reason", "phase", "state", "lifecycle", "decision", "result"}, label) {
		return
	}
	for value := range strings.SplitSeq(values, "|") {
		// Users choose the names of phases.
		if regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(value) && !words[value] {
			t.Errorf("%s: nothing in the code has the value %s, which label %s is compared with", where, value, label)
		}
	}
}
