package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/console/screens"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/plugin/plugintest"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
)

type documented struct {
	reason, who, commands string
	signal                advice.Signal
}

// reasonsOf reads the table below a heading of a page of the reference.
func reasonsOf(t *testing.T, page, heading string) []documented {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../../docs/reference", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(content), heading+"\n\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	var all []documented
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "¦"), "|")
		if len(cells) == 7 && strings.HasPrefix(cells[1], " `") {
			for reason := range strings.SplitSeq(cells[1], ",") {
				all = append(all, documented{reason: strings.Trim(reason, " `"), signal: advice.Signal(strings.TrimSpace(cells[2])), who: strings.TrimSpace(cells[3]), commands: cells[5]})
			}
		}
	}
	if !found || len(all) < 15 {
		t.Fatalf("%s has %d reasons behind %q", page, len(all), heading)
	}
	return all
}

// situation is an extension in a cluster: the facts from which its status is computed, and its
// revisions, newest first.
type situation struct{ facts status.Facts }

func settledAt(result status.Result, revisions ...*v1alpha1.ClusterExtensionRevision) *situation {
	of := &extension.Extension{TypeMeta: metav1.TypeMeta{APIVersion: extension.Kind.GroupVersion().String(), Kind: extension.Kind.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: "argocd", UID: "x", Generation: 1, CreationTimestamp: metav1.NewTime(recordedAt())},
		Spec:       extension.Spec{Namespace: "argocd", Source: extension.Source{SourceType: extension.SourceCatalog, Catalog: &extension.Catalog{PackageName: "argocd"}}}}
	facts := status.Facts{Extension: of, Revisions: revisions, Outcome: status.Outcome{Result: result}, Now: recordedAt()}
	if result != status.Settled {
		facts.Outcome.Message, facts.Outcome.Why = "it is so", "that helps"
	}
	return &situation{facts: facts}
}

// revised returns the revision argocd-n of the extension, with conditions as "Type=Status/Reason".
func revised(number int64, change func(*v1alpha1.ClusterExtensionRevision), conditions ...string) *v1alpha1.ClusterExtensionRevision {
	yes := true
	r := &v1alpha1.ClusterExtensionRevision{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterExtensionRevision"}}
	r.Name, r.UID, r.ResourceVersion, r.Generation = "argocd-"+string(rune('0'+number)), "u", "1", 1
	r.CreationTimestamp = metav1.NewTime(recordedAt())
	r.Labels = map[string]string{v1alpha1.ChainLabel: "argocd"}
	r.Annotations = map[string]string{v1alpha1.VersionAnnotation: "1.0.0", v1alpha1.BundleAnnotation: "argocd.v1.0.0", extension.GenerationAnnotation: "1"}
	r.OwnerReferences = []metav1.OwnerReference{{APIVersion: extension.Kind.GroupVersion().String(), Kind: extension.Kind.Kind, Name: "argocd", UID: "x", Controller: &yes}}
	r.Spec.Revision, r.Spec.LifecycleState, r.Status.ObservedGeneration = number, v1alpha1.LifecycleStateActive, 1
	r.Spec.Phases = []v1alpha1.RevisionPhase{{Name: "deploy", Objects: []v1alpha1.RevisionObject{{}}}}
	for _, text := range conditions {
		kind, rest, _ := strings.Cut(text, "=")
		is, reason, _ := strings.Cut(rest, "/")
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(is), Reason: reason, Message: "because of " + reason, LastTransitionTime: metav1.NewTime(recordedAt())})
	}
	if change != nil {
		change(r)
	}
	return r
}

func wellConditions() []string {
	return []string{"Available=True/RolledOut", "Progressing=False/RolledOut", "Succeeded=True/RolledOut", "Failing=False/NoFailure", "Stalled=False/NotStalled", "Ready=True/RolledOut"}
}

// ofRevision returns a situation in which a revision has a reason.
func ofRevision(reason string, signal advice.Signal) *situation {
	paused := func(r *v1alpha1.ClusterExtensionRevision) { r.Spec.LifecycleState = v1alpha1.LifecycleStatePaused }
	object := func(reason, cause string) func(*v1alpha1.ClusterExtensionRevision) {
		return func(r *v1alpha1.ClusterExtensionRevision) {
			failure := v1alpha1.ObjectFailure{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "argocd", Name: "server", Reason: reason, Message: "it is not ready"}
			if cause != "" {
				failure.Cause = &v1alpha1.FailureCause{Reason: cause}
			}
			r.Status.Phases = []v1alpha1.PhaseStatus{{Name: "deploy", State: v1alpha1.PhaseStateProgressing, Objects: 1, Failing: []v1alpha1.ObjectFailure{failure}}}
		}
	}
	rolling := []string{"Available=False/RollingOut", "Progressing=True/RollingOut", "Succeeded=False/NotYet", "Failing=False/NoFailure", "Stalled=False/NotStalled", "Ready=False/NotYet"}
	replaced := func(all []string, with ...string) []string {
		var out []string
		for _, one := range all {
			kind, _, _ := strings.Cut(one, "=")
			if !slices.ContainsFunc(with, func(other string) bool { return strings.HasPrefix(other, kind+"=") }) {
				out = append(out, one)
			}
		}
		return append(out, with...)
	}
	of := func(r *v1alpha1.ClusterExtensionRevision) *situation { return settledAt(status.Settled, r) }
	switch reason {
	case "Held":
		return of(revised(2, nil, append(wellConditions(), "Held=True/IsRollback")...))
	case "DriftFound":
		return of(revised(1, nil, append(wellConditions(), "DriftReported=True/DriftFound")...))
	case "Paused":
		return of(revised(1, paused, replaced(wellConditions(), "Progressing=False/Paused", "Ready=True/Paused")...))
	case "Proposed":
		return of(revised(1, func(r *v1alpha1.ClusterExtensionRevision) {
			paused(r)
			r.Annotations[v1alpha1.ProposedAnnotation] = "true"
		}, replaced(rolling, "Progressing=False/Paused", "Available=False/Paused")...))
	case "Frozen":
		return of(revised(1, nil, replaced(rolling, "Progressing=False/Frozen")...))
	case "ProbeFailed":
		return of(revised(1, object("ProbeFailed", "ImagePullBackOff"), rolling...))
	case "Unavailable":
		return of(revised(1, object("ProbeFailed", ""), replaced(wellConditions(), "Available=False/Unavailable", "Ready=False/Unavailable")...))
	case "ProgressDeadlineExceeded":
		return of(revised(1, nil, replaced(rolling, "Stalled=True/ProgressDeadlineExceeded")...))
	case "NoEarlierSuccess", "IsRollback", "Overtaken", "RollbackRefused":
		return of(revised(1, nil, replaced(rolling, "Stalled=True/ProgressDeadlineExceeded", "RolledBack=False/"+reason)...))
	case "Pending":
		return of(revised(1, nil))
	case "TearingDown":
		return of(revised(1, func(r *v1alpha1.ClusterExtensionRevision) {
			now := metav1.NewTime(recordedAt())
			r.DeletionTimestamp, r.Finalizers = &now, []string{"x"}
		}, replaced(wellConditions(), "Available=False/TearingDown", "Progressing=True/TearingDown", "Ready=False/TearingDown")...))
	case "Unknown":
		return of(revised(1, nil, replaced(wellConditions(), "Available=Unknown/Unknown", "Ready=Unknown/Unknown")...))
	case "Unreadable":
		return of(revised(1, func(r *v1alpha1.ClusterExtensionRevision) {
			labels := r.Labels
			r.ObjectMeta = objectmeta.Unreadable(r.Name, errors.New("a checksum is wrong"))
			r.Labels, r.Status.Conditions = labels, nil
		}))
	case "Superseded":
		return settledAt(status.Settled, revised(2, nil, wellConditions()...), revised(1, nil, replaced(wellConditions(), "Progressing=False/Superseded")...))
	}
	switch signal {
	case advice.Healthy:
		return of(revised(1, nil, wellConditions()...))
	case advice.InProgress:
		return of(revised(1, nil, replaced(rolling, "Progressing=True/"+reason)...))
	}
	return of(revised(1, nil, replaced(rolling, "Failing=True/"+reason, "Stalled=True/"+reason)...))
}

// ofPass returns a situation in which the condition Ready has a reason that no revision has.
func ofPass(reason string) *situation {
	now := metav1.NewTime(recordedAt())
	switch reason {
	case "Succeeded":
		return settledAt(status.Settled, revised(1, nil, wellConditions()...))
	case "RollingOut":
		return ofRevision("RollingOut", advice.InProgress)
	case "Deleting":
		s := ofRevision("TearingDown", advice.InProgress)
		s.facts.Extension.DeletionTimestamp = &now
		return s
	case "RevisionsUnknown":
		s := settledAt(status.Settled, revised(1, nil, wellConditions()...))
		s.facts.RevisionsErr = errors.New("the store does not answer")
		return s
	}
	return settledAt(status.Result(reason))
}

// serve writes the cluster's answers to files, and serves them.
func (s *situation) serve(t *testing.T) *plugintest.Server {
	t.Helper()
	s.facts.Extension.Status = status.Of(s.facts)
	dir := t.TempDir()
	write := func(name string, value any) {
		raw, err := json.Marshal(value)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".json"), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	row := catalogv1alpha1.ExtensionUpgrades{Extension: "argocd", Approval: "Automatic", Allowed: "1.0.0", Newest: "1.0.0"}
	if s.facts.Extension.Status.Install != nil {
		row.Installed = "1.0.0"
	}
	write("revisions", map[string]any{"metadata": map[string]any{"resourceVersion": "7"}, "items": append([]*v1alpha1.ClusterExtensionRevision{}, s.facts.Revisions...)})
	write("plans", hcov1alpha1.ConfigurationPlanList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []hcov1alpha1.ConfigurationPlan{}})
	write("clusterextension-argocd", s.facts.Extension)
	write("upgrades-argocd", catalogv1alpha1.CatalogPackageUpgrades{
		TypeMeta: metav1.TypeMeta{APIVersion: catalogv1alpha1.SchemeGroupVersion.String(), Kind: "CatalogPackageUpgrades"}, ObjectMeta: metav1.ObjectMeta{Name: "argocd"},
		Extensions: []catalogv1alpha1.ExtensionUpgrades{row}})
	return plugintest.New(t, dir)
}

func consoleRow(t *testing.T, server *plugintest.Server) screens.ExtensionRow {
	t.Helper()
	api, err := screens.New(screens.Options{Config: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	console := httptest.NewServer(api.Handler())
	defer console.Close()
	defer console.CloseClientConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, console.URL+"/api/watch/overview", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var row screens.ExtensionRow
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		var message screens.Message
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if message.Rows != nil {
			for _, one := range message.Rows.Extensions {
				row = one
			}
		}
		if message.Kind == "synced" {
			return row
		}
	}
	t.Fatal("the stream has ended")
	return row
}

// TestAnswers: for every reason of the reference, all answers agree: why, the list of status,
// status of one extension, upgrades, the console and the condition Ready. Exit codes follow.
func TestAnswers(t *testing.T) {
	// Targets of plans have these reasons. An extension with only archived revisions is not listed.
	elsewhere := []string{"Drifted", "Stale", "Archived", "Imported"}
	situations := map[string]*situation{}
	answers := map[string]advice.Signal{}
	for _, one := range reasonsOf(t, "reasons.md", "## Of revisions") {
		if !slices.Contains(elsewhere, one.reason) {
			situations["Revision/"+one.reason], answers["Revision/"+one.reason] = ofRevision(one.reason, one.signal), one.signal
		}
	}
	answers["Revision/Superseded"] = advice.Healthy // the answer is about the newer revision
	for _, one := range reasonsOf(t, "clusterextension-status.md", "## Reasons of Ready") {
		situations["Pass/"+one.reason], answers["Pass/"+one.reason] = ofPass(one.reason), one.signal
		if one.signal != advice.NeedsAttention || one.reason == "RevisionsUnknown" {
			continue
		}
		// The spec has changed, and the version installed before is healthy.
		changed := settledAt(status.Result(one.reason), revised(1, nil, wellConditions()...))
		changed.facts.Extension.Generation = 2
		situations["Changed/"+one.reason], answers["Changed/"+one.reason] = changed, advice.NeedsAttention
		// A catalog has a newer version, but the upgrade is refused.
		refused := settledAt(status.Result(one.reason), revised(1, nil, wellConditions()...))
		refused.facts.Upgrades = &status.Upgrades{Allowed: "1.1.0", Newest: "1.1.0"}
		situations["Refused/"+one.reason], answers["Refused/"+one.reason] = refused, advice.Review
	}
	for name, s := range situations {
		t.Run(name, func(t *testing.T) {
			want := answers[name]
			server := s.serve(t)
			ready := meta.FindStatusCondition(s.facts.Extension.Status.Conditions, status.Ready)
			// An extension whose drift is reported still works.
			if is := ready.Status == metav1.ConditionTrue; is != (want == advice.Healthy || strings.HasPrefix(name, "Refused/") || name == "Revision/DriftFound") {
				t.Errorf("Ready is %s/%s: %s; want the answer %s", ready.Status, ready.Reason, ready.Message, want)
			}
			glyph, _ := progress.Mark(want)
			exit := 0
			if want == advice.NeedsAttention {
				exit = 1
			}
			env := map[string]string{"NO_COLOR": "1"}
			why, stderr, code := run(t, server, 0, env, "why", "argocd")
			if code != exit || !strings.HasPrefix(why, glyph+" ") {
				t.Errorf("why: exit %d, want %d and %s:\n%s%s", code, exit, glyph, why, stderr)
			}
			if stdout, stderr, code := run(t, server, 0, env, "status", "argocd"); code != exit || want != advice.Healthy && strings.Contains(stdout, "✓ argocd") && !strings.Contains(stdout, glyph+" argocd") {
				t.Errorf("status argocd: exit %d, want %d and %s:\n%s%s", code, exit, glyph, stdout, stderr)
			}
			if stdout, stderr, code := run(t, server, 0, env, "status"); code != 0 || strings.Contains(stdout, "Needs attention\n"+glyph+" argocd") != (want == advice.NeedsAttention || want == advice.Review) {
				t.Errorf("status: exit %d, want %s:\n%s%s", code, glyph, stdout, stderr)
			}
			if stdout, stderr, code := run(t, server, 0, env, "upgrades", "argocd"); code != exit || !strings.HasPrefix(stdout, glyph+" argocd") {
				t.Errorf("upgrades: exit %d, want %d and %s:\n%s%s", code, exit, glyph, stdout, stderr)
			}
			row := consoleRow(t, server)
			if row.Signal != want {
				t.Errorf("console: %+v, want %s", row, want)
			}
			if want == advice.NeedsAttention && row.Do == "" {
				t.Errorf("console: nobody is told what to do: %+v", row)
			}
			for _, said := range []string{why, row.Do} {
				if strings.Contains(said, "next revision") || strings.Contains(said, "inline") {
					t.Errorf("the user of a catalog is told to make revisions: %s", said)
				}
			}
		})
	}
}

// TestCommands checks the commands in the reference of reasons. Each reason that needs a user has a
// command. The plugin accepts its own commands with their arguments. ClusterExtensions accept the
// annotations that commands set or remove.
func TestCommands(t *testing.T) {
	commands := map[string]bool{}
	for _, rows := range [][]documented{
		reasonsOf(t, "reasons.md", "## Of revisions"), reasonsOf(t, "reasons.md", "## Of plans"), reasonsOf(t, "clusterextension-status.md", "## Reasons of Ready"),
	} {
		for _, row := range rows {
			if row.who != string(advice.Nobody) && strings.TrimSpace(row.commands) == "" {
				t.Errorf("%s: %s must act, by no command", row.reason, row.who)
			}
			for _, command := range strings.Split(row.commands, "<br>") {
				if command = strings.Trim(command, " `"); command != "" {
					commands[command] = true
				}
			}
		}
	}
	known := []string{"edit", "get", "describe", "logs", "api-resources", "auth", "patch"}
	for command := range commands {
		words := strings.Fields(command)
		switch {
		case words[0] == "kubectl" && words[1] == "penstock":
			if said := wrongUsage(t, words[2:]); said != "" {
				t.Errorf("%s: %s", command, said)
			}
		case words[0] == "kubectl" && words[1] == "annotate":
			key, value, _ := strings.Cut(words[len(words)-1], "=")
			if name, removes := strings.CutSuffix(key, "-"); removes {
				key, value = name, time.Now().Add(time.Hour).Format(time.RFC3339)
			}
			if errs := extension.ValidateAnnotations(map[string]string{key: value}, nil, true); len(errs) > 0 || !strings.HasPrefix(key, extension.AnnotationPrefix) {
				t.Errorf("%s: %v", command, errs)
			}
		case words[0] != "kubectl" || !slices.Contains(known, words[1]):
			t.Errorf("%s: nothing tests this command", command)
		}
	}
}

// wrongUsage says why the plugin does not take arguments, empty when it does.
func wrongUsage(t *testing.T, args []string) string {
	t.Helper()
	root := plugin(t)
	command, rest, err := root.Find(args)
	if err != nil {
		return err.Error()
	}
	if err := command.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if !command.Runnable() {
		return "it is no command"
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		return err.Error()
	}
	return ""
}
