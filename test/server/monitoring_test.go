//go:build integration

package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// stuck is a revision whose Deployment never becomes available.
const stuck = `apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: argocd-2}
spec:
  revision: 2
  phases:
  - name: deploy
    objects:
    - object:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: server, namespace: default}
        spec:
          selector: {matchLabels: {app: server}}
          template:
            metadata: {labels: {app: server}}
            spec: {containers: [{name: server, image: example.com/server}]}
`

// monitored is a program whose metrics the test reads.
type monitored struct {
	*cluster.Cluster
	t      *testing.T
	server *penstock.Server
}

// TestMonitoring tests metrics, events, alerts and runbooks with the real program.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	program, dir := penstock.Build(t), dataDir(t)
	traces, audit, images := collectTraces(t), filepath.Join(dir, "audit.log"), registry.Serve(t)
	m := monitored{Cluster: c, t: t, server: program.Serve(t, c, dir, "--snapshot-dir="+filepath.Join(dir, "snapshots"),
		"--tracing-config-file="+traces.config, "--audit-policy-file=../../artifacts/examples/audit-policy.yaml", "--audit-log-path="+audit,
		"--registry-cas-dir="+images.Dir, "--registry-auth-file="+filepath.Join(images.Dir, registry.AuthFile))}
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	c.MustKubectl("wait", "cer/argocd-1", "--for=condition=Ready", poll.TimeoutFlag)
	m.drift("first", 1)
	m.idlePasses("argocd-1", 5)
	m.drift("second", 2)
	m.sample(`penstock_drift_repairs_total{kind="ConfigMap",manager="mallory"}`, "2")
	m.sample(`penstock_target_requests_total{reason="create",verb="patch"}`, "2")
	m.sample(`penstock_target_requests_total{reason="preflight",verb="patch"}`, "2")
	m.sample(`penstock_target_requests_total{reason="repair",verb="patch"}`, "2")
	m.sample(`penstock_rollout_phase_duration_seconds_count{phase="deploy"}`, "1")
	m.sample(`clusterextensionrevision_condition_transitions_total{condition="Succeeded",name="argocd-1",status="True"}`, "1")

	c.MustKubectlInput(stuck, "create", "-f", "-")
	m.sample(`clusterextensionrevision_condition{condition="Available",name="argocd-2",status="False"}`, "1")
	m.sample(`clusterextensionrevision_condition{condition="Progressing",name="argocd-2",status="True"}`, "1")
	m.sample(`clusterextensionrevision_failing_objects{name="argocd-2",reason="ProbeFailed"}`, "1")
	// This cluster lacks the prerequisites of the profile.
	c.MustKubectlInput("{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: rebalance}, spec: {profile: LoadAwareRebalancing}}", "create", "-f", "-")
	m.sample(`configurationplan_phase{name="rebalance",phase="PrerequisiteFailed",profile="LoadAwareRebalancing"}`, "1")
	m.sample(`configurationplan_phase_entries_total{phase="PrerequisiteFailed",profile="LoadAwareRebalancing"}`, "1")
	m.sample(`configurationplan_review_seconds{name="rebalance",profile="LoadAwareRebalancing"}`, "0")
	m.sample(`penstock_leader`, "1")
	m.sample(`penstock_upgrade_findings{severity="Blocks"}`, "0")
	m.sample(`penstock_store_degraded`, "0")
	m.sample(`kubernetes_feature_enabled{name="BoxcutterRuntime",stage="BETA"}`, "1")
	// No registry answers here.
	c.MustKubectlInput(catalogOf("nowhere", "127.0.0.1:1/catalog:v1"), "apply", "-f", "-")
	m.sample(`penstock_catalog_last_pull_success{catalog="nowhere"}`, "0")
	m.template()
	m.extension(images)
	t.Run("Documented", m.documented)
	t.Run("Dashboard", m.dashboard)
	t.Run("Alerts", m.alerts)
	t.Run("Runbooks", m.runbooks)
	t.Run("RevisionLog", m.revisionLog)
	t.Run("Audit", func(t *testing.T) { audited(t, audit) })
	t.Run("Traces", func(t *testing.T) { traces.see(t) })

	// Deleted objects have no series in the metrics.
	c.MustKubectl("delete", "cer", "argocd-2")
	eventually(t, "the series of a deleted revision", func() error {
		for series := range m.scrape() {
			if strings.Contains(series, `"argocd-2"`) {
				return fmt.Errorf("the metrics still have %s", series)
			}
		}
		return nil
	})

	// A new term repeats no events, and its counters begin at zero.
	m.server.Stop(t)
	m.server = program.Serve(t, c, dir)
	m.idlePasses("argocd-1", 3)
	const succeeded = `condition="Succeeded",name="argocd-1",status="True"`
	for _, series := range m.family(`clusterextensionrevision_condition_transitions_total`) {
		if strings.Contains(series, succeeded) {
			t.Errorf("a new term counts what happened before it: %s", series)
		}
	}
	m.drift("first", 3)
	m.sample(`penstock_drift_repairs_total{kind="ConfigMap",manager="mallory"}`, "1")
}

// drift changes an object and waits until there are as many repair events as expected, and no
// events of other reasons. Events are written one after another, so no further one can follow.
func (m monitored) drift(name string, repairs int) {
	m.t.Helper()
	m.MustKubectl("patch", "configmap", name, "--field-manager=mallory", "--type=merge", "-p", fmt.Sprintf(`{"data":{"number":"drift %d"}}`, repairs))
	eventually(m.t, "the event of a repair", func() error {
		out := m.MustKubectl("get", "events", "-A", "--field-selector=involvedObject.name=argocd-1",
			"-o", `jsonpath={range .items[*]}{.reason} {.count}{"\n"}{end}`)
		total := 0
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			reason, count, _ := strings.Cut(line, " ")
			n, err := strconv.Atoi(count)
			if err != nil {
				return fmt.Errorf("the events are %q", out)
			}
			// The rollout has one event for each of these reasons, whichever replica leads.
			if n == 1 && slices.Contains([]string{"RolloutBegun", "PhaseAvailable", "Succeeded"}, reason) {
				continue
			}
			if reason != "Repaired" {
				m.t.Fatalf("an event has no transition:\n%s", out)
			}
			total += n
		}
		if total > repairs {
			m.t.Fatalf("events report %d repairs, want %d:\n%s", total, repairs, out)
		}
		if total < repairs {
			return fmt.Errorf("events report %d repairs", total)
		}
		return nil
	})
}

// idlePasses makes the controller reconcile a chain that needs no change.
func (m monitored) idlePasses(revision string, n int) {
	m.t.Helper()
	const passes = `controller_runtime_reconcile_total{controller="chain",result="success"}`
	eventually(m.t, "the first pass", func() error {
		if m.scrape()[passes] == "" {
			return fmt.Errorf("the metrics have no pass yet")
		}
		return nil
	})
	for i := range n {
		before := number(m.t, m.scrape()[passes])
		m.MustKubectl("annotate", "cer", revision, "--overwrite", fmt.Sprintf("kubernetes.io/change-cause=pass %d of %d", i, n))
		eventually(m.t, "a pass", func() error {
			if now := number(m.t, m.scrape()[passes]); now <= before {
				return fmt.Errorf("the metrics have %v passes", now)
			}
			return nil
		})
	}
}

func number(t *testing.T, value string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// scrape returns the program's samples by series.
func (m monitored) scrape() map[string]string {
	m.t.Helper()
	config := m.Config()
	config.Host = fmt.Sprint("https://127.0.0.1:", m.server.Port())
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true, CertData: config.CertData, KeyData: config.KeyData,
		CertFile: config.CertFile, KeyFile: config.KeyFile}
	body, code := get(m.t, config, "/metrics")
	if code != http.StatusOK {
		m.t.Fatalf("scraping: %d: %s", code, body)
	}
	return samples(body)
}

func samples(body string) map[string]string {
	series := map[string]string{}
	for _, line := range strings.Split(body, "\n") {
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			series[line[:i]] = line[i+1:]
		}
	}
	return series
}

// family returns the series of one metric.
func (m monitored) family(name string) []string {
	m.t.Helper()
	return slices.DeleteFunc(slices.Collect(maps.Keys(m.scrape())), func(series string) bool { return nameOf(series) != name })
}

func nameOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return name
}

// sample waits until a series has a value.
func (m monitored) sample(series, want string) {
	m.t.Helper()
	eventually(m.t, series, func() error {
		if got := m.scrape()[series]; got != want {
			return fmt.Errorf("it is %q, want %q", got, want)
		}
		return nil
	})
}

// documented: the reference has every metric of Penstock.
func (m monitored) documented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	suffix := regexp.MustCompile(`_(bucket|count|sum)$`)
	for series := range m.scrape() {
		name := nameOf(series)
		if !slices.ContainsFunc([]string{"penstock_", "clusterextension_", "clusterextensionrevision_", "configurationplan_"}, func(ours string) bool { return strings.HasPrefix(name, ours) }) {
			continue
		}
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+suffix.ReplaceAllString(name, "")+"`") {
			t.Errorf("docs/reference/metrics.md does not list %s", name)
		}
	}
}

// alerts: the program or kube-apiserver has every metric in the alerts, and every alert has a
// runbook.
func (m monitored) alerts(t *testing.T) {
	data, err := os.ReadFile("../../artifacts/monitoring/prometheusrule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Record, Expr string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	// These metrics appear later than a test waits. They need the first check of the store (ten
	// minutes into a term), a pull of an extension, a receiver of notifications, or a rollout to a
	// fleet.
	known := map[string]bool{
		"penstock_store_damaged_records": true, catalogue.ExtensionPulls + "_bucket": true, catalogue.ExtensionPulls + "_count": true,
		catalogue.NotificationsFailed: true, catalogue.FleetWaits: true,
	}
	for series := range m.scrape() {
		known[nameOf(series)] = true
	}
	for series := range samples(m.MustKubectl("get", "--raw", "/metrics")) {
		if name := nameOf(series); strings.HasPrefix(name, "aggregator_") {
			known[name] = true
		}
	}
	checked := 0
	for _, group := range object.Spec.Groups {
		for _, rule := range group.Rules {
			checked++
			names := metricsOf(rule.Expr)
			if len(names) == 0 {
				t.Errorf("%s%s uses no metric", rule.Alert, rule.Record)
			}
			for _, name := range names {
				if !known[name] {
					t.Errorf("%s%s uses %s, which is not exposed", rule.Alert, rule.Record, name)
				}
			}
			if rule.Record != "" {
				known[rule.Record] = true
				continue
			}
			for _, want := range []string{rule.Labels["severity"], rule.Annotations["summary"], rule.Annotations["description"]} {
				if want == "" {
					t.Errorf("%s lacks its severity, summary or description", rule.Alert)
				}
			}
			path := "docs/operations/runbooks/" + rule.Alert + ".md"
			if url := rule.Annotations["runbook_url"]; !strings.HasSuffix(url, "/"+path) {
				t.Errorf("%s has the runbook %s", rule.Alert, url)
			}
			if _, err := os.Stat("../../" + path); err != nil {
				t.Error(err)
			}
		}
	}
	if checked == 0 {
		t.Error("the rules have no alerts")
	}
}

// template creates a CatalogSource of OLM v0. Its template reads an object that this cluster does
// not have.
func (m monitored) template() {
	m.MustKubectl("apply", "-f", "../template/testdata/catalogsource.yaml")
	m.MustKubectl("wait", "crd/catalogsources.operators.coreos.com", "--for=condition=Established", poll.TimeoutFlag)
	m.MustKubectl("create", "namespace", "olm")
	m.MustKubectlInput(`{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: dynamic-catalog, namespace: olm, annotations: {
  olm.catalogImageTemplate: "quay.io/example/catalog:v{group:,version:v1,kind:ConfigMap,namespace:olm,name:none,jsonpath:{.data.version}}"}}, spec: {sourceType: grpc}}`, "apply", "-f", "-")
	m.sample(`penstock_image_templates{kind="CatalogSource",state="Unresolved"}`, "1")
}

// metricsOf returns the metrics in an expression: words that are no keywords, labels or functions
// and not within braces or quotes.
func metricsOf(expr string) []string {
	for _, without := range []string{`"[^"]*"`, `\{[^}]*\}`, `\b(by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)`, `\[[^\]]*\]`, `\b[a-z_]+\s*\(`} {
		expr = regexp.MustCompile(without).ReplaceAllString(expr, " ")
	}
	words := regexp.MustCompile(`\b[a-z][a-z0-9_:]+\b`).FindAllString(expr, -1)
	words = slices.DeleteFunc(words, func(word string) bool {
		return slices.Contains([]string{"and", "or", "unless", "max", "min", "sum", "avg", "count", "bool", "offset"}, word)
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// runbooks: the commands of the runbooks and of the other operations pages work. They are run for a
// revision that is stuck and a plan that lacks a prerequisite. Commands that change objects run as
// dry-runs.
func (m monitored) runbooks(t *testing.T) {
	files, err := filepath.Glob("../../docs/operations/runbooks/*.md")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d runbooks: %v", len(files), err)
	}
	pages, err := filepath.Glob("../../docs/operations/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	files = append(files, pages...)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
			for _, command := range strings.Split(strings.TrimSpace(block[1]), "\n") {
				m.command(t, filepath.Base(file), command)
			}
		}
	}
}

// command runs one line of a page.
func (m monitored) command(t *testing.T, file, line string) {
	t.Helper()
	command, mayFail := strings.CutSuffix(line, " || true")
	stdin, rest, piped := strings.Cut(command, " | ")
	if piped {
		command = rest
	}
	var args []string
	for _, word := range regexp.MustCompile(`(?:[^\s']|'[^']*')+`).FindAllString(strings.TrimSuffix(command, " 2>&1"), -1) {
		args = append(args, strings.ReplaceAll(word, "'", ""))
	}
	if len(args) < 2 || args[0] != "kubectl" {
		t.Fatalf("%s: %q is no kubectl command", file, line)
	}
	switch args[1] {
	case "patch", "annotate", "delete":
		args = append(args, "--dry-run=server")
	case "create":
		for i, arg := range args {
			if strings.HasPrefix(arg, "/apis/") {
				args[i] += "?dryRun=All"
			}
		}
	}
	stdin = strings.ReplaceAll(strings.TrimPrefix(stdin, "echo "), "'", "")
	if out := m.KubectlInput(stdin, args[1:]...); out.ExitCode != 0 && !mayFail {
		t.Errorf("%s: %s", file, out)
	}
}
