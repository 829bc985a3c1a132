package diff

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

func object(t *testing.T, text string) manifest.Object {
	t.Helper()
	return *difftest.Object(t, text)
}

// TestOnlyLabels: an object is shown in one line if only version labels change and no selector of
// the revision uses them.
func TestOnlyLabels(t *testing.T) {
	const (
		version   = "app.kubernetes.io/version 1.18.4 → 1.20.3"
		configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app.kubernetes.io/version":"1.18.4","app.kubernetes.io/name":"a"}},"data":{"a":"b"}}`
		workload  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"app.kubernetes.io/version":"1.18.4"}},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a","app.kubernetes.io/version":"1.18.4"}},"spec":{"containers":[{"name":"a","image":"a:1"}]}}}}`
		cronJob   = `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"},"spec":{"schedule":"@daily","jobTemplate":{"metadata":{"labels":{"app.kubernetes.io/version":"1.18.4"}},"spec":{"template":{"metadata":{"labels":{"app.kubernetes.io/version":"1.18.4"}},"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a:1"}]}}}}}}`
	)
	bump := strings.NewReplacer("1.18.4", "1.20.3")
	for name, tc := range map[string]struct {
		reason string
		old    string
		// change makes the new manifest; nil replaces the version.
		change *strings.Replacer
		// beside is another object of both revisions; selecting is an object outside the diff.
		beside, selecting string
		want              string
	}{
		"Metadata":       {reason: "it is all that changes", old: configMap, want: version},
		"PodTemplate":    {reason: "pods are restarted, which a note says", old: workload, want: version},
		"CronJob":        {reason: "its Jobs and their pods", old: cronJob, want: version},
		"Both":           {reason: "charts set both", old: strings.Replace(configMap, `"labels":{`, `"labels":{"helm.sh/chart":"c-1.18.4",`, 1), want: version + ", helm.sh/chart c-1.18.4 → c-1.20.3"},
		"Added":          {reason: "a label that comes", old: configMap, change: strings.NewReplacer(`"labels":{`, `"labels":{"helm.sh/chart":"c-1",`), want: "helm.sh/chart none → c-1"},
		"More":           {reason: "something else changes too", old: configMap, change: strings.NewReplacer("1.18.4", "1.20.3", `"a":"b"`, `"a":"c"`)},
		"OtherLabel":     {reason: "another label is no version", old: configMap, change: strings.NewReplacer(`name":"a","app`, `name":"b","app`, `io/name":"a"`, `io/name":"b"`)},
		"Annotation":     {reason: "an annotation is no label", old: strings.Replace(configMap, `"labels"`, `"annotations"`, 1)},
		"Data":           {reason: "data of that key is no label", old: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"app.kubernetes.io/version":"1.18.4"}}`},
		"Templates":      {reason: "a path that another kind calls template", old: `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"template":{"metadata":{"labels":{"app.kubernetes.io/version":"1.18.4"}}}}}`},
		"Version":        {reason: "the manifest is written in another version", old: strings.Replace(workload, "apps/v1", "apps/v1beta2", 1), change: strings.NewReplacer("1.18.4", "1.20.3", "apps/v1beta2", "apps/v1")},
		"Recreate":       {reason: "a note warns", old: strings.Replace(workload, `"spec":{"sel`, `"spec":{"strategy":{"type":"Recreate"},"sel`, 1)},
		"Job":            {reason: "the API server refuses it", old: strings.NewReplacer("apps/v1", "batch/v1", "Deployment", "Job").Replace(workload)},
		"OwnSelector":    {reason: "its own selector names the label", old: strings.Replace(workload, `"matchLabels":{`, `"matchLabels":{"app.kubernetes.io/version":"1.18.4",`, 1)},
		"Service":        {reason: "a Service selects by it", old: configMap, beside: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"selector":{"app.kubernetes.io/version":"1.18.4"}}}`},
		"Expression":     {reason: "so does an expression", old: configMap, beside: `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"s"},"spec":{"selector":{"matchExpressions":[{"key":"app.kubernetes.io/version","operator":"Exists"}]}}}`},
		"Keys":           {reason: "so do keys of a spread constraint", old: configMap, beside: `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"s"},"spec":{"matchLabelKeys":["app.kubernetes.io/version"]}}`},
		"Argument":       {reason: "so may an argument", old: configMap, beside: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s"},"data":{"args":"--selector=app.kubernetes.io/version=1"}}`},
		"Subset":         {reason: "labels outside metadata may select", old: configMap, beside: `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"s"},"spec":{"subsets":[{"labels":{"app.kubernetes.io/version":"1"}}]}}`},
		"NotCompared":    {reason: "a selector of an object that is not compared", old: configMap, selecting: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"selector":{"app.kubernetes.io/version":"1.18.4"}}}`},
		"OtherSelector":  {reason: "that is another label", old: configMap, beside: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"selector":{"app.kubernetes.io/name":"a"}}}`, want: version},
		"Description":    {reason: "a schema that explains the label does not select", old: configMap, beside: `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"s"},"spec":{"schema":{"description":"as app.kubernetes.io/version"}}}`, want: version},
		"Long":           {reason: "a value that fills the screen is shown as it is", old: configMap, change: strings.NewReplacer("1.18.4", strings.Repeat("1", 200))},
		"Unprintable":    {reason: "a terminal prints it and does nothing else", old: configMap, change: strings.NewReplacer("1.18.4", `1\u001b[2J`), want: `app.kubernetes.io/version 1.18.4 → 1\u001b[2J`},
		"MixedScripts":   {reason: "letters that look like others are escaped", old: configMap, change: strings.NewReplacer("1.18.4", "v\u0430"), want: `app.kubernetes.io/version 1.18.4 → v\u0430`},
		"NoneIsAValue":   {reason: "a label of the value none exists", old: configMap, change: strings.NewReplacer("1.18.4", "none"), want: `app.kubernetes.io/version 1.18.4 → "none"`},
		"TemplateInMore": {reason: "only the pod template has it", old: strings.Replace(workload, `"labels":{"app.kubernetes.io/version":"1.18.4"}},"spec"`, `"labels":{}},"spec"`, 1), want: version},
	} {
		t.Run(name, func(t *testing.T) {
			change := tc.change
			if change == nil {
				change = bump
			}
			old, new := []manifest.Object{object(t, tc.old)}, []manifest.Object{object(t, change.Replace(tc.old))}
			if tc.beside != "" {
				old, new = append(old, object(t, tc.beside)), append(new, object(t, tc.beside))
			}
			options := Options{Schema: difftest.Builtin(t), Limits: Limits{UnifiedBytes: 1}}
			if tc.selecting != "" {
				options.Selecting = [][]manifest.Object{{object(t, tc.selecting)}}
			}
			report := Revisions(t.Context(), old, new, options)
			if len(report.Changes) != 1 || report.Changes[0].OnlyLabels != tc.want {
				t.Errorf("%s: got %q, want %q: %+v", tc.reason, report.Changes[0].OnlyLabels, tc.want, report.Changes)
			}
			report.AddNotes([]review.Note{{Severity: note.Warning, Reason: "Drift", ID: new[0].ID}}, Limits{})
			if got := report.Changes[0].OnlyLabels; got != "" {
				t.Errorf("a caller warns, and it is folded all the same: %q", got)
			}
		})
	}
}
