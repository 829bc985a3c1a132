package install

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestInstalledAlready: an extension of the same name takes over the content of earlier revisions.
// An installation under another name stays.
func TestInstalledAlready(t *testing.T) {
	there := catalogv1alpha1.InstalledVersion{Extension: "buoy", Version: "1.0.0"}
	if got := InstalledAlready(there, "buoy"); !strings.Contains(got, "takes their objects over") || strings.Contains(got, "refused") {
		t.Errorf("%q", got)
	}
	if got := InstalledAlready(there, "other"); !strings.Contains(got, "as buoy") || !strings.Contains(got, "refused") {
		t.Errorf("%q", got)
	}
}

// TestObject: the object has exactly the requested fields.
func TestObject(t *testing.T) {
	for name, tc := range map[string]struct {
		request Request
		want    string
	}{
		"least": {Request{Package: "buoy", Name: "buoy", Namespace: "sea"}, `{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"buoy"},"spec":{"namespace":"sea","source":{"catalog":{"packageName":"buoy"},"sourceType":"Catalog"}}}`},
		"all": {Request{Package: "buoy", Name: "b", Namespace: "sea", Version: "1.x", Channels: []string{"stable"}, Catalog: "shore", Approval: "Manual", ServiceAccount: "sailor"},
			`{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"annotations":{"penstock.dev/upgrade-approval":"Manual"},"name":"b"},"spec":{"namespace":"sea","serviceAccount":{"name":"sailor"},` +
				`"source":{"catalog":{"channels":["stable"],"packageName":"buoy","selector":{"matchLabels":{"olm.operatorframework.io/metadata.name":"shore"}},"version":"1.x"},"sourceType":"Catalog"}}}`},
		"configured": {Request{Package: "buoy", Name: "b", Namespace: "sea", WatchNamespace: "bay", Config: map[string]any{"deploymentConfig": map[string]any{"nodeSelector": map[string]any{"a": "b"}}}, AcceptRequirements: true},
			`{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"annotations":{"penstock.dev/accept-requirements":"true"},"name":"b"},"spec":{"config":{"configType":"Inline","inline":{"deploymentConfig":{"nodeSelector":{"a":"b"}},"watchNamespace":"bay"}},` +
				`"namespace":"sea","source":{"catalog":{"packageName":"buoy"},"sourceType":"Catalog"}}}`},
	} {
		written, err := tc.request.Object()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != tc.want {
			t.Errorf("%s: %s, want %s", name, raw, tc.want)
		}
	}
}

// TestCheck: it refuses names that would change a path, or make a name too long.
func TestCheck(t *testing.T) {
	good := Request{Package: "buoy", Name: "buoy", Namespace: "sea"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for said, change := range map[string]func(*Request){
		`"B/../x" is no name of a package`:   func(r *Request) { r.Package = "B/../x" },
		`"" is no name of a namespace`:       func(r *Request) { r.Namespace = "" },
		`"<img>" is no name of an extension`: func(r *Request) { r.Name = "<img>" },
		"name one namespace to watch":        func(r *Request) { r.WatchNamespace, r.Config = "bay", map[string]any{"watchNamespace": "sea"} },
		"characters, at most":                func(r *Request) { r.Name = strings.Repeat("x", v1alpha1.MaxExtensionNameLength+1) },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%v, want %s", err, said)
		}
	}
}

// TestVersionPatch: the patch names the object that was read. A removed range is not left as an
// empty value.
func TestVersionPatch(t *testing.T) {
	const tests = `{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/generation","value":4},`
	for version, want := range map[string]string{
		"1.x": `[` + tests + `{"op":"add","path":"/spec/source/catalog/version","value":"1.x"}]`,
		"":    `[` + tests + `{"op":"add","path":"/spec/source/catalog/version","value":""},{"op":"remove","path":"/spec/source/catalog/version"}]`,
	} {
		got, err := VersionPatch("u", 4, version)
		if err != nil {
			t.Fatal(err)
		}
		var is, wanted []map[string]any
		if err := errors.Join(json.Unmarshal(got, &is), json.Unmarshal([]byte(want), &wanted)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(is, wanted) {
			t.Errorf("%q: %s, want %s", version, got, want)
		}
	}
}
