package readiness

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/resolve"
)

const sharedData = "../../../shared/data"

func asked(t *testing.T, current, target string) *Judge {
	t.Helper()
	table, err := lifecycle.New()
	if err != nil {
		t.Fatal(err)
	}
	to, err := ParseTarget(target)
	if err != nil {
		t.Fatal(err)
	}
	if current == "" {
		return New(table, nil, to)
	}
	from, err := clusterversion.ParseKubernetes(current)
	if err != nil {
		t.Fatal(err)
	}
	return New(table, &from, to)
}

// kinds formats the findings: severity, certainty, kind, and count.
func kinds(answer *v1alpha1.UpgradeReadiness) []string {
	counts := map[string]int{}
	for _, found := range answer.Findings {
		counts[fmt.Sprintf("%s %s %s", found.Severity, found.Certainty, strings.TrimSpace(found.APIVersion+" "+found.Kind))]++
	}
	var out []string
	for what, n := range counts {
		out = append(out, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(out)
	return out
}

func object(t *testing.T, text string) manifest.Object {
	t.Helper()
	found, err := manifest.Digester{}.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func extension(revisions ...Revision) *Extension {
	return &Extension{Name: "one", Revisions: revisions}
}

func real(t *testing.T, names ...string) map[string][]manifest.Object {
	t.Helper()
	file, err := os.Open(filepath.Join(sharedData, "history.tar.xz"))
	if err != nil {
		t.Skip("no shared data")
	}
	defer file.Close()
	unpack := exec.CommandContext(t.Context(), "xz", "-dc")
	unpack.Stdin = file
	out, err := unpack.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := unpack.Start(); err != nil {
		t.Skip("no xz:", err)
	}
	found := map[string][]manifest.Object{}
	for archive := tar.NewReader(out); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(filepath.Dir(header.Name), "./")
		if !slices.Contains(names, name) || filepath.Base(header.Name) != "objects.ndjson" {
			continue
		}
		lines := bufio.NewScanner(archive)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			found[name] = append(found[name], object(t, lines.Text()))
		}
	}
	if err := unpack.Wait(); err != nil || len(found) != len(names) {
		t.Fatalf("%d of %v: %v", len(found), names, err)
	}
	return found
}

// TestHistory: findings for manifests of real operators.
func TestHistory(t *testing.T) {
	const camel, cert, argo14, argo16 = "archive-camel-k/1.2.0", "cert-manager/1.20.3", "argocd-operator/0.14.0", "argocd-operator/0.16.0"
	history := real(t, camel, cert, argo14, argo16)
	rolledOut := func(name string) Revision { return Revision{Name: "one-2", Objects: history[name]} }
	for _, one := range []struct {
		reason          string
		revisions       []Revision
		current, target string
		want            []string
		verdict         v1alpha1.UpgradeVerdict
	}{
		{"1: v1beta1 of CRDs goes in 1.22", []Revision{rolledOut(camel)}, "1.21", "1.22", []string{"7 Blocks Certain apiextensions.k8s.io/v1beta1 CustomResourceDefinition"}, v1alpha1.UpgradeBlocked},
		{"2: and is only deprecated in 1.21", []Revision{rolledOut(camel)}, "1.20", "1.21", []string{"7 Look Certain apiextensions.k8s.io/v1beta1 CustomResourceDefinition"}, v1alpha1.UpgradeNothingFound},
		{"3, 4: only the webhooks of cert-manager", []Revision{rolledOut(cert)}, "1.36", "1.40", []string{
			"1 Look Guess admissionregistration.k8s.io/v1 MutatingWebhookConfiguration", "1 Look Guess admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration"}, v1alpha1.UpgradeNothingFound},
		{"4: clean", []Revision{rolledOut(argo16), {Name: "one-1", Role: Earlier, Objects: history[argo14]}}, "1.36", "1.37", nil, v1alpha1.UpgradeNothingFound},
		{"5: only the earlier one has it", []Revision{rolledOut(argo16), {Name: "one-1", Role: Earlier, Objects: history[camel]}}, "1.21", "1.22",
			[]string{"7 BreaksRollback Certain apiextensions.k8s.io/v1beta1 CustomResourceDefinition"}, v1alpha1.UpgradeNothingFound},
		{"the rollback fails already, whatever the upgrade", []Revision{rolledOut(argo16), {Name: "one-1", Role: Earlier, Objects: history[camel]}}, "1.36", "1.37",
			[]string{"7 Look Certain apiextensions.k8s.io/v1beta1 CustomResourceDefinition"}, v1alpha1.UpgradeNothingFound},
		{"what blocks is not named for the earlier one again", []Revision{rolledOut(camel), {Name: "one-1", Role: Earlier, Objects: history[camel]}}, "1.21", "1.22",
			[]string{"7 Blocks Certain apiextensions.k8s.io/v1beta1 CustomResourceDefinition"}, v1alpha1.UpgradeBlocked},
		{"nobody has approved it", []Revision{{Name: "one-3", Role: Proposed, Objects: history[camel]}, rolledOut(argo16)}, "1.21", "1.22",
			[]string{"7 ActBefore Certain apiextensions.k8s.io/v1beta1 CustomResourceDefinition"}, v1alpha1.UpgradeNothingFound},
	} {
		t.Run(one.reason, func(t *testing.T) {
			judge := asked(t, one.current, one.target)
			judge.Extension(extension(one.revisions...))
			answer := judge.Answer()
			if d := cmp.Diff(one.want, kinds(answer)); d != "" {
				t.Error(d)
			}
			if answer.Verdict != one.verdict {
				t.Errorf("%s: %s", answer.Verdict, answer.Message)
			}
			for _, found := range answer.Findings {
				if found.Fix == "" || found.Revision == "" || found.Evidence == "" || found.Field == "" {
					t.Errorf("incomplete: %+v", found)
				}
				if found.RemovedIn == "1.22" && found.Replacement != "apiextensions.k8s.io/v1 CustomResourceDefinition" {
					t.Errorf("replaced by %q", found.Replacement)
				}
			}
		})
	}
}

// TestKinds: findings for single kinds.
func TestKinds(t *testing.T) {
	for _, one := range []struct{ reason, apiVersion, kind, current, target, want string }{
		{"13: pluto says 1.36", "resource.k8s.io/v1beta1", "ResourceClaim", "1.36", "1.37", "1 Look Certain resource.k8s.io/v1beta1 ResourceClaim"},
		{"13", "resource.k8s.io/v1beta1", "ResourceClaim", "1.37", "1.38", "1 Blocks Declared resource.k8s.io/v1beta1 ResourceClaim"},
		{"14: alpha is never certain", "scheduling.k8s.io/v1alpha2", "PodGroup", "1.36", "1.37", "1 Look Guess scheduling.k8s.io/v1alpha2 PodGroup"},
		{"alpha without a date", "scheduling.k8s.io/v1alpha3", "PodGroup", "1.37", "1.38", "1 Look Guess scheduling.k8s.io/v1alpha3 PodGroup"},
		{"15: only the supplement has it", "policy/v1beta1", "PodSecurityPolicy", "1.24", "1.25", "1 Blocks Certain policy/v1beta1 PodSecurityPolicy"},
		{"16: beyond the table", "admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicy", "1.37", "1.45", "1 Blocks Declared admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicy"},
		{"another kind of a group that is not built in", "gateway.networking.k8s.io/v1alpha2", "TCPRoute", "1.36", "1.37", ""},
		{"deprecated for ever", "v1", "Endpoints", "1.36", "1.37", "1 Look Certain v1 Endpoints"},
	} {
		t.Run(one.reason, func(t *testing.T) {
			judge := asked(t, one.current, one.target)
			judge.Extension(extension(Revision{Name: "one-1", Objects: []manifest.Object{object(t, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"}}`, one.apiVersion, one.kind))}}))
			answer := judge.Answer()
			if got := strings.Join(kinds(answer), ", "); got != one.want {
				t.Errorf("%s; want %s", got, one.want)
			}
			if !strings.HasPrefix(answer.Lifecycle, "1.37") {
				t.Errorf("the table is of %q", answer.Lifecycle)
			}
			if old := strings.Contains(answer.Message, "too old"); old != (one.target == "1.45") {
				t.Errorf("%s", answer.Message)
			}
		})
	}
}

// TestBudgets is scenario 17.
func TestBudgets(t *testing.T) {
	for _, one := range []struct{ budget, replicas, want string }{
		{`"maxUnavailable":0`, `"replicas":3`, "Certain spec.maxUnavailable"},
		{`"maxUnavailable":"0%"`, `"replicas":3`, "Certain spec.maxUnavailable"},
		{`"maxUnavailable":1`, `"replicas":1`, ""},
		{`"minAvailable":1`, `"replicas":1`, "Certain spec.minAvailable"},
		{`"minAvailable":1`, ``, "Guess spec.minAvailable"},
		{`"minAvailable":1`, `"replicas":3`, ""},
		{`"minAvailable":"50%"`, `"replicas":1`, "Certain spec.minAvailable"},
		{`"minAvailable":"100%"`, `"replicas":3`, "Certain spec.minAvailable"},
		{`"minAvailable":"some"`, `"replicas":3`, ""},
		{`"minAvailable":1`, `"replicas":0`, ""},
	} {
		t.Run(one.budget+" "+one.replicas, func(t *testing.T) {
			judge := asked(t, "1.36", "1.37")
			spec := `"template":{"metadata":{"labels":{"app":"x"}}}`
			if one.replicas != "" {
				spec += "," + one.replicas
			}
			judge.Extension(extension(Revision{Name: "one-1", Objects: []manifest.Object{
				object(t, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x","namespace":"a"},"spec":{"selector":{"matchLabels":{"app":"x"}},`+one.budget+`}}`),
				object(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":"a"},"spec":{`+spec+`}}`),
				object(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":"b"},"spec":{`+spec+`}}`),
			}}))
			got := ""
			for _, found := range judge.Answer().Findings {
				got += string(found.Certainty) + " " + found.Field
				if found.Severity != v1alpha1.UpgradeActBefore {
					t.Errorf("%s", found.Severity)
				}
			}
			if got != one.want {
				t.Errorf("%q, want %q", got, one.want)
			}
		})
	}
}

func hub(t *testing.T) map[string]*fbc.Config {
	t.Helper()
	file, err := os.Open(filepath.Join(sharedData, "catalogs", "operatorhub.jsonl.zst"))
	if err != nil {
		t.Skip("no shared data")
	}
	defer file.Close()
	catalog, err := fbc.Load(t.Context(), file, "operatorhub", fbc.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return catalog.ByPackage()
}

// TestPackages: findings from statements in a real catalog.
func TestPackages(t *testing.T) {
	packages := hub(t)
	for _, one := range []struct {
		reason, pkg, bundle, version, current, target string
		severity                                      v1alpha1.UpgradeSeverity
		statement, next                               string
		order                                         v1alpha1.UpgradeOrder
		verdict                                       v1alpha1.UpgradeVerdict
	}{
		{"6: the last OpenShift is 4.20", "gitlab-operator-kubernetes", "gitlab-operator-kubernetes.v2.9.2", "2.9.2", "1.33", "4.21", v1alpha1.UpgradeBlocks, "Kubernetes >= 1.19.0, OpenShift <= 4.20", "2.10.0", v1alpha1.UpgradeBefore, v1alpha1.UpgradeBlocked},
		{"6: and then 4.21", "gitlab-operator-kubernetes", "gitlab-operator-kubernetes.v3.1.2", "3.1.2", "1.34", "4.22", v1alpha1.UpgradeBlocks, "Kubernetes >= 1.19.0, OpenShift <= 4.21", "3.2.0", v1alpha1.UpgradeBefore, v1alpha1.UpgradeBlocked},
		{"a bound of OpenShift says nothing of Kubernetes", "gitlab-operator-kubernetes", "gitlab-operator-kubernetes.v2.9.2", "2.9.2", "1.33", "1.34", "", "Kubernetes >= 1.19.0, OpenShift <= 4.20", "2.10.0", v1alpha1.UpgradeEither, v1alpha1.UpgradeNothingFound},
		{"10: the next one needs the upgraded cluster", "konflux-operator", "konflux-operator.v0.1.13", "0.1.13", "1.33.2", "1.34", "", "Kubernetes >= 1.33.5", "0.2.1", v1alpha1.UpgradeAfter, v1alpha1.UpgradeNothingFound},
		{"11: a pre-release as lower bound", "cert-manager", "cert-manager.v1.10.0", "1.10.0", "1.19", "1.20", "", "Kubernetes >= 1.19.0", "", "", v1alpha1.UpgradeNothingFound},
		{"12: 1.25 or later is no upper bound", "apicurio-registry-3", "apicurio-registry-3.v3.1.0", "3.1.0", "1.37", "1.38", "", "Kubernetes >= 1.25.0", "", "", v1alpha1.UpgradeNothingFound},
	} {
		t.Run(one.reason, func(t *testing.T) {
			config := packages[one.pkg]
			if config == nil {
				t.Fatal("the catalog has no such package")
			}
			judge := asked(t, one.current, one.target)
			said, err := StatedBy([]resolve.Catalog{{Name: "away", Unavailable: true}, {Name: "hub", Config: config}}, one.pkg, one.bundle, one.version)
			if err != nil {
				t.Fatal(err)
			}
			judge.Extension(&Extension{Name: "one", Version: one.version, Statement: said})
			answer := judge.Answer()
			row := answer.Extensions[0]
			if row.Severity != one.severity || row.Statement != one.statement || one.next != "" && row.Next != one.next || one.order != "" && row.Order != one.order || answer.Verdict != one.verdict {
				t.Errorf("%+v, %s: %s", row, answer.Verdict, answer.Message)
			}
			if silent := strings.Contains(answer.Message, "without a statement on "+one.target); silent != strings.HasPrefix(one.target, "1") || strings.Contains(answer.Message, "ready") {
				t.Errorf("%s", answer.Message)
			}
		})
	}
}

// TestCatalogsAway: a catalog that cannot be read may have the bundle.
func TestCatalogsAway(t *testing.T) {
	for _, away := range []resolve.Catalog{{Name: "away", Unavailable: true}, {Name: "away", Err: errors.New("damaged")}} {
		if _, err := StatedBy([]resolve.Catalog{{Name: "other"}, away}, "one", "one.v1", "1.0.0"); err == nil {
			t.Errorf("no error without catalog %+v", away)
		}
	}
	if said, err := StatedBy([]resolve.Catalog{{Name: "other"}}, "one", "one.v1", "1.0.0"); err != nil || said.String() != "" || said.Package != "one" {
		t.Errorf("%+v, %v", said, err)
	}
}

// TestNextOfCatalogs: the versions of several catalogs are sorted together.
func TestNextOfCatalogs(t *testing.T) {
	catalog := func(name string, versions ...string) resolve.Catalog {
		text, entries := `{"schema":"olm.package","name":"one","defaultChannel":"a"}`+"\n", []string(nil)
		for _, version := range versions {
			text += fmt.Sprintf(`{"schema":"olm.bundle","package":"one","name":"one.v%[1]s","image":"x","properties":[{"type":"olm.package","value":{"packageName":"one","version":%[1]q}}]}`+"\n", version)
			entries = append(entries, fmt.Sprintf(`{"name":"one.v%s","replaces":"one.v1.0.0"}`, version))
		}
		text += `{"schema":"olm.channel","package":"one","name":"a","entries":[` + strings.Join(entries, ",") + "]}\n"
		config, err := fbc.Load(t.Context(), strings.NewReader(text), "c", fbc.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		return resolve.Catalog{Name: name, Config: config}
	}
	said, err := StatedBy([]resolve.Catalog{catalog("late", "1.10.0"), catalog("early", "1.9.0")}, "one", "one.v1.0.0", "1.0.0")
	if err != nil || len(said.Next) != 2 || said.Next[0].Version != "1.9.0" || said.Next[0].Catalog != "early" || said.Next[1].Version != "1.10.0" || said.Next[1].Catalog != "late" {
		t.Errorf("found %+v, %v", said.Next, err)
	}
}

// TestStatements tests constructed statements that no real catalog has.
func TestStatements(t *testing.T) {
	with := func(properties ...string) Statement {
		bundle := &fbc.Bundle{}
		for _, value := range properties {
			bundle.Properties = append(bundle.Properties, fbc.Property{Type: maxOpenShift, Value: []byte(value)})
		}
		return ofBundle(bundle)
	}
	needs := func(version string) Statement {
		least, err := clusterversion.ParseKubernetes(version)
		if err != nil {
			t.Fatal(err)
		}
		return Statement{Least: &least}
	}
	then := func(said Statement, next ...Statement) Statement {
		for i, one := range next {
			said.Next = append(said.Next, Candidate{Version: fmt.Sprintf("2.%d.0", i), Statement: one})
		}
		return said
	}
	for _, one := range []struct {
		reason          string
		said            Statement
		current, target string
		severity        v1alpha1.UpgradeSeverity
		order           v1alpha1.UpgradeOrder
		verdict         v1alpha1.UpgradeVerdict
	}{
		{"7: 4.23 fits 5.0", with(`"4.23"`), "1.35", "5.0", "", "", v1alpha1.UpgradeNothingFound},
		{"7: 5.0 fits 4.23", with(`"5.0"`), "1.35", "4.23", "", "", v1alpha1.UpgradeNothingFound},
		{"7: 4.22 does not", with(`"4.22"`), "1.35", "5.0", v1alpha1.UpgradeBlocks, "", v1alpha1.UpgradeBlocked},
		{"8: patches are free", with(`"4.21"`), "1.34.3", "4.21.9", "", "", v1alpha1.UpgradeNothingFound},
		{"9: a patch", with(`"4.14.2"`), "1.33", "4.21", "", "", v1alpha1.UpgradeUnknown},
		{"9: empty", with(`""`), "1.33", "4.21", "", "", v1alpha1.UpgradeUnknown},
		{"9: twice", with(`"4.20"`, `"4.21"`), "1.33", "4.21", "", "", v1alpha1.UpgradeUnknown},
		{"a number", with(`4.20`), "1.33", "4.21", v1alpha1.UpgradeBlocks, "", v1alpha1.UpgradeBlocked},
		{"10: the next one needs the upgraded cluster", then(Statement{}, needs("1.33.5")), "1.33.2", "1.34", "", v1alpha1.UpgradeAfter, v1alpha1.UpgradeNothingFound},
		{"one for either is taken first", then(Statement{}, needs("1.34"), needs("1.30")), "1.33.2", "1.34", "", v1alpha1.UpgradeEither, v1alpha1.UpgradeNothingFound},
		{"one that needs more than the target does not count", then(Statement{}, needs("1.35")), "1.33.2", "1.34", "", "", v1alpha1.UpgradeNothingFound},
		{"a deadlock", then(with(`"4.20"`), needs("1.34")), "1.33.2", "4.21", v1alpha1.UpgradeBlocks, v1alpha1.UpgradeDeadlock, v1alpha1.UpgradeBlocked},
		{"18: an upper bound of a chart", Statement{Range: ">=1.25 <1.38"}, "1.37", "1.38", v1alpha1.UpgradeBlocks, "", v1alpha1.UpgradeBlocked},
		{"18: below it", Statement{Range: ">=1.25 <1.38"}, "1.36", "1.37", "", "", v1alpha1.UpgradeNothingFound},
		{"18: a lower bound with a pre-release", Statement{Range: ">=1.25-0"}, "1.37", "1.38", "", "", v1alpha1.UpgradeNothingFound},
	} {
		t.Run(one.reason, func(t *testing.T) {
			judge := asked(t, one.current, one.target)
			judge.Extension(&Extension{Name: "one", Statement: one.said})
			answer := judge.Answer()
			if row := answer.Extensions[0]; row.Severity != one.severity || row.Order != one.order || answer.Verdict != one.verdict {
				t.Errorf("%+v, %s: %s", row, answer.Verdict, answer.Message)
			}
		})
	}
}

// TestNotLooked is scenario 19: an unreadable part prevents the verdict NothingFound, and hides no
// finding.
func TestNotLooked(t *testing.T) {
	hidden := &Extension{Name: "hidden", NotLooked: "you cannot get the manifests"}
	judge := asked(t, "1.36", "1.37")
	judge.Extension(hidden)
	if answer := judge.Answer(); answer.Verdict != v1alpha1.UpgradeUnknown || answer.Extensions[0].NotLooked != hidden.NotLooked {
		t.Errorf("%s: %s", answer.Verdict, answer.Message)
	}
	judge = asked(t, "1.36", "1.37")
	judge.Extension(extension())
	if answer := judge.Answer("plans cannot be listed"); answer.Verdict != v1alpha1.UpgradeUnknown || !strings.Contains(answer.Message, "plans cannot be listed") {
		t.Errorf("%s: %s", answer.Verdict, answer.Message)
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{"1.38": "1.38.0", "1.38.2": "1.38.2", "v1.38": "1.38.0", "4.20": "1.33.0", "4.23": "1.36.0", "5.0": "1.36.0", "5.1": "1.37.0", "2.0": "", "1": "", "latest": "", "": ""} {
		got, err := ParseTarget(text)
		if (err == nil) != (want != "") || err == nil && got.Kubernetes.String() != want {
			t.Errorf("%q is %s, %v; want %q", text, got.Kubernetes, err, want)
		}
	}
}

// TestOmitted: an answer is limited, and keeps the worst findings.
func TestOmitted(t *testing.T) {
	judge := asked(t, "1.36", "1.37")
	look := Revision{Name: "one-1"}
	for i := range 3 * MaxFindings {
		look.Objects = append(look.Objects, manifest.Object{Ref: manifest.Ref{ID: manifest.ID{Kind: "Endpoints", Name: fmt.Sprint(i)}, Version: "v1"}})
	}
	judge.Extension(extension(look))
	judge.Extension(&Extension{Name: "two", Revisions: []Revision{{Name: "two-1", Objects: []manifest.Object{object(t, `{"apiVersion":"policy/v1beta1","kind":"PodSecurityPolicy","metadata":{"name":"x"}}`)}}}})
	answer := judge.Answer()
	if len(answer.Findings) != MaxFindings || answer.Omitted != 2*MaxFindings+1 || answer.Findings[0].Severity != v1alpha1.UpgradeBlocks || answer.Verdict != v1alpha1.UpgradeBlocked {
		t.Errorf("%d findings, %d omitted, %s: %s", len(answer.Findings), answer.Omitted, answer.Verdict, answer.Message)
	}
}

// TestWorst: an object in several revisions has one finding, the worst.
func TestWorst(t *testing.T) {
	class := []manifest.Object{object(t, `{"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}`)}
	for reason, revisions := range map[string][]Revision{
		"a proposal is newer": {{Name: "one-3", Role: Proposed, Objects: class}, {Name: "one-2", Objects: class}},
		"one is older":        {{Name: "one-2", Objects: class}, {Name: "one-1", Role: Earlier, Objects: class}},
	} {
		judge := asked(t, "1.37", "1.38")
		judge.Extension(extension(revisions...))
		if answer := judge.Answer(); answer.Verdict != v1alpha1.UpgradeBlocked || len(answer.Findings) != 1 || answer.Findings[0].Revision != "one-2" {
			t.Errorf("%s: %s %+v", reason, answer.Verdict, answer.Findings)
		}
	}
}
