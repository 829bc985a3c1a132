package managedfields

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manager is the chain's field manager.
const manager = "penstock/argocd"

func managed(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func through(subresource string, entry metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	entry.Subresource = subresource
	return entry
}

func of(version string, entry metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	entry.APIVersion = version
	return entry
}

func printed(entries []metav1.ManagedFieldsEntry) []string {
	var out []string
	for _, e := range entries {
		line := e.Manager + " " + string(e.Operation) + " " + e.APIVersion
		if e.Subresource != "" {
			line += " " + e.Subresource
		}
		out = append(out, line+" "+e.FieldsV1.GetRawString())
	}
	return out
}

func TestTakeOver(t *testing.T) {
	const (
		apply  = metav1.ManagedFieldsOperationApply
		update = metav1.ManagedFieldsOperationUpdate
	)
	wanted := object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"app":"x"}},"data":{"a":"1","b":"2"}}`)
	ours := "penstock/argocd Apply v1 "
	cases := map[string]struct {
		reason string
		live   []metav1.ManagedFieldsEntry
		from   []string
		want   []string
		status map[string]any
	}{
		"nobody": {reason: "kinds without managedFields say nothing"},
		"applier": {
			reason: "who applied it kept it: what it has and we have not is ours now, and goes with our apply",
			live:   []metav1.ManagedFieldsEntry{managed("kubectl", apply, `{"f:data":{"f:a":{},"f:b":{},"f:old":{}}}`)},
			from:   []string{"kubectl"},
			want:   []string{ours + `{"f:data":{"f:a":{},"f:b":{},"f:old":{}}}`},
		},
		"others": {
			reason: "who holds little of ours, or nothing, only added to it",
			live: []metav1.ManagedFieldsEntry{
				managed("helm", update, `{"f:data":{"f:a":{},"f:b":{},"f:old":{}}}`),
				managed("kubectl-label", update, `{"f:metadata":{"f:labels":{"f:team":{}}}}`),
				managed("controller", apply, `{"f:metadata":{"f:annotations":{"f:seen":{}},"f:labels":{"f:app":{}}}}`),
			},
			from: []string{"helm"},
			want: []string{
				`kubectl-label Update v1 {"f:metadata":{"f:labels":{"f:team":{}}}}`,
				`controller Apply v1 {"f:metadata":{"f:annotations":{"f:seen":{}},"f:labels":{"f:app":{}}}}`,
				ours + `{"f:data":{"f:a":{},"f:b":{},"f:old":{}}}`,
			},
		},
		"signed": {
			reason: "kubectl apply kept it, although somebody edited all of our values since",
			live: []metav1.ManagedFieldsEntry{
				managed("kubectl-client-side-apply", update, `{"f:data":{"f:old":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`),
				managed("kubectl-edit", update, `{"f:data":{"f:a":{},"f:b":{}}}`),
			},
			from: []string{"kubectl-client-side-apply", "kubectl-edit"},
			want: []string{ours + `{"f:data":{"f:a":{},"f:b":{},"f:old":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`},
		},
		"subresources": {
			reason: "what was set through a subresource is an autoscaler's, or status",
			live: []metav1.ManagedFieldsEntry{
				managed("kubectl", apply, `{"f:data":{"f:a":{}}}`),
				through("scale", managed("hpa", update, `{"f:data":{"f:b":{}}}`)),
				through("status", managed("controller", update, `{"f:status":{"f:ready":{}}}`)),
			},
			from: []string{"kubectl"},
			want: []string{
				`hpa Update v1 scale {"f:data":{"f:b":{}}}`,
				`controller Update v1 status {"f:status":{"f:ready":{}}}`,
				ours + `{"f:data":{"f:a":{}}}`,
			},
		},
		"never": {
			reason: "finalizers and owners protect something, and status is nobody's wish",
			live: []metav1.ManagedFieldsEntry{managed("operator", update,
				`{"f:data":{"f:a":{},"f:b":{}},"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/f\"":{}},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}},"f:status":{"f:ready":{}}}`)},
			from: []string{"operator"},
			want: []string{ours + `{"f:data":{"f:a":{},"f:b":{}}}`},
		},
		"status": {
			reason: "status of a manifest is content, and what it lacks is removed", status: map[string]any{"on": true},
			live: []metav1.ManagedFieldsEntry{managed("kubectl", apply, `{"f:data":{"f:a":{},"f:b":{}},"f:status":{"f:old":{}}}`)},
			from: []string{"kubectl"},
			want: []string{ours + `{"f:data":{"f:a":{},"f:b":{}},"f:status":{"f:old":{}}}`},
		},
		"begun": {
			reason: "what an earlier attempt took over stays ours, and there is nothing left to take",
			live:   []metav1.ManagedFieldsEntry{managed("penstock/argocd", apply, `{"f:data":{"f:a":{},"f:old":{}}}`)},
		},
		"begun, and again": {
			reason: "what somebody has done since is joined with it",
			live: []metav1.ManagedFieldsEntry{
				managed("penstock/argocd", apply, `{"f:data":{"f:b":{},"f:old":{}}}`),
				managed("kubectl", apply, `{"f:data":{"f:a":{},"f:older":{}}}`),
			},
			from: []string{"kubectl"},
			want: []string{ours + `{"f:data":{"f:a":{},"f:b":{},"f:old":{},"f:older":{}}}`},
		},
		"versions": {
			reason: "sets of fields of two versions of an API cannot be joined",
			live: []metav1.ManagedFieldsEntry{
				of("v1beta1", managed("kubectl", apply, `{"f:data":{"f:a":{}}}`)),
				managed("helm", update, `{"f:data":{"f:a":{},"f:old":{}}}`),
			},
			from: []string{"helm"},
			want: []string{
				`kubectl Apply v1beta1 {"f:data":{"f:a":{}}}`,
				ours + `{"f:data":{"f:a":{},"f:old":{}}}`,
			},
		},
		"older version": {
			reason: "one set of an older version is read in that version",
			live:   []metav1.ManagedFieldsEntry{of("v1beta1", managed("kubectl", apply, `{"f:data":{"f:a":{},"f:b":{}}}`))},
			from:   []string{"kubectl"},
			want:   []string{`penstock/argocd Apply v1beta1 {"f:data":{"f:a":{},"f:b":{}}}`},
		},
		"wiped once": {
			reason: "the fields from before the first apply are of all who ever wrote to it",
			live:   []metav1.ManagedFieldsEntry{managed(BeforeFirstApply, update, `{"f:data":{"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{"f:team":{}}}}`)},
		},
		"foreign object": {
			reason: "nobody holds anything of ours",
			live:   []metav1.ManagedFieldsEntry{managed("somebody", update, `{"f:data":{"f:other":{}}}`)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wanted := maps.Clone(wanted)
			if tc.status != nil {
				wanted["status"] = tc.status
			}
			plan := TakeOver(wanted, tc.live, manager, "v1")
			if plan == nil {
				plan = &Takeover{}
			}
			if diff := cmp.Diff(tc.from, plan.From); diff != "" {
				t.Errorf("%s: taken from (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, printed(plan.Fields)); diff != "" {
				t.Errorf("%s: managedFields (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDisown(t *testing.T) {
	const (
		apply  = metav1.ManagedFieldsOperationApply
		update = metav1.ManagedFieldsOperationUpdate
	)
	mine := managed("penstock/argocd", apply, `{"f:data":{"f:a":{}}}`)
	cases := map[string]struct {
		reason string
		live   []metav1.ManagedFieldsEntry
		want   []string
	}{
		"never wiped": {reason: "there is nobody from before", live: []metav1.ManagedFieldsEntry{mine}},
		"wiped": {
			reason: "what is ours is ours alone, and the rest stays nobody's",
			live:   []metav1.ManagedFieldsEntry{managed(BeforeFirstApply, update, `{"f:data":{"f:a":{},"f:theirs":{}}}`), mine},
			want:   []string{BeforeFirstApply + ` Update v1 {"f:data":{"f:theirs":{}}}`, `penstock/argocd Apply v1 {"f:data":{"f:a":{}}}`},
		},
		"nothing left": {
			reason: "an entry without fields is none",
			live:   []metav1.ManagedFieldsEntry{managed(BeforeFirstApply, update, `{"f:data":{"f:a":{}}}`), mine},
			want:   []string{`penstock/argocd Apply v1 {"f:data":{"f:a":{}}}`},
		},
		"done": {
			reason: "it is done once",
			live:   []metav1.ManagedFieldsEntry{managed(BeforeFirstApply, update, `{"f:data":{"f:theirs":{}}}`), mine},
		},
		"not ours": {reason: "an object that is not ours is none of our business", live: []metav1.ManagedFieldsEntry{managed(BeforeFirstApply, update, `{"f:data":{"f:a":{}}}`)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, printed(Disown(tc.live, manager))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
