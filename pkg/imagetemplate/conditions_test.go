package imagetemplate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	designTypes = Types{Resolved: "TemplatesHaveResolved", Image: "ResolvedImage"}
	at          = time.Date(2021, 7, 19, 23, 0, 0, 0, time.UTC)
)

func line(c metav1.Condition) string {
	return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

// TestConditions compares with the texts of the design.
func TestConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"Failure": {"quay.io/sample{kube_major_version}/catalog:" + sample, []string{
			`TemplatesHaveResolved=False UnableToResolve: Cannot construct catalog image reference, variable(s) "{kube_major_version}", "` + sample + `" couldn't be resolved`,
			"ResolvedImage=False UnableToResolve: quay.io/sample{kube_major_version}/catalog:" + sample,
		}},
		"Syntax": {"quay.io/x:{foo}", []string{
			`TemplatesHaveResolved=False UnableToResolve: Cannot construct catalog image reference, one or more template(s) has improper syntax`,
			"ResolvedImage=False UnableToResolve: quay.io/x:{foo}",
		}},
		"Both": {"quay.io/{foo}:{kube_major_version}", []string{
			`TemplatesHaveResolved=False UnableToResolve: Cannot construct catalog image reference, variable(s) "{kube_major_version}" couldn't be resolved and one or more template(s) has improper syntax`,
			"ResolvedImage=False UnableToResolve: quay.io/{foo}:{kube_major_version}",
		}},
		"TooLong": {strings.Repeat("a", 1<<17), []string{
			`TemplatesHaveResolved=False UnableToResolve: Cannot construct catalog image reference, one or more template(s) has improper syntax`,
			"ResolvedImage=False UnableToResolve: (a template of 131072 bytes, at most 4096 are read)",
		}},
		"Success": {"quay.io/kube-release-v1/catalog:v1.20", []string{
			"TemplatesHaveResolved=True AllTemplatesResolved: catalog image reference was successfully resolved",
			"ResolvedImage=True AllTemplatesResolved: quay.io/kube-release-v1/catalog:v1.20",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			parsed := Parse(tc.text)
			var got []string
			for _, c := range parsed.Conditions(designTypes, parsed.Resolve(func(Variable) string { return "" })) {
				got = append(got, line(c))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMerge tests the four rules of the design.
func TestMerge(t *testing.T) {
	theirs := func(name string) any { return map[string]any{"type": name, "extra": int64(7)} }
	mine := func(name, status, message string, since time.Time) any {
		return map[string]any{"type": name, "status": status, "reason": "R", "message": message, "lastTransitionTime": since.Format(time.RFC3339)}
	}
	before := []any{theirs("A"), mine("ResolvedImage", "True", "old", at), "no condition at all", theirs("B")}
	own := []metav1.Condition{{Type: "TemplatesHaveResolved", Status: "True", Reason: "R", Message: "m"}, {Type: "ResolvedImage", Status: "True", Reason: "R", Message: "new"}}
	after, changed := Merge(before, own, at.Add(time.Hour))
	want := []any{theirs("A"), mine("ResolvedImage", "True", "new", at), "no condition at all", theirs("B"), mine("TemplatesHaveResolved", "True", "m", at.Add(time.Hour))}
	if diff := cmp.Diff(want, after); diff != "" || !changed {
		t.Errorf("changed %t: %s", changed, diff)
	}
	if again, changed := Merge(after, own, at.Add(2*time.Hour)); changed || cmp.Diff(after, again) != "" {
		t.Error("what says the same is written again")
	}
	own[1].Status = "False"
	if flipped, _ := Merge(after, own, at.Add(2*time.Hour)); cmp.Diff(mine("ResolvedImage", "False", "new", at.Add(2*time.Hour)), flipped[1]) != "" {
		t.Errorf("another status has another time: %v", flipped[1])
	}
	if rest, changed := Without(after, "TemplatesHaveResolved", "ResolvedImage"); !changed || cmp.Diff([]any{theirs("A"), "no condition at all", theirs("B")}, rest) != "" {
		t.Errorf("without them it is %v", rest)
	}
	if diff := cmp.Diff(mine("ResolvedImage", "True", "old", at), before[1]); diff != "" {
		t.Errorf("the list of before was changed: %s", diff)
	}
}
