package objectmeta

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
)

func many(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("example.com/f%d", i)
	}
	return list
}

func labels(n int) map[string]string {
	words := map[string]string{}
	for _, name := range many(n) {
		words[name] = "x"
	}
	return words
}

func managers(n, bytes int) []metav1.ManagedFieldsEntry {
	entries := make([]metav1.ManagedFieldsEntry, n)
	for i := range entries {
		entries[i] = metav1.ManagedFieldsEntry{Manager: fmt.Sprint(i), FieldsV1: metav1.NewFieldsV1(`{"f:` + strings.Repeat("x", bytes) + `":{}}`)}
	}
	return entries
}

func owner(change func(*metav1.OwnerReference)) []metav1.OwnerReference {
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "y"}
	change(&reference)
	return []metav1.OwnerReference{reference}
}

func TestValidateSize(t *testing.T) {
	long := func(n int) string { return strings.Repeat("<", n) }
	for name, tc := range map[string]struct {
		reason    string
		meta, old metav1.ObjectMeta
		want      []string
	}{
		"Ordinary": {reason: "as most are", meta: metav1.ObjectMeta{Labels: labels(20), Finalizers: many(3), ManagedFields: managers(10, 4000)}},
		"AtLimits": {reason: "the limits themselves are allowed", meta: metav1.ObjectMeta{Labels: labels(MaxLabels), Finalizers: many(MaxFinalizers)}},
		"Counts": {reason: "one more of each is not", meta: metav1.ObjectMeta{Labels: labels(MaxLabels + 1), Finalizers: many(MaxFinalizers + 1), OwnerReferences: make([]metav1.OwnerReference, MaxOwners+1)},
			want: []string{"metadata.labels", "metadata.finalizers", "metadata.ownerReferences"}},
		"OwnerUID":     {reason: "nothing but us bounds it", meta: metav1.ObjectMeta{OwnerReferences: owner(func(o *metav1.OwnerReference) { o.UID = types.UID(long(129)) })}, want: []string{"metadata.ownerReferences[0].uid"}},
		"OwnerName":    {reason: "as above", meta: metav1.ObjectMeta{OwnerReferences: owner(func(o *metav1.OwnerReference) { o.Name = long(254) })}, want: []string{"metadata.ownerReferences[0].name"}},
		"OwnerKind":    {reason: "as above", meta: metav1.ObjectMeta{OwnerReferences: owner(func(o *metav1.OwnerReference) { o.Kind = long(64) })}, want: []string{"metadata.ownerReferences[0].kind"}},
		"OwnerVersion": {reason: "as above", meta: metav1.ObjectMeta{OwnerReferences: owner(func(o *metav1.OwnerReference) { o.APIVersion = long(318) })}, want: []string{"metadata.ownerReferences[0].apiVersion"}},
		"Managers":     {reason: "those who apply are not capped by Kubernetes", meta: metav1.ObjectMeta{ManagedFields: managers(40, 4000)}, want: []string{"metadata.managedFields"}},
		"Escaped":      {reason: "256 KiB of annotations are allowed, and six times as much in JSON is not", meta: metav1.ObjectMeta{Annotations: map[string]string{"a": long(250 << 10)}}, want: []string{"metadata"}},
		"Text":         {reason: "far too much is not encoded to find out", meta: metav1.ObjectMeta{Annotations: map[string]string{"a": long(8 << 20)}}, want: []string{"metadata"}},
		"Older":        {reason: "what was stored before may stay", meta: metav1.ObjectMeta{Labels: labels(1000), Finalizers: many(70)}, old: metav1.ObjectMeta{Labels: labels(1000), Finalizers: many(71)}},
		"OlderOwner":   {reason: "as above", meta: metav1.ObjectMeta{OwnerReferences: owner(func(o *metav1.OwnerReference) { o.UID = "" })}, old: metav1.ObjectMeta{OwnerReferences: owner(func(o *metav1.OwnerReference) { o.UID = types.UID(long(1000)) })}},
		"Growing":      {reason: "but not grow", meta: metav1.ObjectMeta{Finalizers: many(72)}, old: metav1.ObjectMeta{Finalizers: many(71)}, want: []string{"metadata.finalizers"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range ValidateSize(&tc.meta, &tc.old, field.NewPath("metadata")) {
				got = append(got, err.Field)
				if len(err.Error()) > 300 {
					t.Errorf("the error repeats what is too long: %.300s", err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSizeIsBounded: metadata that passes is not larger in JSON than the limits promise.
func TestSizeIsBounded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := func(name string) string {
			return strings.Repeat(rapid.SampledFrom([]string{"x", "<", `"`, "é"}).Draw(r, "letter"), rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(0, 100_000)).Draw(r, name))
		}
		meta := metav1.ObjectMeta{
			Labels: labels(rapid.IntRange(0, MaxLabels+20).Draw(r, "labels")), Annotations: map[string]string{text("name"): text("value")},
			Finalizers:      append(many(rapid.IntRange(0, MaxFinalizers).Draw(r, "finalizers")), text("finalizer")),
			OwnerReferences: owner(func(o *metav1.OwnerReference) { o.Name, o.UID = text("owner"), types.UID(text("uid")) }),
			ManagedFields:   managers(rapid.IntRange(0, 20).Draw(r, "managers"), rapid.IntRange(0, 8000).Draw(r, "fields")),
			GenerateName:    text("generateName"),
		}
		meta.SetSelfLink(text("selfLink"))
		if len(ValidateSize(&meta, nil, field.NewPath("metadata"))) > 0 {
			return
		}
		if encoded, err := json.Marshal(meta); err != nil || len(encoded) > MaxBytes {
			r.Fatalf("metadata of %d bytes passes, error %v", len(encoded), err)
		}
	})
}
