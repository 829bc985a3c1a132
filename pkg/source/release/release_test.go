package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/source/directory"
)

type files map[string]string

func (f files) fs() fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range f {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// object returns a manifest. annotations are alternating keys and values.
func object(kind, name string, annotations ...string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: %s\n", kind, name)
	if kind != "Namespace" {
		text += "  namespace: a\n"
	}
	if len(annotations) > 0 {
		text += "  annotations:\n"
	}
	for i := 0; i < len(annotations); i += 2 {
		text += fmt.Sprintf("    %s: %q\n", annotations[i], annotations[i+1])
	}
	return text
}

func TestRunLevelsBecomePhases(t *testing.T) {
	result, err := Render(t.Context(), files{
		"0000_50_olm_01-server.yaml":             object("ConfigMap", "olm-1"),
		"0000_50_olm_00-namespace.yaml":          object("Namespace", "olm"),
		"0000_10_config-operator_01_config.yaml": object("ConfigMap", "config") + "---\n" + object("ConfigMap", "more"),
		"0000_50_console-operator_00.yaml":       object("ConfigMap", "console"),
		"sub/0000_90_last_00.yaml":               object("ConfigMap", "last"),
		"image-references":                       "not a manifest",
	}.fs(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, phase := range result.Phases {
		line := phase.Name + ":"
		for _, o := range phase.Objects {
			line += " " + o.Name
		}
		got = append(got, line)
	}
	want := []string{"run-level-10: config more", "run-level-50: console olm olm-1", "run-level-90: last"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnnotationsDecide(t *testing.T) {
	const include, exclude = "include.release.openshift.io/", "exclude.release.openshift.io/"
	cases := map[string]struct {
		reason      string
		annotations []string
		options     Options
		leftOut     string
		refused     string
	}{
		"Nothing":           {reason: "nothing is asked"},
		"Profile":           {annotations: []string{include + "ha", "true"}, options: Options{Profile: "ha"}},
		"OtherProfile":      {annotations: []string{include + "ibm", "true"}, options: Options{Profile: "ha"}, leftOut: "not for profile ha"},
		"ProfileFalse":      {annotations: []string{include + "ha", "false"}, options: Options{Profile: "ha"}, leftOut: "not for profile ha"},
		"ProfileBadValue":   {annotations: []string{include + "ha", "True"}, options: Options{Profile: "ha"}, refused: `is "True", want "true" or "false"`},
		"NoAnnotations":     {reason: "with a profile, what is for none is for nobody", options: Options{Profile: "ha"}, leftOut: "not for profile ha"},
		"ProfileNotSaid":    {annotations: []string{include + "ha", "true"}, refused: "name the profile of your cluster with --profile"},
		"Excluded":          {annotations: []string{exclude + "internal", "true"}, options: Options{Exclude: []string{"other", "internal"}}, leftOut: "excluded for internal"},
		"ExcludedElsewhere": {annotations: []string{exclude + "internal", "true"}},
		"FeatureSet":        {annotations: []string{featureSetAnnotation, "TechPreviewNoUpgrade, Default"}},
		"OtherFeatureSet":   {annotations: []string{featureSetAnnotation, "TechPreviewNoUpgrade"}, leftOut: "not for feature set Default"},
		"AskedFeatureSet":   {annotations: []string{featureSetAnnotation, "TechPreviewNoUpgrade"}, options: Options{FeatureSet: "TechPreviewNoUpgrade"}},
		"EmptyFeatureSet":   {annotations: []string{featureSetAnnotation, ""}, leftOut: "not for feature set Default"},
		"SetAndGate":        {annotations: []string{featureSetAnnotation, "Default", featureGateAnnotation, "A"}, refused: "which is ambiguous"},
		"GateNotSaid":       {annotations: []string{featureGateAnnotation, "A"}, refused: "--feature-gates"},
		"GatesOn":           {annotations: []string{featureGateAnnotation, "A,-B"}, options: Options{FeatureGates: []string{"A"}}},
		"GateMissing":       {annotations: []string{featureGateAnnotation, "A,C"}, options: Options{FeatureGates: []string{"A"}}, leftOut: "feature gates"},
		"GateOnThatIsOff":   {annotations: []string{featureGateAnnotation, "-A"}, options: Options{FeatureGates: []string{"A"}}, leftOut: "feature gates"},
		"NoGates":           {annotations: []string{featureGateAnnotation, "-A"}, options: Options{FeatureGates: []string{}}},
		"CapabilityNotSaid": {annotations: []string{capabilityAnnotation, "Console"}, refused: "--capabilities"},
		"Capability":        {annotations: []string{capabilityAnnotation, "Console+Ingress"}, options: Options{Capabilities: []string{"Ingress", "Console"}}},
		"CapabilityMissing": {annotations: []string{capabilityAnnotation, "Console+Ingress"}, options: Options{Capabilities: []string{"Ingress"}}, leftOut: "capability Console"},
		"AllCapabilities":   {annotations: []string{capabilityAnnotation, "Console"}, options: Options{Capabilities: []string{"*"}}},
		"Deleted":           {annotations: []string{"release.openshift.io/delete", "true"}, leftOut: "to be deleted"},
		"DeleteBadValue":    {annotations: []string{"release.openshift.io/delete", "false"}, refused: `is "false", want "true"`},
		"MajorVersion":      {annotations: []string{majorVersionAnnotation, "5"}, refused: "the version of the cluster is not known here"},
		"Level":             {annotations: []string{"release.openshift.io/create-only", "true", "release.openshift.io/install-level", "1"}},
		"BadLevel":          {annotations: []string{"release.openshift.io/create-only", "true", "release.openshift.io/install-level", "2"}, refused: `install-level is "2", want "0" or "1"`},
		"BadLevelElsewhere": {reason: "what is left out is not judged", annotations: []string{"release.openshift.io/install-level", "2"}, options: Options{Profile: "ha"}, leftOut: "not for profile ha"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			keep := []string{}
			if tc.options.Profile != "" {
				keep = []string{include + tc.options.Profile, "true"}
			}
			result, err := Render(t.Context(), files{
				"0000_50_c_00.yaml": object("ConfigMap", "kept", keep...), "0000_50_c_01.yaml": object("ConfigMap", "judged", tc.annotations...),
			}.fs(), tc.options)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), "0000_50_c_01.yaml:1: ") || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("want a refusal that says %q, got %v", tc.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want, objects := map[string]int{}, 2
			if tc.leftOut != "" {
				want, objects = map[string]int{tc.leftOut: 1}, 1
			}
			if diff := cmp.Diff(want, result.LeftOut); diff != "" || len(result.Phases[0].Objects) != objects {
				t.Errorf("%s: left out (-want +got), %d objects stay:\n%s", tc.reason, len(result.Phases[0].Objects), diff)
			}
		})
	}
}

// TestVariants: the revision has only one of two variants of an object for different profiles. Two
// files for the same profile are an error.
func TestVariants(t *testing.T) {
	f := files{
		"0000_50_c_00-ha.yaml":  object("ConfigMap", "x", "include.release.openshift.io/ha", "true"),
		"0000_50_c_00-ibm.yaml": object("ConfigMap", "x", "include.release.openshift.io/ibm", "true"),
	}
	result, err := Render(t.Context(), f.fs(), Options{Profile: "ibm"})
	if err != nil || len(result.Phases[0].Objects) != 1 {
		t.Errorf("one of them is for the profile: %v", err)
	}
	f["0000_90_c_00.yaml"] = object("ConfigMap", "x", "include.release.openshift.io/ibm", "true")
	if _, err := Render(t.Context(), f.fs(), Options{Profile: "ibm"}); err == nil || !strings.Contains(err.Error(), "is already at 0000_50_c_00-ibm.yaml:1") {
		t.Errorf("two contents for one object: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		files files
		says  []string
	}{
		"OtherNames":  {files{"deployment.yaml": object("ConfigMap", "x")}, []string{"deployment.yaml:1: ", "has no run level", "without --layout release"}},
		"NoComponent": {files{"0000_50.yaml": object("ConfigMap", "x")}, []string{"has no run level"}},
		"OnlyOthers":  {files{"0000_50_c_00.yaml": object("ConfigMap", "x", "include.release.openshift.io/ibm", "true")}, []string{"of 1 manifest, the filter leaves none"}},
		"Nothing":     {files{"0000_50_c_00.txt": "x"}, []string{"no manifests found"}},
		"All": {files{"0000_50_c_00.yaml": object("ConfigMap", "x", capabilityAnnotation, "A"), "0000_50_c_01.yaml": object("ConfigMap", "z", featureGateAnnotation, "B")},
			[]string{"0000_50_c_00.yaml:1: ", "0000_50_c_01.yaml:1: "}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := Options{}
			if name == "OnlyOthers" {
				options.Profile = "ha"
			}
			_, err := Render(t.Context(), tc.files.fs(), options)
			if err == nil {
				t.Fatal("it was not refused")
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			var all *directory.Errors
			if strings.Contains(tc.says[0], ".yaml:1") && !errors.As(err, &all) {
				t.Errorf("the error has no places: %v", err)
			}
		})
	}
}

// TestFieldRelease: an object has two variants. The variant for the profile and feature set is
// used. Files with other names are ignored, and manifests marked for deletion are omitted.
func TestFieldRelease(t *testing.T) {
	const folder = "../../../../shared/data/field-cases/plans/13-release/release-manifests"
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("the cases of the field are kept beside the repository: %v", err)
	}
	for profile, want := range map[string]string{
		"self-managed-high-availability": "run-level-10: lamp-release which=default; run-level-50: settings=2 default",
		"ibm-cloud-managed":              "run-level-10: lamp-release; run-level-50: settings=1",
	} {
		result, err := Render(t.Context(), os.DirFS(folder), Options{Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, phase := range result.Phases {
			line := phase.Name + ":"
			for _, object := range phase.Objects {
				var content struct{ Data map[string]string }
				if err := json.Unmarshal(object.JSON, &content); err != nil {
					t.Fatal(err)
				}
				line += " " + object.Name
				for _, value := range content.Data {
					line += "=" + value
				}
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", profile, diff)
		}
	}
}
