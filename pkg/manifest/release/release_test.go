package release

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// raw returns a ConfigMap with annotations in JSON. It skips the parser, because this release may
// not have checked stored manifests.
func raw(annotations string) manifest.Object {
	return manifest.Object{
		Ref:  manifest.Ref{ID: manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "x"}, Version: "v1"},
		JSON: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":%s,"name":"x","namespace":"a"}}`, annotations),
	}
}

// level returns annotations with an install level in JSON, and create-only.
func level(value string) string {
	return fmt.Sprintf(`{"release.openshift.io/create-only":"true","release.openshift.io/install-level":%s}`, value)
}

func TestMarkOf(t *testing.T) {
	bad := func(value string) []string {
		return []string{"ConfigMap a/x: annotation release.openshift.io/install-level is " + value + `, want "0" or "1"`}
	}
	cases := map[string]struct {
		annotations string
		want        Mark
		offences    []string
	}{
		"None":           {annotations: `{}`},
		"Null":           {annotations: `null`},
		"Others":         {annotations: `{"release.openshift.io/other":"1"}`},
		"CreateOnly":     {annotations: `{"release.openshift.io/create-only":"true"}`, want: Mark{CreateOnly: true}},
		"NotCreateOnly":  {annotations: `{"release.openshift.io/create-only":"false"}`},
		"Zero":           {annotations: level(`"0"`), want: Mark{CreateOnly: true}},
		"One":            {annotations: level(`"1"`), want: Mark{CreateOnly: true, Level: 1}},
		"Empty":          {annotations: level(`""`), offences: bad(`""`)},
		"LeadingSpace":   {annotations: level(`" 1"`), offences: bad(`" 1"`)},
		"TrailingSpace":  {annotations: level(`"1 "`), offences: bad(`"1 "`)},
		"Newline":        {annotations: level(`"1\n"`), offences: bad(`"1\n"`)},
		"LeadingZero":    {annotations: level(`"01"`), offences: bad(`"01"`)},
		"Plus":           {annotations: level(`"+1"`), offences: bad(`"+1"`)},
		"Minus":          {annotations: level(`"-1"`), offences: bad(`"-1"`)},
		"Decimal":        {annotations: level(`"1.0"`), offences: bad(`"1.0"`)},
		"Exponent":       {annotations: level(`"1e0"`), offences: bad(`"1e0"`)},
		"Word":           {annotations: level(`"true"`), offences: bad(`"true"`)},
		"Two":            {annotations: level(`"2"`), offences: bad(`"2"`)},
		"Huge":           {annotations: level(`"9999999999999999999"`), offences: bad(`"9999999999999999999"`)},
		"FullWidth":      {annotations: level("\"\uff11\""), offences: bad("\"\uff11\"")},
		"UnquotedNumber": {annotations: level(`1`), offences: bad(`1`)},
		"UnquotedBool":   {annotations: level(`true`), offences: bad(`true`)},
		"NullValue":      {annotations: level(`null`), offences: bad(`null`)},
		"ListValue":      {annotations: level(`["1"]`), offences: bad(`["1"]`)},
		"NoMap":          {annotations: `["release.openshift.io/install-level"]`, offences: []string{`ConfigMap a/x: metadata.annotations is ["release.openshift.io/install-level"], want a map of strings`}},
		"CreateOnlyUnquoted": {annotations: `{"release.openshift.io/create-only":true,"release.openshift.io/install-level":"1"}`,
			offences: []string{`ConfigMap a/x: annotation release.openshift.io/create-only is true, want "true" or "false"`}},
		"CreateOnlyCase": {annotations: `{"release.openshift.io/create-only":"True"}`,
			offences: []string{`ConfigMap a/x: annotation release.openshift.io/create-only is "True", want "true" or "false"`}},
		"Alone": {annotations: `{"release.openshift.io/install-level":"1"}`,
			offences: []string{`ConfigMap a/x: annotation release.openshift.io/install-level is "1", which needs release.openshift.io/create-only: "true" beside it`}},
		"AloneAndZero": {annotations: `{"release.openshift.io/install-level":"0"}`,
			offences: []string{`ConfigMap a/x: annotation release.openshift.io/install-level is "0", which needs release.openshift.io/create-only: "true" beside it`}},
		"BesideFalse": {annotations: `{"release.openshift.io/create-only":"false","release.openshift.io/install-level":"1"}`,
			offences: []string{`ConfigMap a/x: annotation release.openshift.io/install-level is "1", which needs release.openshift.io/create-only: "true" beside it`}},
		"Delete": {annotations: `{"release.openshift.io/create-only":"true","release.openshift.io/delete":"true","release.openshift.io/install-level":"1"}`,
			offences: []string{`ConfigMap a/x: annotation release.openshift.io/delete is "true", which cannot be combined with release.openshift.io/create-only or release.openshift.io/install-level`}},
		"OtherValueNoString": {annotations: `{"release.openshift.io/create-only":"true","other":1}`, want: Mark{CreateOnly: true}},
		"KeyInAnotherCase":   {annotations: `{"Release.openshift.io/install-level":"7"}`},
		"AnotherDomain":      {annotations: `{"release.openshift.com/install-level":"7"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mark, offences := MarkOf(raw(tc.annotations))
			var said []string
			for _, o := range offences {
				said = append(said, o.String())
			}
			if diff := cmp.Diff(tc.offences, said); diff != "" {
				t.Errorf("offences (-want +got):\n%s", diff)
			}
			if mark != tc.want {
				t.Errorf("got %+v, want %+v", mark, tc.want)
			}
		})
	}
}

// TestParserAgrees: the parser refuses a manifest whose annotation is no string, or has a duplicate
// key.
func TestParserAgrees(t *testing.T) {
	for name, annotations := range map[string]string{
		"Unquoted": level(`1`), "NoMap": `["x"]`,
		"Twice": `{"release.openshift.io/install-level":"1","release.openshift.io/install-level":"2"}`,
	} {
		if _, err := (manifest.Digester{}).FromJSON(raw(annotations).JSON); err == nil {
			t.Errorf("%s: %s was accepted", name, annotations)
		}
	}
}

// TestNullIsNoLevel: null becomes an empty annotation, as in an API server. An empty level is
// invalid.
func TestNullIsNoLevel(t *testing.T) {
	object, err := (manifest.Digester{}).FromJSON(raw(level(`null`)).JSON)
	if err != nil {
		t.Fatal(err)
	}
	if mark, offences := MarkOf(object); len(offences) != 1 {
		t.Errorf("got %+v and %v, want one offence", mark, offences)
	}
}

func TestAnnotationOnPodTemplateMeansNothing(t *testing.T) {
	object := raw(`{}`)
	object.JSON = []byte(`{"spec":{"template":{"metadata":{"annotations":{"release.openshift.io/install-level":"7"}}}}}`)
	if mark, offences := MarkOf(object); mark != (Mark{}) || len(offences) > 0 {
		t.Errorf("got %+v, %v", mark, offences)
	}
	if diff := cmp.Diff([]string{"release.openshift.io/install-level on the pod template has no effect: it belongs on the object itself"}, LookAlikes(object)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLookAlikes(t *testing.T) {
	for annotations, want := range map[string]int{
		`{}`: 0, level(`"1"`): 0, `{"release.openshift.io/install-levels":"1"}`: 1, `{"Release.openshift.io/Install-Level":"1"}`: 1,
		`{"install-level":"1"}`: 1, `{"release.openshift.com/install-level":"1"}`: 1, `{"note":"see install-level"}`: 0,
	} {
		if got := LookAlikes(raw(annotations)); len(got) != want {
			t.Errorf("%s: got %q, want %d", annotations, got, want)
		}
	}
}

func TestCheckIsSortedAndComplete(t *testing.T) {
	named := func(name, value string) manifest.Object {
		object := raw(level(value))
		object.Name = name
		return object
	}
	objects := []manifest.Object{named("c", `"2"`), named("a", `"3"`), named("b", `"1"`), named("b2", `""`)}
	var said []string
	for _, o := range Check(objects) {
		said = append(said, o.ID.Name+" "+o.Value)
	}
	if diff := cmp.Diff([]string{`a "3"`, `b2 ""`, `c "2"`}, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongValuesAreShortened(t *testing.T) {
	_, offences := MarkOf(raw(level(`"` + strings.Repeat("é", 500) + `"`)))
	if len(offences) != 1 || len(offences[0].String()) > 250 || strings.Contains(offences[0].Value, "�") {
		t.Errorf("got %v", offences)
	}
}

func FuzzMarkOf(f *testing.F) {
	f.Add(level(`"1"`))
	f.Add(`[1]`)
	f.Fuzz(func(t *testing.T, annotations string) {
		if !json.Valid([]byte(annotations)) {
			t.Skip("no manifest: what is not JSON does not become one")
		}
		mark, offences := MarkOf(raw(annotations))
		if mark.Level != 0 && !mark.CreateOnly || len(offences) > 0 && mark != (Mark{}) {
			t.Errorf("%s: %+v, %v", annotations, mark, offences)
		}
	})
}

func TestInversions(t *testing.T) {
	late := func(kind, namespace, name string) manifest.Object {
		object := raw(level(`"1"`))
		object.ID = manifest.ID{Kind: kind, Namespace: namespace, Name: name}
		return object
	}
	workload := func(kind, spec string) manifest.Object {
		return manifest.Object{
			Ref:  manifest.Ref{ID: manifest.ID{Group: "apps", Kind: kind, Namespace: "a", Name: "server"}, Version: "v1"},
			JSON: []byte(spec),
		}
	}
	pod := `{"serviceAccountName":"sa","imagePullSecrets":[{"name":"pull"}],
		"volumes":[{"configMap":{"name":"cm"}},{"secret":{"secretName":"sec"}},{"configMap":{"name":"maybe","optional":true}},
			{"projected":{"sources":[{"configMap":{"name":"projected"}},{"secret":{"name":"psec"}}]}},{"persistentVolumeClaim":{"claimName":"claim"}}],
		"initContainers":[{"envFrom":[{"configMapRef":{"name":"init-env"}}]}],
		"containers":[{"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"env","key":"k"}}}],"envFrom":[{"secretRef":{"name":"opt","optional":true}}]}]}`
	cases := map[string]struct {
		objects []manifest.Object
		want    []string
	}{
		"EverythingMounted": {[]manifest.Object{
			workload("Deployment", `{"spec":{"template":{"spec":`+pod+`}}}`),
			late("ConfigMap", "a", "cm"), late("Secret", "a", "sec"), late("ConfigMap", "a", "maybe"), late("ConfigMap", "a", "projected"),
			late("Secret", "a", "psec"), late("PersistentVolumeClaim", "a", "claim"), late("ConfigMap", "a", "init-env"), late("Secret", "a", "env"),
			late("Secret", "a", "opt"), late("Secret", "a", "pull"), late("ServiceAccount", "a", "sa"), late("ConfigMap", "other", "cm"),
		}, []string{
			"ConfigMap a/cm", "ConfigMap a/init-env", "ConfigMap a/projected", "PersistentVolumeClaim a/claim",
			"Secret a/env", "Secret a/psec", "Secret a/pull", "Secret a/sec", "ServiceAccount a/sa",
		}},
		"CronJob":     {[]manifest.Object{workload("CronJob", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":`+pod+`}}}}}`), late("ConfigMap", "a", "cm")}, []string{"ConfigMap a/cm"}},
		"Pod":         {[]manifest.Object{workload("Pod", `{"spec":`+pod+`}`), late("ConfigMap", "a", "cm")}, []string{"ConfigMap a/cm"}},
		"Namespace":   {[]manifest.Object{workload("Other", `{}`), late("Namespace", "", "a")}, []string{"Namespace a"}},
		"NoneIsLate":  {[]manifest.Object{workload("Deployment", `{"spec":{"template":{"spec":`+pod+`}}}`)}, nil},
		"SameLevel":   {[]manifest.Object{late("Namespace", "", "a"), late("ConfigMap", "a", "cm")}, nil},
		"NotInTheSet": {[]manifest.Object{workload("Deployment", `{"spec":{"template":{"spec":`+pod+`}}}`), late("ConfigMap", "a", "unrelated")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, i := range Inversions(tc.objects) {
				got = append(got, i.Needs.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCustomResourceBeforeItsDefinition(t *testing.T) {
	crd := raw(level(`"1"`))
	crd.ID = manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}
	crd.JSON = []byte(`{"metadata":{"annotations":` + level(`"1"`) + `},"spec":{"group":"example.com","names":{"kind":"Widget"}}}`)
	widget := manifest.Object{Ref: manifest.Ref{ID: manifest.ID{Group: "example.com", Kind: "Widget", Name: "w"}}, JSON: []byte(`{}`)}
	got := Inversions([]manifest.Object{widget, crd})
	if diff := cmp.Diff([]Inversion{{Object: widget.ID, Needs: crd.ID}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTooEarly: objects in an earlier phase than the definition of their kind are returned.
// Inversions handles objects of another install level.
func TestTooEarly(t *testing.T) {
	definition := manifest.Object{Ref: manifest.Ref{ID: manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "lamps.example.com"}, Version: "v1"},
		JSON: []byte(`{"spec":{"group":"example.com","names":{"kind":"Lamp"}}}`)}
	lamp := manifest.Object{Ref: manifest.Ref{ID: manifest.ID{Group: "example.com", Kind: "Lamp", Namespace: "a", Name: "x"}, Version: "v1"}, JSON: []byte(`{}`)}
	late := definition
	late.JSON = []byte(`{"metadata":{"annotations":` + level(`"1"`) + `},"spec":{"group":"example.com","names":{"kind":"Lamp"}}}`)
	for name, c := range map[string]struct {
		objects []manifest.Object
		phases  []int
		want    int
	}{
		"earlier":      {[]manifest.Object{lamp, definition}, []int{0, 1}, 1},
		"same phase":   {[]manifest.Object{lamp, definition}, []int{0, 0}, 0},
		"later":        {[]manifest.Object{definition, lamp}, []int{0, 1}, 0},
		"no kind here": {[]manifest.Object{lamp}, []int{0}, 0},
		"other level":  {[]manifest.Object{lamp, late}, []int{0, 1}, 0},
	} {
		if got := TooEarly(c.objects, func(i int) int { return c.phases[i] }); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
