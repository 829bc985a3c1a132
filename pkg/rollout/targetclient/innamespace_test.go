package targetclient

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// TestInNamespace: each important kind is listed once. Custom resources are listed only if a
// CustomResourceDefinition defines them. Kinds that every namespace has are listed by label.
func TestInNamespace(t *testing.T) {
	list := func(names ...string) metav1.PartialObjectMetadataList {
		out := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for _, name := range names {
			out.Items = append(out.Items, partial(name))
		}
		return out
	}
	resources := func(version string, names ...string) metav1.APIResourceList {
		out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version}
		for _, name := range names {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: name, Kind: strings.ToUpper(name), Namespaced: name != "worlds", Verbs: []string{"list"}})
		}
		return out
	}
	group := func(name, version string) metav1.APIGroup {
		v := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
	}
	server := &fakeServer{answer: func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/api":
			reply(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}, Versions: []string{"v1"}})
		case path == "/apis":
			reply(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"},
				Groups: []metav1.APIGroup{group("example.com", "v1"), group("shown.example.com", "v1"), group("away.example.com", "v1")}})
		case path == "/apis/example.com/v1":
			reply(w, http.StatusOK, resources("example.com/v1", "widgets", "worlds", "going"))
		case path == "/apis/shown.example.com/v1":
			reply(w, http.StatusOK, resources("shown.example.com/v1", "manifests"))
		case path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
			reply(w, http.StatusOK, list("widgets.example.com", "worlds.example.com", "going.example.com"))
		case path == "/apis/away.example.com/v1" || strings.HasSuffix(path, "/going"):
			http.NotFound(w, r)
		case strings.HasSuffix(path, "/widgets"), strings.HasSuffix(path, "/deployments"):
			reply(w, http.StatusOK, list("mine"))
		default:
			reply(w, http.StatusOK, list())
		}
	}}
	c := serve(t, server, clock.RealClock{}, 0)
	found, err := c.InNamespace(t.Context(), "n", "penstock.dev/chain")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range found {
		got = append(got, found[i].APIVersion+" "+found[i].Kind+" "+found[i].Name)
	}
	if want := []string{"apps/v1 Deployment mine", "example.com/v1 WIDGETS mine"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	lists := 0
	for _, r := range server.seen() {
		if !strings.Contains(r.Path, "/namespaces/n/") {
			continue
		}
		lists++
		if marked := strings.Contains(r.Query, "labelSelector=penstock.dev%2Fchain"); marked != (strings.HasSuffix(r.Path, "maps") || slices.ContainsFunc([]string{"secrets", "services", "serviceaccounts", "roles", "rolebindings", "ingresses", "networkpolicies"}, func(name string) bool { return strings.HasSuffix(r.Path, "/"+name) })) {
			t.Errorf("%s?%s", r.Path, r.Query)
		}
		if strings.HasSuffix(r.Path, "/manifests") || strings.HasSuffix(r.Path, "/worlds") {
			t.Errorf("it is no custom resource in a namespace: %s", r.Path)
		}
	}
	if lists != 15 {
		t.Errorf("%d lists, want 13 and 2 of custom resources", lists)
	}
}
