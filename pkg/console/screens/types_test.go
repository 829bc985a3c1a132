package screens

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// typesFile holds the types that pages receive and send, for the checks of TypeScript.
const typesFile = "../web/app/api.d.ts"

func sent() []any {
	return []any{
		Message{}, Me{}, Right{}, Refusal{}, Diff{}, Done{}, StateRequest{}, RollbackRequest{}, ApproveRequest{}, PlanRequest{}, UndoRequest{},
		Profiles{}, MakePlanRequest{}, ManifestObject{}, Pods{}, PodDetail{}, Events{}, Timeline{}, Search{}, Readiness{}, Owners{}, UpgradeWindow{},
		Packages{}, Package{}, InstallRequest{}, Installation{}, VersionRequest{}, VersionChange{}, Target{}, RolloutGroups{}, DecideRequest{}, catalogv1alpha1.CatalogPackageGraph{},
		olmv1alpha1.RevisionHistory{}, olmv1alpha1.RevisionObjects{}, olmv1alpha1.RevisionRollback{}, hcov1alpha1.PlanDiff{}, hcov1alpha1.PlanHistory{}, hcov1alpha1.PlanApprovalRequest{},
	}
}

// TestTypes: typesFile matches the Go types. UPDATE=1 writes it.
func TestTypes(t *testing.T) {
	w := &typeWriter{done: map[string]string{}}
	for _, one := range sent() {
		w.name(reflect.TypeOf(one))
	}
	var out strings.Builder
	out.WriteString("// Generated from the Go types: UPDATE=1 go test -run TestTypes ./pkg/console/screens. DO NOT EDIT.\n")
	names := make([]string, 0, len(w.done))
	for name := range w.done {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out.WriteString("\nexport interface " + name + " {\n" + w.done[name] + "}\n")
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(typesFile, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(typesFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != out.String() {
		t.Errorf("%s is not what the Go types say: UPDATE=1 go test -run TestTypes ./pkg/console/screens", typesFile)
	}
}

type typeWriter struct{ done map[string]string }

// name returns the name of a type. It first writes the type if the type has fields.
func (w *typeWriter) name(of reflect.Type) string {
	if of.Kind() == reflect.Pointer {
		return w.name(of.Elem())
	}
	switch of {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.Duration]():
		return "string"
	case reflect.TypeFor[intstr.IntOrString]():
		return "string | number"
	case reflect.TypeFor[metav1.ObjectMeta]():
		return "{ name?: string }"
	}
	if of.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()) {
		return "unknown"
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "number"
	case reflect.Slice:
		return "Array<" + w.name(of.Elem()) + ">"
	case reflect.Map:
		return "Record<string, " + w.name(of.Elem()) + ">"
	case reflect.Struct:
		name := of.Name()
		if _, written := w.done[name]; !written {
			w.done[name] = "" // the type may contain itself
			w.done[name] = w.fields(of)
		}
		return name
	default:
		panic(fmt.Sprintf("no word for %s", of))
	}
}

func (w *typeWriter) fields(of reflect.Type) string {
	var out strings.Builder
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-", !field.IsExported() && !field.Anonymous:
		case field.Anonymous && strings.Contains(options, "inline"): // kind and apiVersion, which pages know
		default:
			optional := ""
			if strings.Contains(options, "omit") {
				optional = "?"
			}
			fmt.Fprintf(&out, "  %s%s: %s;\n", name, optional, w.name(field.Type))
		}
	}
	return out.String()
}
