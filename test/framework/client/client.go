// Package client does in a test what a user does with kubectl:
//
//	c := client.New(t, cluster.Config(), "shop")
//	c.Create(manifest)
//	c.Condition("cer/shop-1", "Succeeded", "True")
//	c.Becomes("deployment/web", ".status.readyReplicas", "1")
//
// Objects are named as for kubectl, resource/name, including short names. Namespaced objects are in
// the client's namespace. Waits are watches.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// manager is the field manager of the client's writes.
const manager = "tester"

// Client is a user's client in a namespace.
type Client struct {
	t         testing.TB
	namespace string
	config    *rest.Config
	objects   dynamic.Interface
	deferred  *restmapper.DeferredDiscoveryRESTMapper
	kinds     meta.RESTMapper
	heard     *heard
}

// New returns a client with a user's configuration.
func New(t testing.TB, config *rest.Config, namespace string) *Client {
	t.Helper()
	c := &Client{t: t, namespace: namespace, config: rest.CopyConfig(config), heard: &heard{}}
	c.config.WarningHandler = c.heard
	found, err := discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	if c.objects, err = dynamic.NewForConfig(c.config); err != nil {
		t.Fatalf("client: %v", err)
	}
	cached := memory.NewMemCacheClient(found)
	c.deferred = restmapper.NewDeferredDiscoveryRESTMapper(cached)
	c.kinds = restmapper.NewShortcutExpander(c.deferred, cached, func(string) {})
	return c
}

// At returns the same client in another namespace.
func (c *Client) At(namespace string) *Client {
	other := *c
	other.namespace = namespace
	return &other
}

// Namespace returns the namespace of the client's objects.
func (c *Client) Namespace() string { return c.namespace }

// Create creates the objects of a manifest.
func (c *Client) Create(manifest string) {
	c.t.Helper()
	for _, object := range c.decoded(manifest) {
		if _, err := c.create(object, metav1.CreateOptions{FieldManager: manager}); err != nil {
			c.t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// DryRun creates the objects of a manifest as a dry-run.
func (c *Client) DryRun(manifest string) error {
	c.t.Helper()
	for _, object := range c.decoded(manifest) {
		if _, err := c.create(object, metav1.CreateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}}); err != nil {
			return err
		}
	}
	return nil
}

// Refused fails unless a create is refused with an error that contains all texts.
func (c *Client) Refused(manifest string, texts ...string) {
	c.t.Helper()
	for _, object := range c.decoded(manifest) {
		_, err := c.create(object, metav1.CreateOptions{FieldManager: manager})
		c.Denied(err, texts...)
	}
}

// Denied fails unless err contains all texts.
func (c *Client) Denied(err error, texts ...string) {
	c.t.Helper()
	if err == nil {
		c.t.Errorf("the request was accepted, want a refusal with %q", texts)
		return
	}
	c.Says(err.Error(), texts...)
}

// Apply applies the objects of a manifest by server-side apply, and takes over conflicting fields.
func (c *Client) Apply(manifest string) {
	c.t.Helper()
	c.ApplyAs(manager, manifest)
}

// ApplyAs is like Apply, with a field manager.
func (c *Client) ApplyAs(manager, manifest string) {
	c.t.Helper()
	if err := c.apply(manager, manifest); err != nil {
		c.t.Fatal(err)
	}
}

// TryApply is like Apply, and returns the error.
func (c *Client) TryApply(manifest string) error {
	c.t.Helper()
	return c.apply(manager, manifest)
}

func (c *Client) apply(manager, manifest string) error {
	c.t.Helper()
	force := true
	for _, object := range c.decoded(manifest) {
		content, err := json.Marshal(object)
		if err != nil {
			return err
		}
		options := metav1.PatchOptions{FieldManager: manager, Force: &force}
		if _, err := c.of(object).Patch(c.t.Context(), object.GetName(), types.ApplyPatchType, content, options); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Patch sends a merge patch.
func (c *Client) Patch(object, patch string) {
	c.t.Helper()
	c.PatchAs(manager, object, patch)
}

// PatchAs is like Patch, with a field manager.
func (c *Client) PatchAs(manager, object, patch string) {
	c.t.Helper()
	c.patch(manager, object, patch)
}

// PatchStatus sends a merge patch of the status.
func (c *Client) PatchStatus(object, patch string) {
	c.t.Helper()
	c.patch(manager, object, patch, "status")
}

func (c *Client) patch(manager, object, patch string, subresources ...string) {
	c.t.Helper()
	objects, name := c.named(object)
	if _, err := objects.Patch(c.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...); err != nil {
		c.t.Fatalf("patching %s: %v", object, err)
	}
}

// Delete deletes an object, and does not wait until it is deleted.
func (c *Client) Delete(object string) {
	c.t.Helper()
	c.delete(object, metav1.DeleteOptions{})
}

// Orphan deletes an object without its dependents.
func (c *Client) Orphan(object string) {
	c.t.Helper()
	policy := metav1.DeletePropagationOrphan
	c.delete(object, metav1.DeleteOptions{PropagationPolicy: &policy})
}

// WouldDelete returns the warnings of a dry-run deletion, one per line.
func (c *Client) WouldDelete(object string) string {
	c.t.Helper()
	c.heard.take()
	c.delete(object, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	return strings.Join(c.heard.take(), "\n")
}

func (c *Client) delete(object string, options metav1.DeleteOptions) {
	c.t.Helper()
	objects, name := c.named(object)
	if err := objects.Delete(c.t.Context(), name, options); err != nil {
		c.t.Fatalf("deleting %s: %v", object, err)
	}
}

// Get returns an object.
func (c *Client) Get(object string) *unstructured.Unstructured {
	c.t.Helper()
	objects, name := c.named(object)
	found, err := objects.Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatalf("reading %s: %v", object, err)
	}
	return found
}

// JSON returns an object as JSON without managedFields.
func (c *Client) JSON(object string) string {
	c.t.Helper()
	found := c.Get(object)
	found.SetManagedFields(nil)
	content, err := json.Marshal(found)
	if err != nil {
		c.t.Fatalf("reading %s: %v", object, err)
	}
	return string(content)
}

// Absent fails if an object exists.
func (c *Client) Absent(object string) {
	c.t.Helper()
	objects, name := c.named(object)
	if found, err := objects.Get(c.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		c.t.Errorf("%s should not be there: %v, %v", object, found, err)
	}
}

// Raw sends a request to a path of the server and returns the answer.
func (c *Client) Raw(method, path, body string) string {
	c.t.Helper()
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		c.t.Fatalf("client: %v", err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.config.Host+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatalf("client: %v", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		c.t.Fatalf("%s %s: %s (%v): %s", method, path, response.Status, err, answer)
	}
	return string(answer)
}

// Says fails if a text lacks one of the parts.
func (c *Client) Says(text string, parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			c.t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// Lacks fails if a text contains one of the parts.
func (c *Client) Lacks(text string, parts ...string) {
	c.t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			c.t.Errorf("%q is in:\n%s", part, text)
		}
	}
}

func (c *Client) create(object *unstructured.Unstructured, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
	return c.of(object).Create(c.t.Context(), object, options)
}

// of returns the client of an object's resource. An object without a namespace gets the client's
// namespace.
func (c *Client) of(object *unstructured.Unstructured) dynamic.ResourceInterface {
	c.t.Helper()
	kind := object.GroupVersionKind()
	var mapping *meta.RESTMapping
	c.known(kind.String(), func() (err error) {
		mapping, err = c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
		return err
	})
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = c.namespace
	}
	return c.in(mapping, namespace)
}

// named parses resource/name.
func (c *Client) named(object string) (dynamic.ResourceInterface, string) {
	c.t.Helper()
	resource, name, found := strings.Cut(object, "/")
	if !found {
		c.t.Fatalf("client: %q is not resource/name", object)
	}
	var mapping *meta.RESTMapping
	c.known(resource, func() error {
		kind, err := c.kinds.KindFor(schema.ParseGroupResource(resource).WithVersion(""))
		if err != nil {
			return err
		}
		mapping, err = c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
		return err
	})
	return c.in(mapping, c.namespace), name
}

func (c *Client) in(mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.objects.Resource(mapping.Resource).Namespace(namespace)
	}
	return c.objects.Resource(mapping.Resource)
}

// known waits until the cluster serves a kind, because discovery lags behind a new definition.
func (c *Client) known(kind string, look func() error) {
	c.t.Helper()
	var last error
	err := poll.Until(c.t.Context(), func(context.Context) bool {
		if last = look(); last != nil {
			c.deferred.Reset()
		}
		return last == nil
	})
	if err != nil {
		c.t.Fatalf("the cluster serves no %s: %v", kind, last)
	}
}

// decoded parses documents of YAML or JSON.
func (c *Client) decoded(manifest string) []*unstructured.Unstructured {
	c.t.Helper()
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			c.t.Fatalf("client: %v in\n%s", err, manifest)
		case len(object.Object) > 0:
			all = append(all, object)
		}
	}
}

// heard collects the warnings of a server.
type heard struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (h *heard) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, text)
}

func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	said := h.said
	h.said = nil
	return said
}
