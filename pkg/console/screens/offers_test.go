package screens

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/client/install"
	"github.com/penstock-project/penstock/pkg/client/overview"
)

// TestCatalogRow: a catalog that could not be fetched again needs attention, even while its content
// is served.
func TestCatalogRow(t *testing.T) {
	ref := &clustercatalog.Content{Ref: "r.example/c@sha256:1", Base: "https://x", Unpacked: time.Unix(1000, 0)}
	for name, tc := range map[string]struct {
		reason  string
		mode    string
		outcome *clustercatalog.Outcome
		signal  Signal
		state   string
		says    string
	}{
		"new":     {"nobody has looked at it", "", nil, InProgress, "Pending", ""},
		"serving": {"", "", &clustercatalog.Outcome{Content: ref, Tried: true}, Healthy, "Serving", ""},
		"never":   {"there is no content at all", "", &clustercatalog.Outcome{Err: io.ErrUnexpectedEOF, Tried: true}, NeedsAttention, "Retrying", "unexpected EOF"},
		"old":     {"what is served is of earlier", "", &clustercatalog.Outcome{Content: ref, Err: io.ErrUnexpectedEOF, Tried: true}, NeedsAttention, "Retrying", "unexpected EOF"},
		"blocked": {"to wait does not help", "", &clustercatalog.Outcome{Err: io.ErrUnexpectedEOF, Blocked: true, Tried: true}, NeedsAttention, "Blocked", "unexpected EOF"},
		"off":     {"somebody wants that", clustercatalog.Unavailable, nil, Stopped, "Off", ""},
	} {
		read := &clustercatalog.Catalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: clustercatalog.Spec{AvailabilityMode: tc.mode}}
		if tc.outcome != nil {
			read.Status = clustercatalog.Next(read, *tc.outcome, time.Unix(2000, 0))
		}
		row := catalogRow(read)
		if row.Signal != tc.signal || row.State != tc.state || !strings.Contains(row.Message, tc.says) || tc.says == "" && row.Message != "" {
			t.Errorf("%s (%s): %+v", name, tc.reason, row)
		}
	}
}

func lighthouse() *catalogv1alpha1.CatalogPackage {
	return &catalogv1alpha1.CatalogPackage{
		TypeMeta: metav1.TypeMeta{APIVersion: "catalog.penstock.dev/v1alpha1", Kind: "CatalogPackage"}, ObjectMeta: metav1.ObjectMeta{Name: "lighthouse"}, Latest: "1.2.0", DefaultChannel: "stable",
		Channels:  []catalogv1alpha1.PackageChannel{{Name: "candidate", Latest: "1.2.0"}, {Name: "stable", Latest: "1.1.0"}},
		Versions:  []catalogv1alpha1.PackageVersion{{Version: "1.2.0"}, {Version: "1.1.0"}, {Version: "1.0.0", Unsupported: "it has dependencies", Deprecation: &catalogv1alpha1.Deprecation{Message: "too old"}}},
		Installed: []catalogv1alpha1.InstalledVersion{{Extension: "other", Version: "1.0.0"}, {Extension: "third", Version: "1.0.0"}},
	}
}

// TestLeadsTo: the version for a request is shown only if the package determines it.
func TestLeadsTo(t *testing.T) {
	for want, request := range map[string]install.Request{
		"1.2.0": {}, "1.1.0": {Channels: []string{"stable"}}, "1.0.0": {Version: "1.0.0"}, "": {Version: "1.x"},
	} {
		if got := request.LeadsTo(lighthouse()); got != want {
			t.Errorf("%+v: %q, want %q", request, got, want)
		}
	}
	if row := packageRow(lighthouse()); row.Installed != "1.0.0 as other, 1.0.0 as third" || row.Latest != "1.1.0" || row.Elsewhere != "1.2.0 in candidate" || !row.Named {
		t.Errorf("row: %+v", row)
	}
	odd := lighthouse()
	odd.Name = `<b>"Trap`
	if packageRow(odd).Named {
		t.Errorf("an extension can ask for %s", odd.Name)
	}
}

// offering is a cluster with one package that takes extensions.
type offering struct {
	*httptest.Server
	// created are the queries that created extensions. patched are the queries that changed their
	// version range.
	created, patched []string
	installed        []catalogv1alpha1.InstalledVersion
	// leads maps a version range to the version that it selects.
	leads map[string]string
}

func newOffering(t *testing.T) (*offering, http.Handler) {
	t.Helper()
	o := &offering{leads: map[string]string{"1.x": "1.2.0"}, installed: lighthouse().Installed}
	mux := http.NewServeMux()
	send := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	mux.HandleFunc("GET /apis/catalog.penstock.dev/v1alpha1/catalogpackages/lighthouse", func(w http.ResponseWriter, _ *http.Request) {
		offered := lighthouse()
		offered.Installed = o.installed
		send(w, offered)
	})
	mux.HandleFunc("GET /apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions", func(w http.ResponseWriter, r *http.Request) {
		list := v1alpha1.ClusterExtensionRevisionList{TypeMeta: metav1.TypeMeta{APIVersion: "olm.operatorframework.io/v1alpha1", Kind: "ClusterExtensionRevisionList"}}
		if r.URL.Query().Get("labelSelector") == v1alpha1.ChainLabel+"=taken" {
			one := testRevision("taken", 7, v1alpha1.LifecycleStateActive, well()...)
			one.Labels = map[string]string{v1alpha1.ChainLabel: "taken"}
			list.Items = append(list.Items, one)
		}
		send(w, list)
	})
	mux.HandleFunc("GET /apis/catalog.penstock.dev/v1alpha1/catalogpackages", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 penstock "catalog far cannot be read"`)
		send(w, catalogv1alpha1.CatalogPackageList{TypeMeta: metav1.TypeMeta{APIVersion: "catalog.penstock.dev/v1alpha1", Kind: "CatalogPackageList"}, Items: []catalogv1alpha1.CatalogPackage{*lighthouse()}})
	})
	mux.HandleFunc("GET /apis/catalog.penstock.dev/v1alpha1/catalogpackages/lighthouse/upgrades", func(w http.ResponseWriter, r *http.Request) {
		row := catalogv1alpha1.ExtensionUpgrades{Extension: "light", Installed: "1.0.0", Allowed: o.leads[r.URL.Query().Get("version")], Approval: "Manual"}
		send(w, catalogv1alpha1.CatalogPackageUpgrades{TypeMeta: metav1.TypeMeta{APIVersion: "catalog.penstock.dev/v1alpha1", Kind: "CatalogPackageUpgrades"}, Extensions: []catalogv1alpha1.ExtensionUpgrades{{Extension: "other", Allowed: "0.1.0"}, row}})
	})
	const light = `{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"light","uid":"u","generation":3},"spec":{"namespace":"sea","source":{"sourceType":"Catalog","catalog":{"packageName":"lighthouse","version":"1.0.0"}}}}`
	mux.HandleFunc("GET /apis/olm.operatorframework.io/v1/clusterextensions/light", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, light)
	})
	mux.HandleFunc("PATCH /apis/olm.operatorframework.io/v1/clusterextensions/light", func(w http.ResponseWriter, r *http.Request) {
		patch, _ := io.ReadAll(r.Body)
		o.patched = append(o.patched, r.URL.Query().Get("dryRun")+" "+r.Header.Get("Content-Type")+" "+string(patch))
		w.Header().Add("Warning", `299 penstock "you become its author"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, light)
	})
	mux.HandleFunc("POST /apis/olm.operatorframework.io/v1/clusterextensions", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"name":"exists"`) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409,"message":"it exists"}`)
			return
		}
		o.created = append(o.created, r.URL.Query().Get("dryRun"))
		w.Header().Add("Warning", `299 penstock "you become its author"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": false}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"%s"}`, r.URL.Path)
	})
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	api, err := New(Options{Config: &rest.Config{Host: o.URL}})
	if err != nil {
		t.Fatal(err)
	}
	return o, api.Handler()
}

func ask(t *testing.T, handler http.Handler, method, path, body string, into any) int {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(method, path, strings.NewReader(body)))
	if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
		t.Fatalf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	}
	return answer.Code
}

// TestInstall: a dry run writes nothing and returns the notes. A package that changed since is not
// installed.
func TestInstall(t *testing.T) {
	cluster, handler := newOffering(t)
	var offered Packages
	if code := ask(t, handler, "GET", "/api/packages", "", &offered); code != http.StatusOK || len(offered.Packages) != 1 || !cmp.Equal(offered.Warnings, []string{"catalog far cannot be read"}) ||
		offered.Hidden == nil || offered.Hidden.Status != http.StatusNotFound {
		t.Errorf("packages: %d %+v", code, offered)
	}
	const path = "/api/packages/lighthouse/install"
	var would Installation
	if code := ask(t, handler, "POST", path, `{"latest":"1.2.0","name":"light","namespace":"sea","version":"1.0.0","dryRun":true}`, &would); code != http.StatusOK {
		t.Fatal(code)
	}
	said := strings.Join(append(would.Notes, would.Warnings...), "\n")
	for _, want := range []string{"1.0.0 should not be used: too old", "there is no namespace sea", "you lack the right: create clusterextensionrevisions.olm.operatorframework.io", "you become its author"} {
		if !strings.Contains(said, want) {
			t.Errorf("it is not said that %s:\n%s", want, said)
		}
	}
	if !strings.Contains(would.Refused, "1.0.0 is installed already, as other") || would.Free != "" {
		t.Errorf("what is refused is said: %+v", would)
	}
	if !strings.Contains(would.Written, "penstock.dev/upgrade-approval: Manual") || would.Version != "1.0.0" {
		t.Errorf("%+v", would)
	}
	if code := ask(t, handler, "POST", path, `{"latest":"1.2.0","name":"light","namespace":"sea","atOnce":true}`, &would); code != http.StatusOK || strings.Contains(would.Written, "Manual") {
		t.Errorf("at once: %d %s", code, would.Written)
	}
	// The install screen no longer shows installed packages.
	cluster.installed = nil
	would = Installation{}
	ask(t, handler, "POST", path, `{"latest":"1.2.0","name":"taken","namespace":"sea","dryRun":true}`, &would)
	if !strings.HasPrefix(would.Refused, "taken-7 exists already") || would.Free != "lighthouse-sea" || !strings.Contains(strings.Join(would.Notes, "\n"), "1.2.0 is the highest version of any channel; the default channel stable has 1.1.0") {
		t.Errorf("a name that revisions have: %+v", would)
	}
	would = Installation{}
	if ask(t, handler, "POST", path, `{"latest":"1.2.0","name":"taken","namespace":"sea","channel":"stable","atOnce":true,"dryRun":true}`, &would); would.Refused != "" || would.Version != "1.1.0" || strings.Contains(strings.Join(would.Notes, "\n"), "any channel") {
		t.Errorf("at once, from the default channel: %+v", would)
	}
	var refusal Refusal
	if code := ask(t, handler, "POST", path, `{"latest":"1.2.0","name":"exists","namespace":"sea","dryRun":true}`, &refusal); code != http.StatusConflict || refusal.Reason != "AlreadyExists" || !strings.HasSuffix(refusal.Message, "use another name; lighthouse-sea is free") {
		t.Errorf("a name that an extension has: %d %+v", code, refusal)
	}
	if code := ask(t, handler, "POST", path, `{"latest":"1.1.0","name":"light","namespace":"sea"}`, &refusal); code != http.StatusConflict || refusal.Reason != ReasonChanged {
		t.Errorf("with another latest version: %d %+v", code, refusal)
	}
	if !cmp.Equal(cluster.created, []string{"All", "", "All", "All"}) {
		t.Errorf("extensions were created with dryRun %q", cluster.created)
	}
}

// TestPlanOptions: options get the types of the profile's fields.
func TestPlanOptions(t *testing.T) {
	options := []hcov1alpha1.ProfileOption{{Name: "size", Type: "integer"}, {Name: "limits.total", Type: "string"}, {Name: "on", Type: "boolean"}}
	profile := &hcov1alpha1.ConfigurationProfile{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Options: options}
	made, err := MakePlanRequest{Options: map[string]string{"size": "4", "limits.total": "5", "on": "true"}}.options(profile)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(made.Values.Raw), `{"limits":{"total":"5"},"on":true,"size":4}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if made, err := (MakePlanRequest{}).options(profile); made != nil || err != nil {
		t.Errorf("without options: %+v %v", made, err)
	}
	for given, want := range map[string]string{"size": `"x" is not JSON`, "other": `no option "other"`} {
		if _, err := (MakePlanRequest{Options: map[string]string{given: "x"}}).options(profile); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

// TestBy: a proposal shows the user who approved it, or else the user who requested it.
func TestBy(t *testing.T) {
	revision := testRevision("shop", 1, v1alpha1.LifecycleStateActive, well()...)
	revision.Status.RequestedBy = &v1alpha1.Requester{Username: "system:apiserver"}
	for want, annotations := range map[string]map[string]string{"system:apiserver": nil, "anna": {v1alpha1.ApprovedByAnnotation: "anna"}} {
		revision.Annotations = annotations
		if got := revisionOf(overview.Of([]*v1alpha1.ClusterExtensionRevision{&revision})[0], &revision).By; got != want {
			t.Errorf("by %q, want %q", got, want)
		}
	}
}

// TestWithoutSecrets: only the values of Secrets are left out.
func TestWithoutSecrets(t *testing.T) {
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "c2VjcmV0"}, "stringData": map[string]any{"b": "secret"}, "type": "Opaque"}
	want := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "hidden"}, "stringData": map[string]any{"b": "hidden"}, "type": "Opaque"}
	if !withoutSecrets(secret) || !cmp.Equal(secret, want) {
		t.Errorf("%v", secret)
	}
	config := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}
	if withoutSecrets(config) || config["data"].(map[string]any)["a"] != "b" {
		t.Errorf("%v", config)
	}
}
