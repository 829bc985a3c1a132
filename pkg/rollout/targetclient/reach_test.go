package targetclient

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// definition serves a kind Widget of example.com in configurable versions.
type definition struct {
	fakeServer
	// served versions, the preferred version first.
	served []string
	// broken versions answer discovery with a 500.
	broken []string
	// cluster is true for a kind without namespaces.
	cluster bool
	managed []metav1.ManagedFieldsEntry
	refusal string
}

func define(served ...string) *definition {
	d := &definition{served: served}
	d.answer = d.reply
	return d
}

func (d *definition) reply(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/apis/example.com")
	version, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case path == "" && len(d.served) > 0:
		group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: "example.com"}
		for _, name := range d.served {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: "example.com/" + name, Version: name})
		}
		group.PreferredVersion = group.Versions[0]
		reply(w, http.StatusOK, group)
	case slices.Contains(d.broken, version):
		reply(w, http.StatusInternalServerError, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "not now"})
	case !slices.Contains(d.served, version):
		http.NotFound(w, r)
	case rest == "":
		reply(w, http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "example.com/" + version,
			APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Namespaced: !d.cluster}}})
	case strings.HasPrefix(rest, "namespaces/") == d.cluster:
		http.NotFound(w, r)
	case d.refusal != "" && r.Header.Get("Content-Type") == "application/apply-patch+yaml":
		reply(w, http.StatusInternalServerError, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: d.refusal})
	default:
		live := partial("w")
		live.ManagedFields = d.managed
		reply(w, http.StatusOK, live)
	}
}

func (d *definition) client(t *testing.T) (*Client, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	return serve(t, &d.fakeServer, clk, 0), clk
}

func (d *definition) last() string {
	all := d.seen()
	for _, r := range slices.Backward(all) {
		if strings.HasSuffix(r.Path, "/widgets/w") {
			return r.Method + " " + strings.Split(r.Path, "/")[3]
		}
	}
	return ""
}

func widgetOf(version, namespace string) manifest.Ref {
	return manifest.Ref{ID: manifest.ID{Group: "example.com", Kind: "Widget", Namespace: namespace, Name: "w"}, Version: version}
}

// TestVersionOfARequest: a request without a manifest uses a served version, even if the manifest
// was written in another version. A request with a manifest uses only the version of the manifest.
func TestVersionOfARequest(t *testing.T) {
	guard := Precondition{UID: "u", ResourceVersion: "7"}
	requests := map[string]func(*testing.T, *Client, manifest.Ref) error{
		"GET": func(t *testing.T, c *Client, ref manifest.Ref) error {
			_, err := c.Read(t.Context(), ref)
			return err
		},
		"GET metadata": func(t *testing.T, c *Client, ref manifest.Ref) error {
			live, err := c.ReadMetadata(t.Context(), ref)
			if err == nil && live.APIVersion != "example.com/v1" {
				t.Errorf("it says that it was read in %s", live.APIVersion)
			}
			return err
		},
		"DELETE": func(t *testing.T, c *Client, ref manifest.Ref) error { return c.Delete(t.Context(), ref, guard) },
		"PATCH release": func(t *testing.T, c *Client, ref manifest.Ref) error {
			return c.Release(t.Context(), ref, guard, Marks{FieldManager: "m"})
		},
		"PATCH reassign": func(t *testing.T, c *Client, ref manifest.Ref) error {
			_, err := c.Reassign(t.Context(), ref, guard, nil)
			return err
		},
	}
	for name, request := range requests {
		method, _, _ := strings.Cut(name, " ")
		t.Run(name, func(t *testing.T) {
			t.Run("gone", func(t *testing.T) {
				d := define("v1")
				c, _ := d.client(t)
				if err := request(t, c, widgetOf("v1alpha1", "n")); err != nil || d.last() != method+" v1" {
					t.Errorf("sent was %q: %v", d.last(), err)
				}
			})
			t.Run("gone since", func(t *testing.T) {
				d := define("v1alpha1")
				c, _ := d.client(t)
				if _, err := c.Read(t.Context(), widgetOf("v1alpha1", "n")); err != nil {
					t.Fatal(err)
				}
				d.served = []string{"v1"}
				if err := request(t, c, widgetOf("v1alpha1", "n")); err != nil || d.last() != method+" v1" {
					t.Errorf("sent was %q: %v", d.last(), err)
				}
			})
			t.Run("all gone", func(t *testing.T) {
				c, _ := define().client(t)
				if err := request(t, c, widgetOf("v1alpha1", "n")); !meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
					t.Errorf("that no version is served says nothing of the object: %v", err)
				}
			})
			t.Run("not known", func(t *testing.T) {
				d := define("v1")
				d.broken = []string{"v1"}
				c, _ := d.client(t)
				var discovery *DiscoveryError
				if err := request(t, c, widgetOf("v1alpha1", "n")); meta.IsNoMatchError(err) || !errors.As(err, &discovery) {
					t.Errorf("a version that does not answer may serve it: %v", err)
				}
			})
		})
	}
	t.Run("own", func(t *testing.T) {
		d := define("v1", "v1alpha1")
		c, _ := d.client(t)
		if _, err := c.Read(t.Context(), widgetOf("v1alpha1", "n")); err != nil || d.last() != "GET v1alpha1" {
			t.Errorf("sent was %q: %v", d.last(), err)
		}
	})
	t.Run("apply", func(t *testing.T) {
		c, _ := define("v1").client(t)
		_, err := c.Apply(t.Context(), widgetOf("v1alpha1", "n"), []byte(`{}`), ApplyOptions{FieldManager: "m", CreateOnly: true})
		if !meta.IsNoMatchError(err) {
			t.Errorf("a manifest is of its version: %v", err)
		}
	})
	t.Run("back", func(t *testing.T) {
		d := define("v1")
		c, clk := d.client(t)
		if _, err := c.Read(t.Context(), widgetOf("v1alpha1", "n")); err != nil {
			t.Fatal(err)
		}
		d.served = []string{"v1alpha1"}
		clk.Step(unknownFor + time.Second)
		if _, err := c.Read(t.Context(), widgetOf("v1alpha1", "n")); err != nil || d.last() != "GET v1alpha1" {
			t.Errorf("sent was %q: %v", d.last(), err)
		}
	})
}

// TestScopeIsAskedAgain: a recreated definition may have another scope. A cached scope causes no
// refusal.
func TestScopeIsAskedAgain(t *testing.T) {
	for name, cluster := range map[string]bool{"to the cluster": true, "to namespaces": false} {
		t.Run(name, func(t *testing.T) {
			before, after := widgetOf("v1", "n"), widgetOf("v1", "")
			if !cluster {
				before, after = after, before
			}
			d := define("v1")
			d.cluster = !cluster
			c, _ := d.client(t)
			if _, err := c.Read(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			d.cluster = cluster
			if _, err := c.Apply(t.Context(), after, []byte(`{}`), ApplyOptions{FieldManager: "m", CreateOnly: true}); err != nil {
				t.Errorf("what fits the kind as it is now was refused: %v", err)
			}
		})
	}
}

// TestReassignMovesGoneVersions: no manager gets or loses a field when the version of an entry
// changes.
func TestReassignMovesGoneVersions(t *testing.T) {
	entry := func(manager, version, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	given := []metav1.ManagedFieldsEntry{
		entry("us", "example.com/v1alpha1", `{"f:a":{}}`), entry("both", "example.com/v1alpha1", `{"f:b":{}}`), entry("both", "example.com/v1", `{"f:c":{}}`),
		entry("still", "example.com/v1beta1", `{"f:d":{}}`), entry("other", "extensions/v1", `{"f:e":{}}`), entry("none", "", `{"f:f":{}}`),
	}
	want := []metav1.ManagedFieldsEntry{
		entry("us", "example.com/v1", `{"f:a":{}}`), entry("both", "example.com/v1", `{"f:b":{},"f:c":{}}`),
		entry("still", "example.com/v1beta1", `{"f:d":{}}`), entry("other", "extensions/v1", `{"f:e":{}}`), entry("none", "", `{"f:f":{}}`),
	}
	d := define("v1", "v1beta1", "v1alpha1")
	c, _ := d.client(t)
	// The first read caches the version.
	if _, err := c.Read(t.Context(), widgetOf("v1alpha1", "n")); err != nil {
		t.Fatal(err)
	}
	d.served = []string{"v1", "v1beta1"}
	if _, err := c.Reassign(t.Context(), widgetOf("v1", "n"), Precondition{"u", "7"}, given); err != nil {
		t.Fatal(err)
	}
	all := d.seen()
	var sent struct {
		Metadata struct{ ManagedFields []metav1.ManagedFieldsEntry }
	}
	if err := json.Unmarshal([]byte(all[len(all)-1].Body), &sent); err != nil {
		t.Fatal(err)
	}
	text := func(entries []metav1.ManagedFieldsEntry) string {
		raw, err := json.Marshal(entries)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if diff := cmp.Diff(text(want), text(sent.Metadata.ManagedFields)); diff != "" {
		t.Errorf("managedFields (-want +got):\n%s", diff)
	}

	// If discovery fails, nothing is written.
	d.broken = []string{"v1beta1"}
	before := len(d.seen())
	_, err := c.Reassign(t.Context(), widgetOf("v1", "n"), Precondition{"u", "7"}, given)
	var discovery *DiscoveryError
	if !errors.As(err, &discovery) {
		t.Errorf("got %v", err)
	}
	for _, r := range d.seen()[before:] {
		if r.Method == http.MethodPatch {
			t.Errorf("it was written all the same: %v", r)
		}
	}
}

// TestGoneVersionIsRecognised: only the server's exact message is recognised.
func TestGoneVersionIsRecognised(t *testing.T) {
	for message, want := range map[string]bool{
		"request to convert CR to an invalid group/version: example.com/v1alpha1":           true,
		"request to convert CR to an invalid group/version: example.org/v1alpha1":           false,
		"request to convert CR to an invalid group/version: example.com/v1alpha1 (hunter2)": false,
		"request to convert CR from an invalid group/version: example.com/v1alpha1":         false,
		"conversion webhook for example.com/v1, Kind=Widget failed":                         false,
	} {
		d := define("v1")
		d.refusal = message
		c, _ := d.client(t)
		_, err := c.Apply(t.Context(), widgetOf("v1", "n"), []byte(`{}`), ApplyOptions{FieldManager: "m", UID: "u", ResourceVersion: "7"})
		var gone *VersionGoneError
		if errors.As(err, &gone) != want || err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%q: %v", message, err)
		}
	}
}
