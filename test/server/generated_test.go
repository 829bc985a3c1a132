//go:build integration

package server_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
)

// generatedClients compares the requests of the generated clients with the served resources. The
// generator derives plurals by its own rules. A subresource without a generated method must be
// requested by hand.
func generatedClients(t *testing.T, w servedHost) {
	served, err := servedResources(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(served, requestedResources(t)); diff != "" {
		t.Errorf("resources that are served (-) and that the generated clients request (+):\n%s", diff)
	}
}

// aggregatedDiscovery: clients of Kubernetes 1.37 read only aggregated discovery v2. Penstock
// serves it to the host and to users, with every resource.
func aggregatedDiscovery(t *testing.T, w servedHost) {
	want, err := servedResources(w.Config())
	if err != nil {
		t.Fatal(err)
	}
	for reader, config := range map[string]*rest.Config{"from the host": w.Config(), "from Penstock": w.server.Loopback()} {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Discovery().RESTClient().Get().AbsPath("/apis").SetHeader("Accept", discovery.AcceptV2).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all apidiscovery.APIGroupDiscoveryList
		if err := json.Unmarshal(answer, &all); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, group := range all.Items {
			for _, version := range group.Versions {
				if version.Version != "v1alpha1" || !slices.Contains([]string{olm.GroupName, hco.GroupName, v1alpha1.GroupName}, group.Name) {
					continue
				}
				for _, resource := range version.Resources {
					got = append(got, group.Name+"/"+resource.Resource)
					for _, sub := range resource.Subresources {
						got = append(got, group.Name+"/"+resource.Resource+"/"+sub.Subresource)
					}
				}
			}
		}
		slices.Sort(got)
		got = slices.DeleteFunc(got, func(name string) bool { return strings.HasSuffix(name, "revisionhistories/import") })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("aggregated discovery %s (-resources of each version, +aggregated):\n%s", reader, diff)
		}
	}
}

// compressedWatchList: since Kubernetes 1.37, clients can get the initial events of a watch
// compressed. The end of these events must not wait for further events.
func compressedWatchList(t *testing.T, w servedHost) {
	config := w.server.Loopback()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	const query = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/apis/"+olm.GroupName+"/v1alpha1/clusterextensionrevisions"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Set by hand, because Go's client would decompress an answer that it asked for itself.
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if encoding := response.Header.Get("Content-Encoding"); encoding != "gzip" {
		t.Fatalf("%s, encoding %q, want gzip", response.Status, encoding)
	}
	plain, err := gzip.NewReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	events := json.NewDecoder(plain)
	for {
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		if err := events.Decode(&event); err != nil {
			t.Fatalf("before the initial events ended: %v", err)
		}
		if event.Type == "BOOKMARK" && event.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			return
		}
	}
}

// servedResources lists the resources and subresources of our groups, as
// "group/resource".
func servedResources(config *rest.Config) ([]string, error) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, group := range []string{olm.GroupName, hco.GroupName, v1alpha1.GroupName} {
		list, err := discoverer.ServerResourcesForGroupVersion(group + "/v1alpha1")
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			// An archive is a stream, which no generated method sends.
			if resource.Name != "revisionhistories/import" {
				found = append(found, group+"/"+resource.Name)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// requestedResources calls every method of every generated client, and returns the resources of the
// requested paths.
func requestedResources(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	config := &rest.Config{Host: "http://127.0.0.1", Transport: pathRecorder(func(path string) {
		// /apis/<group>/v1alpha1/<resource>[/<name>[/<subresource>]]
		parts := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
		resource := parts[0] + "/" + parts[2]
		if len(parts) > 4 {
			resource += "/" + parts[4]
		}
		seen[resource] = true
	})}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []any{clients.OlmV1alpha1(), clients.HcoV1alpha1(), clients.CatalogV1alpha1()} {
		for resource := range methods(reflect.ValueOf(group)) {
			if resource.Type().NumIn() > 0 {
				continue // not a getter of a client
			}
			returned := resource.Call(nil)[0]
			if !strings.HasSuffix(returned.Type().String(), "Interface") || returned.Type().String() == "rest.Interface" {
				continue
			}
			for method := range methods(returned) {
				callEmpty(t.Context(), method)
			}
		}
	}
	var found []string
	for resource := range seen {
		found = append(found, resource)
	}
	slices.Sort(found)
	return found
}

// methods yields the bound methods of a value. For an interface it yields only the interface's
// methods, not the other methods of the dynamic value.
func methods(value reflect.Value) func(yield func(reflect.Value) bool) {
	return func(yield func(reflect.Value) bool) {
		for i := range value.NumMethod() {
			if !yield(value.Method(i)) {
				return
			}
		}
	}
}

// callEmpty calls a method of a client for an object named "x", with empty bodies.
func callEmpty(ctx context.Context, method reflect.Value) {
	var in []reflect.Value
	for i := range method.Type().NumIn() {
		kind := method.Type().In(i)
		switch {
		case method.Type().IsVariadic() && i == method.Type().NumIn()-1:
			continue
		case kind == reflect.TypeFor[context.Context]():
			in = append(in, reflect.ValueOf(ctx))
		case kind.Kind() == reflect.String:
			in = append(in, reflect.ValueOf("x").Convert(kind))
		case kind.Kind() == reflect.Pointer:
			in = append(in, named(kind.Elem()))
		default:
			in = append(in, reflect.Zero(kind))
		}
	}
	method.Call(in)
}

// named returns a pointer to an empty value of a type. If the type has a name, it is "x", because
// clients refuse to write an object without a name.
func named(kind reflect.Type) reflect.Value {
	value := reflect.New(kind)
	if with := value.MethodByName("WithName"); with.IsValid() { // an apply configuration
		with.Call([]reflect.Value{reflect.ValueOf("x")})
	} else if name := value.Elem().FieldByName("Name"); name.IsValid() {
		name.SetString("x")
	}
	return value
}

// pathRecorder is a transport that records paths and sends nothing.
type pathRecorder func(path string)

// RoundTrip implements http.RoundTripper.
func (r pathRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r(request.URL.Path)
	return nil, errors.New("this transport sends no request")
}
