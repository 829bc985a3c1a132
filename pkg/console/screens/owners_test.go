package screens

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestManagers: each field manager is listed with its paths, last write first. Fields that cannot
// be read, and fields beyond the limit, leave the manager in the list.
func TestManagers(t *testing.T) {
	entry := func(name string, minute int, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Date(2026, 11, 28, 9, minute, 0, 0, time.UTC))
		return metav1.ManagedFieldsEntry{Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	var many []string
	for n := range mostFields + 3 {
		many = append(many, fmt.Sprintf(`"f:k%d":{}`, n))
	}
	got := managersOf([]metav1.ManagedFieldsEntry{
		entry("penstock/shop", 1, `{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}`),
		entry("kubectl-edit", 3, `{"f:spec":{"f:replicas":{}}}`),
		entry("many", 2, `{"f:data":{`+strings.Join(many, ",")+`}}`),
		entry("broken", 0, `{`),
		{Manager: "old", Operation: metav1.ManagedFieldsOperationApply},
	})
	var said []string
	for _, one := range got {
		said = append(said, fmt.Sprintf("%s %s %d+%d", one.Name, strings.Join(one.Fields[:min(2, len(one.Fields))], " "), len(one.Fields), one.Omitted))
	}
	want := []string{`kubectl-edit .spec.replicas 1+0`, "many .data.k0 .data.k1 40+3", `penstock/shop .spec.containers[name="a"].image 1+0`, "broken  0+0", "old  0+0"}
	if !slices.Equal(said, want) {
		t.Errorf("got %q\nwant %q", said, want)
	}
}
