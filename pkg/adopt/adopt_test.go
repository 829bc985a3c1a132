package adopt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source/helm"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

// planned returns the plan of a release whose revisions have the given states, newest first.
func planned(t *testing.T, statuses ...string) *Plan {
	t.Helper()
	plan := &Plan{Request: Request{Namespace: "shop", Release: "web", Extension: "web"}, Taken: Taken{extension: "web", highest: int64(len(statuses))}}
	for i, status := range statuses {
		one := helm.Release{Name: "web", Namespace: "shop", Version: len(statuses) - i, Manifest: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"}
		one.Info.Status, one.Info.LastDeployed, one.Info.Description = status, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "Upgrade complete"
		one.Chart.Metadata.Version = "1.0.0"
		rendered, err := one.Render(t.Context(), func(schema.GroupVersionKind) (bool, bool, error) { return true, true, nil })
		if err != nil {
			t.Fatal(err)
		}
		revision := plan.ofHelm(one, len(statuses))
		if revision.State = v1alpha1.LifecycleStateArchived; i == 0 {
			revision.State, plan.release.Deployed = v1alpha1.LifecycleStateActive, one
		}
		if err := revision.take(rendered.Phases, digesterFor(plan.release.Deployed.Manifest)); err != nil {
			t.Fatal(err)
		}
		plan.Revisions = append(plan.Revisions, revision)
	}
	plan.release.Highest = len(statuses)
	return plan
}

// TestPack: equal releases are packed to equal archives, so an interrupted import can be finished.
// The archive has the status of each Helm revision.
func TestPack(t *testing.T) {
	first, err := planned(t, "deployed", "superseded", "failed").pack()
	if err != nil {
		t.Fatal(err)
	}
	second, err := planned(t, "deployed", "superseded", "failed").pack()
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two archives of one release differ (%v)", err)
	}
	reader, err := archive.NewReader(bytes.NewReader(first), archive.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var got []string
	for {
		item, err := reader.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if item.Chain != nil {
			for _, row := range item.Chain.History {
				got = append(got, fmt.Sprintf("%s +%d ~%d -%d", row.Result, row.Counts.Added, row.Counts.Changed, row.Counts.Removed))
			}
			continue
		}
		revision := item.Revision
		if revision.Succeeded {
			got = append(got, "succeeded")
		}
		got = append(got, revision.Annotations[v1alpha1.HelmReleaseAnnotation]+" "+revision.Annotations[v1alpha1.HelmRevisionAnnotation])
	}
	want := []string{"Incomplete +1 ~0 -0", "Succeeded +0 ~0 -0", "Progressing +0 ~0 -0", "succeeded", "shop/web:3 3", "succeeded", "shop/web:3 2", "shop/web:3 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestObstacles(t *testing.T) {
	object := func(state State) *Plan {
		return &Plan{Taken: Taken{Objects: []Object{{ID: manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "x"}, State: state, Detail: "why"}}}}
	}
	old := object(Unknown)
	old.Release, old.Namespace, old.Objects[0].Served = "web", "shop", "policy/v1"
	failed := object(Same)
	failed.release.Failed = &helm.Release{Version: 8, Info: helm.Info{Status: "failed"}}
	for name, tc := range map[string]struct {
		plan *Plan
		// says is the obstacle. overwritten is true when --overwrite removes it.
		says        string
		overwritten bool
	}{
		"same":    {plan: object(Same)},
		"ours":    {plan: object(Ours)},
		"differs": {plan: object(Differs), says: "ConfigMap a/x differs from the release in why", overwritten: true},
		"gone":    {plan: object(Gone), says: "ConfigMap a/x is missing", overwritten: true},
		"others":  {plan: object(Others), says: "ConfigMap a/x: why"},
		"unknown": {plan: object(Unknown), says: "ConfigMap a/x: why"},
		"served":  {plan: old, says: "ConfigMap a/x: why: rewrite the record with Helm's plugin mapkubeapis (helm mapkubeapis web -n shop), or upgrade the release to a chart version that uses policy/v1"},
		"failed":  {plan: failed, says: "revision 8 of Helm is failed", overwritten: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.plan.Obstacles()
			if tc.says == "" && len(got) > 0 || tc.says != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.says)) {
				t.Errorf("got %q", got)
			}
			tc.plan.Overwrite = true
			if got := tc.plan.Obstacles(); (len(got) == 0) != (tc.says == "" || tc.overwritten) {
				t.Errorf("with --overwrite: %q", got)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	taken := Taken{extension: "web", foreign: Request{Namespace: "shop", Release: "web", Extension: "web"}.belongsElsewhere}
	ours := []metav1.ManagedFieldsEntry{{Manager: "penstock/web", Operation: metav1.ManagedFieldsOperationApply}}
	yes := true
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   State
		says   string
	}{
		"Helm's": {change: func(*unstructured.Unstructured) {}},
		"ours": {change: func(o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{v1alpha1.ChainLabel: "web"})
			o.SetManagedFields(ours)
		}, want: Ours},
		"a forged label": {change: func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{v1alpha1.ChainLabel: "web"}) }},
		"an extension's": {change: func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{v1alpha1.ChainLabel: "other"}) }, want: Others, says: "the extension other"},
		"a controller's": {change: func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Boss", Name: "b", Controller: &yes}})
		}, want: Others, says: "Boss b"},
		"another release's": {change: func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{helm.NameAnnotation: "web", helm.NamespaceAnnotation: "other"})
		}, want: Others, says: "other/web"},
		"going": {change: func(o *unstructured.Unstructured) { now := metav1.Now(); o.SetDeletionTimestamp(&now) }, want: Unknown, says: "being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{}}
			tc.change(live)
			if state, detail := taken.owner(live); state != tc.want || !strings.Contains(detail, tc.says) {
				t.Errorf("got %q, %q", state, detail)
			}
		})
	}
}

func TestDiffering(t *testing.T) {
	before := map[string]any{"a": map[string]any{"b": int64(1), "c": []any{"x", map[string]any{"d": "e"}}}, "same": "y", "gone": "z"}
	after := map[string]any{"a": map[string]any{"b": int64(2), "c": []any{"x", map[string]any{"d": "f"}}}, "same": "y", "new": []any{"n"}}
	if diff := cmp.Diff([]string{".a.b", ".a.c[1].d", ".gone", ".new"}, differing(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSince: since returns the revision made from Helm's deployed revision, and ErrKept if there is
// none.
func TestSince(t *testing.T) {
	annotated := func(number int64, of string) v1alpha1.ClusterExtensionRevision {
		one := v1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", number), Annotations: map[string]string{v1alpha1.HelmRevisionAnnotation: of}}}
		one.Spec.Revision = number
		return one
	}
	revisions := []v1alpha1.ClusterExtensionRevision{annotated(5, "3"), annotated(4, "3"), annotated(6, "2")}
	plan := planned(t, "deployed", "superseded", "superseded")
	plan.made = madeFrom(revisions, 3)
	if out, err := plan.since(); err != nil || out != (Outcome{Revision: "web-5", Before: true}) {
		t.Errorf("%v, %v", out, err)
	}
	plan.made = madeFrom(revisions, 4)
	if _, err := plan.since(); !errors.Is(err, ErrKept) || !strings.Contains(err.Error(), "instead of revision 3 of Helm") {
		t.Errorf("%v", err)
	}
}
