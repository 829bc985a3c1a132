package olm_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/store"
)

// TestUnreadable: lists and watches show an unreadable record as such. It blocks only its own
// chain, and can be archived.
func TestUnreadable(t *testing.T) {
	s := newServer(t, settings{})
	for _, name := range []string{"good-1", "bad-1", "large-1"} {
		s.create(file(name, inline(configMap(name, "1")))).want(t, http.StatusCreated)
	}
	key := func(name string) string {
		found, err := s.etcd.Get(t.Context(), prefix, clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range found.Kvs {
			if strings.HasSuffix(string(record.Key), "clusterextensionrevisions/"+name) {
				return string(record.Key)
			}
		}
		t.Fatalf("%s has no record", name)
		return ""
	}
	put := func(name, value string) {
		t.Helper()
		if _, err := s.etcd.Put(t.Context(), key(name), value); err != nil {
			t.Fatal(err)
		}
	}
	// The record was stored before the limit existed: it is readable, and updates must make it
	// smaller.
	large := fmt.Sprintf(`{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"large-1","uid":"u","labels":{"penstock.dev/chain":"large"},"annotations":{"a":%q}},"spec":{"revision":1,"lifecycleState":"Active","teardownPolicy":"Delete","onFailure":"None","collisionProtection":"Prevent"}}`,
		strings.Repeat("x", 2*store.MaxObjectBytes))
	frame, err := store.Compress([]byte(large))
	if err != nil {
		t.Fatal(err)
	}
	put("large-1", "PKO\x01"+string(frame))
	put("bad-1", "PKO\x01garbage")

	for _, query := range []string{"", "?resourceVersion=0", "?limit=2"} {
		t.Run("List"+query, func(t *testing.T) {
			eventuallyListed(t, s, query)
		})
	}
	t.Run("OneObject", func(t *testing.T) {
		for what, answer := range map[string]response{
			"get":       s.do(call{method: http.MethodGet, path: revisions + "/bad-1"}),
			"get cache": s.do(call{method: http.MethodGet, path: revisions + "/bad-1?resourceVersion=0"}),
			"patch":     s.patch("bad-1", mergePatch, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}}),
			"apply":     s.apply("kubectl", file("bad-1", inline(configMap("bad-1", "1")))),
			"delete":    s.do(call{method: http.MethodDelete, path: revisions + "/bad-1"}),
			"next":      s.create(file("bad-2", inline(configMap("b", "1")))),
		} {
			if answer.code != http.StatusInternalServerError || !strings.Contains(answer.raw, "StorageReadError") || !strings.Contains(answer.raw, "PenstockStoreUnreadable") {
				t.Errorf("%s: got %d: %s", what, answer.code, answer.raw)
			}
		}
	})
	t.Run("Others", func(t *testing.T) {
		s.create(file("good-2", inline(configMap("good-1", "2")))).want(t, http.StatusCreated)
		s.patch("good-1", mergePatch, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}}).want(t, http.StatusOK)
	})
	t.Run("StoredBefore", func(t *testing.T) {
		s.do(call{method: http.MethodGet, path: revisions + "/large-1"}).want(t, http.StatusOK)
		s.patch("large-1", mergePatch, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}).want(t, http.StatusUnprocessableEntity)
		s.patch("large-1", mergePatch, map[string]any{"metadata": map[string]any{"annotations": nil}}).want(t, http.StatusOK)
		s.patch("large-1", mergePatch, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}).want(t, http.StatusOK)
	})
	t.Run("GiveUp", func(t *testing.T) {
		const unsafe = "?ignoreStoreReadErrorWithClusterBreakingPotential=true"
		refused := s.do(call{method: http.MethodDelete, path: revisions + "/good-1" + unsafe})
		if refused.code == http.StatusOK {
			t.Error("what can be read was given up")
		}
		s.do(call{method: http.MethodDelete, path: revisions + "/bad-1" + unsafe}).want(t, http.StatusOK)
		s.do(call{method: http.MethodGet, path: revisions + "/bad-1"}).want(t, http.StatusNotFound)
		s.create(file("bad-2", inline(configMap("b", "1")))).want(t, http.StatusCreated)
	})
}

// TestMisplaced: a record under the key of another object, or of another kind, is not a record of
// that object. Otherwise the content of a copied revision would be rolled out twice.
func TestMisplaced(t *testing.T) {
	s := newServer(t, settings{})
	for _, name := range []string{"good-1", "bad-1", "kind-1"} {
		s.create(file(name, inline(configMap(name, "1")))).want(t, http.StatusCreated)
	}
	records := map[string]string{}
	found, err := s.etcd.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range found.Kvs {
		if _, name, ok := strings.Cut(string(record.Key), "clusterextensionrevisions/"); ok {
			records[name] = string(record.Key)
		}
	}
	good, err := s.etcd.Get(t.Context(), records["good-1"])
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"bad-1":  string(good.Kvs[0].Value),
		"kind-1": `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"RevisionRollback","metadata":{"name":"kind-1"}}`,
	} {
		if _, err := s.etcd.Put(t.Context(), records[name], value); err != nil {
			t.Fatal(err)
		}
	}
	eventuallyListed(t, s, "")
	eventuallyListed(t, s, "?resourceVersion=0")
	for name, says := range map[string]string{"bad-1": "it is the record of good-1", "kind-1": "RevisionRollback"} {
		for what, answer := range map[string]response{
			"get":    s.do(call{method: http.MethodGet, path: revisions + "/" + name}),
			"cache":  s.do(call{method: http.MethodGet, path: revisions + "/" + name + "?resourceVersion=0"}),
			"patch":  s.patch(name, mergePatch, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}}),
			"delete": s.do(call{method: http.MethodDelete, path: revisions + "/" + name}),
			"next":   s.create(file(strings.Replace(name, "-1", "-2", 1), inline(configMap("b", "1")))),
		} {
			if answer.code != http.StatusInternalServerError || !strings.Contains(answer.raw, "StorageReadError") || !strings.Contains(answer.raw, says) {
				t.Errorf("%s of %s: got %d: %s", what, name, answer.code, answer.raw)
			}
		}
		s.do(call{method: http.MethodDelete, path: revisions + "/" + name + "?ignoreStoreReadErrorWithClusterBreakingPotential=true"}).want(t, http.StatusOK)
		s.do(call{method: http.MethodGet, path: revisions + "/" + name}).want(t, http.StatusNotFound)
	}
	s.patch("good-1", mergePatch, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}}).want(t, http.StatusOK)
}

func eventuallyListed(t *testing.T, s *server, query string) {
	t.Helper()
	var answer response
	for range 100 {
		answer = s.do(call{method: http.MethodGet, path: revisions + query}).want(t, http.StatusOK)
		if strings.Contains(answer.raw, `"reason":"Unreadable"`) {
			break
		}
	}
	for _, want := range []string{`"name":"bad-1"`, `"penstock.dev/unreadable":"`, `"penstock.dev/chain":"bad"`, `"uid":"unreadable-`} {
		if !strings.Contains(answer.raw, want) {
			t.Errorf("the list does not have %s: %.2000s", want, answer.raw)
		}
	}
}

// TestRecordsAreBounded: a record that would be unreadable, or take too much memory in lists, is
// refused and not stored.
func TestRecordsAreBounded(t *testing.T) {
	s := newServer(t, settings{maxBodyBytes: 64 << 20})
	s.create(file("owned-1", inline(configMap("owned-1", "1")))).want(t, http.StatusCreated)
	meta := func(name string, members map[string]any) map[string]any {
		body := file(name, nil)
		for field, value := range members {
			body = with(body, value, "metadata", field)
		}
		return body
	}
	owner := func(uid string) any {
		return []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid}}
	}
	labels := map[string]any{}
	for i := range 60_000 {
		labels[fmt.Sprintf("example.com/%0200d", i)] = strings.Repeat("v", 63)
	}
	finalizers := make([]any, 125_000)
	for i := range finalizers {
		finalizers[i] = fmt.Sprintf("example.com/f%d", i)
	}
	for name, tc := range map[string]struct {
		send func() response
		code int
		says string
	}{
		"OwnerUID": {func() response {
			return s.create(meta("a-1", map[string]any{"ownerReferences": owner(strings.Repeat("<", 5_600_000))}))
		}, 413, "metadata has"},
		"SmallerUID": {func() response {
			return s.create(meta("a-1", map[string]any{"ownerReferences": owner(strings.Repeat("u", 200))}))
		}, 422, "metadata.ownerReferences[0].uid"},
		"Labels": {func() response { return s.create(meta("a-1", map[string]any{"labels": labels})) }, 413, "metadata has"},
		"Finalizers": {func() response {
			return s.patch("owned-1", mergePatch, map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
		}, 422, "metadata.finalizers"},
		"SomeLess": {func() response {
			return s.patch("owned-1", mergePatch, map[string]any{"metadata": map[string]any{"finalizers": finalizers[:200]}})
		}, 422, "metadata.finalizers"},
		"Applied": {func() response {
			return s.apply("someone", map[string]any{"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision", "metadata": map[string]any{"name": "owned-1", "finalizers": finalizers[:200]}})
		}, 422, "metadata.finalizers"},
		"ManagedBeforeTheFirstYear": {func() response {
			return s.patch("owned-1", mergePatch, managedAt("0000-01-01T00:00:00+23:59"))
		}, 422, "].time: Invalid value"},
		"ManagedAfterTheLastYear": {func() response {
			return s.patch("owned-1", mergePatch, managedAt("9999-12-31T23:59:59-23:59"))
		}, 422, "].time: Invalid value"},
		"Subresource": {func() response {
			return s.do(call{method: http.MethodPost, path: revisions + "/owned-1/rollback", body: map[string]any{"x": strings.Repeat("y", 3<<20)}})
		}, 413, "the body of this request"},
	} {
		t.Run(name, func(t *testing.T) {
			s.unchanged(func() {
				if answer := tc.send().want(t, tc.code); !strings.Contains(answer.raw, tc.says) || len(answer.raw) > 10_000 {
					t.Errorf("the answer does not say %q: %.1000s", tc.says, answer.raw)
				}
			})
		})
	}
}

// managedAt returns a patch with an entry of managedFields and another change: a changed time alone
// is no change.
func managedAt(time string) map[string]any {
	entry := map[string]any{
		"manager": "x", "operation": "Update", "apiVersion": "olm.operatorframework.io/v1alpha1", "time": time,
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{"f:penstock.dev/chain": map[string]any{}}}},
	}
	return map[string]any{"metadata": map[string]any{"managedFields": []any{entry}, "annotations": map[string]any{"x": time}}}
}
