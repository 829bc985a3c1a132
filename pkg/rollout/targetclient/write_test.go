package targetclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func configMap(namespace, name string) manifest.Ref {
	return manifest.Ref{ID: manifest.ID{Kind: "ConfigMap", Namespace: namespace, Name: name}, Version: "v1"}
}

func namespace(name string) manifest.Ref {
	return manifest.Ref{ID: manifest.ID{Kind: "Namespace", Name: name}, Version: "v1"}
}

func TestApplySends(t *testing.T) {
	cases := map[string]struct {
		reason  string
		body    string
		options ApplyOptions
		want    string
		query   url.Values
	}{
		"CreateOnly": {
			reason:  "an impossible resourceVersion is what makes it create-only",
			body:    `{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"n":"<1>"}}`,
			options: ApplyOptions{FieldManager: "penstock/x", CreateOnly: true},
			want:    `{"data":{"n":"\u003c1\u003e"},"kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"1"}}`,
			query:   url.Values{"fieldManager": {"penstock/x"}, "force": {"true"}},
		},
		"Update": {
			reason:  "uid and resourceVersion of the judged object, whatever the manifest says",
			body:    `{"metadata":{"resourceVersion":"99","uid":"other"}}`,
			options: ApplyOptions{FieldManager: "penstock/x", UID: "u", ResourceVersion: "5"},
			want:    `{"metadata":{"resourceVersion":"5","uid":"u"}}`,
			query:   url.Values{"fieldManager": {"penstock/x"}, "force": {"true"}},
		},
		"Unforced": {
			reason:  "nothing is taken from anybody",
			body:    `{"metadata":{}}`,
			options: ApplyOptions{FieldManager: "penstock/x", UID: "u", ResourceVersion: "5", Unforced: true},
			want:    `{"metadata":{"resourceVersion":"5","uid":"u"}}`,
			query:   url.Values{"fieldManager": {"penstock/x"}, "force": {"false"}},
		},
		"DryRun": {
			reason:  "a dry-run is guarded like the write it stands for",
			body:    `{"metadata":null}`,
			options: ApplyOptions{FieldManager: "penstock/x", UID: "u", ResourceVersion: "5", DryRun: true},
			want:    `{"metadata":{"resourceVersion":"5","uid":"u"}}`,
			query:   url.Values{"fieldManager": {"penstock/x"}, "force": {"true"}, "dryRun": {"All"}},
		},
		"Escaped": {
			reason:  "the server reads the body of an apply as YAML, which has no such characters as they are, and for which one of them is a line break",
			body:    "{\"metadata\":{},\"data\":{\"\x7f\":\"\u0080\u0084\u0085\u009f\u00a0\u00ff\ufeff\ufffd\ufffe\uffff\U0001fffe\u2028\"}}",
			options: ApplyOptions{FieldManager: "penstock/x", UID: "u", ResourceVersion: "5"},
			want:    "{\"data\":{\"\\u007f\":\"\\u0080\\u0084\\u0085\\u009f\u00a0\u00ff\ufeff\ufffd\\ufffe\\uffff\U0001fffe\\u2028\"},\"metadata\":{\"resourceVersion\":\"5\",\"uid\":\"u\"}}",
			query:   url.Values{"fieldManager": {"penstock/x"}, "force": {"true"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
				reply(w, http.StatusOK, partial("a"))
			}}
			c := serve(t, server, clock.RealClock{}, 0)
			got, err := c.Apply(context.Background(), configMap("ns", "a"), []byte(tc.body), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			want := partial("a")
			want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("%s: result (-want +got):\n%s", tc.reason, diff)
			}
			sent := server.seen()
			if diff := cmp.Diff([]request{{http.MethodPatch, "/api/v1/namespaces/ns/configmaps/a", tc.query.Encode(), "application/apply-patch+yaml", tc.want}}, sent); diff != "" {
				t.Errorf("%s: requests (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReleaseSends(t *testing.T) {
	entry := func(manager string) metav1.ManagedFieldsEntry { return metav1.ManagedFieldsEntry{Manager: manager} }
	cases := map[string]struct {
		reason string
		have   []metav1.ManagedFieldsEntry
		want   string
	}{
		"others": {"their fields stay theirs", []metav1.ManagedFieldsEntry{entry("us"), entry("kubectl")}, `[{"manager":"kubectl"}]`},
		"alone":  {"the server would ignore an empty list", []metav1.ManagedFieldsEntry{entry("us")}, `[{}]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := partial("n")
			live.UID, live.ResourceVersion, live.ManagedFields = "u", "5", tc.have
			server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) { reply(w, http.StatusOK, live) }}
			c := serve(t, server, clock.RealClock{}, 0)
			marks := Marks{FieldManager: "us", Labels: []string{"l"}, Annotations: []string{"a", "b"}}
			if err := c.Release(context.Background(), namespace("n"), Precondition{UID: "u", ResourceVersion: "5"}, marks); err != nil {
				t.Fatal(err)
			}
			want := []request{
				{http.MethodGet, "/api/v1/namespaces/n", "", "", ""},
				{http.MethodPatch, "/api/v1/namespaces/n", "", "application/merge-patch+json",
					`{"metadata":{"annotations":{"a":null,"b":null},"labels":{"l":null},"managedFields":` + tc.want + `,"resourceVersion":"5","uid":"u"}}`},
			}
			if diff := cmp.Diff(want, server.seen()); diff != "" {
				t.Errorf("%s: the marks go in one guarded patch (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeleteSends(t *testing.T) {
	server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"})
	}}
	c := serve(t, server, clock.RealClock{}, 0)
	if err := c.Delete(context.Background(), namespace("n"), Precondition{UID: "u", ResourceVersion: "5"}); err != nil {
		t.Fatal(err)
	}
	want := []request{{http.MethodDelete, "/api/v1/namespaces/n", "", "application/json",
		`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"5"},"propagationPolicy":"Background"}` + "\n"}}
	if diff := cmp.Diff(want, server.seen()); diff != "" {
		t.Errorf("a delete carries both preconditions (-want +got):\n%s", diff)
	}
}

// TestRefusedBeforeSending: an invalid request is never sent to the server.
func TestRefusedBeforeSending(t *testing.T) {
	ctx := context.Background()
	apply := func(ref manifest.Ref, o ApplyOptions) func(*Client) error {
		return func(c *Client) error { _, err := c.Apply(ctx, ref, []byte(`{}`), o); return err }
	}
	unguarded := func(err error) bool { var target *UnguardedError; return errors.As(err, &target) }
	scope := func(err error) bool { var target *ScopeError; return errors.As(err, &target) }
	cases := map[string]struct {
		reason string
		do     func(*Client) error
		want   func(error) bool
	}{
		"ApplyWithoutManager":  {"fields would belong to nobody we know", apply(configMap("n", "a"), ApplyOptions{CreateOnly: true}), unguarded},
		"ApplyWithoutUID":      {"it could be another object of that name", apply(configMap("n", "a"), ApplyOptions{FieldManager: "m", ResourceVersion: "1"}), unguarded},
		"ApplyWithoutVersion":  {"it could have changed since it was judged", apply(configMap("n", "a"), ApplyOptions{FieldManager: "m", UID: "u"}), unguarded},
		"DryRunWithoutUID":     {"a dry-run has to predict the guarded write", apply(configMap("n", "a"), ApplyOptions{FieldManager: "m", DryRun: true}), unguarded},
		"DeleteWithoutUID":     {"as above", func(c *Client) error { return c.Delete(ctx, configMap("n", "a"), Precondition{ResourceVersion: "1"}) }, unguarded},
		"DeleteWithoutVersion": {"as above", func(c *Client) error { return c.Delete(ctx, configMap("n", "a"), Precondition{UID: "u"}) }, unguarded},
		"ReleaseWithoutUID": {"as above", func(c *Client) error {
			return c.Release(ctx, configMap("n", "a"), Precondition{ResourceVersion: "1"}, Marks{})
		}, unguarded},
		"NamespaceMissing":       {"the path would be one for the whole cluster", apply(configMap("", "a"), ApplyOptions{FieldManager: "m", CreateOnly: true}), scope},
		"NamespaceTooMuch":       {"the path would not exist", apply(manifest.Ref{ID: manifest.ID{Kind: "Namespace", Namespace: "x", Name: "y"}, Version: "v1"}, ApplyOptions{FieldManager: "m", CreateOnly: true}), scope},
		"DeleteNamespaceMissing": {"as above", func(c *Client) error { return c.Delete(ctx, configMap("", "a"), Precondition{"u", "1"}) }, scope},
		"ReadNamespaceMissing":   {"as above", func(c *Client) error { _, err := c.Read(ctx, configMap("", "a")); return err }, scope},
		"MetadataMissing":        {"as above", func(c *Client) error { _, err := c.ReadMetadata(ctx, configMap("", "a")); return err }, scope},
		"NotJSON": {"a manifest that cannot be read cannot be guarded", func(c *Client) error {
			_, err := c.Apply(ctx, configMap("n", "a"), []byte(`metadata: {}`), ApplyOptions{FieldManager: "m", CreateOnly: true})
			return err
		}, func(err error) bool { return err != nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &fakeServer{}
			err := tc.do(serve(t, server, clock.RealClock{}, 0))
			if !tc.want(err) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if diff := cmp.Diff([]request(nil), server.seen()); diff != "" {
				t.Errorf("%s: nothing may be sent (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestErrorsKeepTheirMeaning: callers can still recognise API statuses in wrapped errors.
func TestErrorsKeepTheirMeaning(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	cases := map[string]struct {
		reason string
		answer http.HandlerFunc
		want   []func(error) bool
		not    []func(error) bool
	}{
		"Conflict": {
			reason: "the object was not the one that was judged",
			answer: status(apierrors.NewConflict(kind, "a", errors.New("changed"))),
			want:   []func(error) bool{apierrors.IsConflict},
			not:    []func(error) bool{meta.IsNoMatchError},
		},
		"ObjectNotFound": {
			reason: "no such object, of a kind that is served",
			answer: status(apierrors.NewNotFound(kind, "a")),
			want:   []func(error) bool{apierrors.IsNotFound},
			not:    []func(error) bool{meta.IsNoMatchError},
		},
		"PathNotFound": {
			reason: "the kind went away since it was discovered; of the object that says nothing",
			answer: http.NotFound,
			want:   []func(error) bool{meta.IsNoMatchError},
			not:    []func(error) bool{apierrors.IsNotFound},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := serve(t, &fakeServer{answer: tc.answer}, clock.RealClock{}, 0)
			ctx := context.Background()
			_, apply := c.Apply(ctx, configMap("n", "a"), []byte(`{}`), ApplyOptions{FieldManager: "m", CreateOnly: true})
			c.Invalidate()
			remove := c.Delete(ctx, configMap("n", "a"), Precondition{"u", "1"})
			c.Invalidate()
			_, read := c.Read(ctx, configMap("n", "a"))
			c.Invalidate()
			_, metadata := c.ReadMetadata(ctx, configMap("n", "a"))
			for verb, err := range map[string]error{"apply": apply, "delete": remove, "read": read, "metadata": metadata} {
				for i, is := range tc.want {
					if !is(err) {
						t.Errorf("%s: %s: property %d does not hold of %v", tc.reason, verb, i, err)
					}
				}
				for i, is := range tc.not {
					if is(err) {
						t.Errorf("%s: %s: property %d must not hold of %v", tc.reason, verb, i, err)
					}
				}
			}
		})
	}
}

// TestMissingPathIsRemembered: a kind that is not served any more does not cost a request for each
// call.
func TestMissingPathIsRemembered(t *testing.T) {
	server := &fakeServer{}
	c := serve(t, server, clock.RealClock{}, 0)
	for range 3 {
		_, err := c.Apply(context.Background(), configMap("n", "a"), []byte(`{}`), ApplyOptions{FieldManager: "m", CreateOnly: true})
		if !meta.IsNoMatchError(err) {
			t.Errorf("want that the kind is not served, got %v", err)
		}
	}
	if sent := server.seen(); len(sent) != 1 {
		t.Errorf("want one attempt, then none: %v", sent)
	}
}

func status(err *apierrors.StatusError) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := err.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		reply(w, int(s.Code), s)
	}
}

func TestInstancesHonoursTheLimit(t *testing.T) {
	server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
			Items:    []metav1.PartialObjectMetadata{partial("a"), partial("b")},
		})
	}}
	c := serve(t, server, clock.RealClock{}, 0)
	got, err := c.Instances(context.Background(), configMap("", ""), 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Kind != "ConfigMap" {
		t.Errorf("a server may ignore limit=1, the caller must not be surprised: got %v", got)
	}
	if diff := cmp.Diff([]request{{http.MethodGet, "/api/v1/configmaps", "limit=1", "", ""}}, server.seen()); diff != "" {
		t.Errorf("one small list (-want +got):\n%s", diff)
	}
}
