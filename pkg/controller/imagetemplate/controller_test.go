package imagetemplate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

const (
	sampleTemplate = "quay.io/c:{group:example.com,version:v1,kind:Sample,name:one,namespace:ns,jsonpath:{.spec.tag}}"
	hiddenValue    = "s3cr3t"
)

var samples = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "samples"}

// host is a cluster with CatalogSources, and with Samples whose reads a test controls.
type host struct {
	*testing.T
	catalogs *dynamicfake.FakeDynamicClient
	// definitions and objects hold the watched kinds, and the objects that templates name.
	definitions, objects *metadatafake.FakeMetadataClient
	key                  author.Key
	controller           *Controller

	mu sync.Mutex
	// find and read are the errors of lookups and reads. reads counts the reads of an object.
	find, read error
	reads      int
	events     []string
}

func (h *host) Version(context.Context) (string, error) { return "v1.36.0", nil }

func (h *host) Find(context.Context, imagetemplate.Object) (lookup.Resource, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return lookup.Resource{GroupVersionResource: samples, Namespaced: true}, h.find
}

func (h *host) Read(context.Context, lookup.Resource, imagetemplate.Field) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	return "v1", h.read
}

func (h *host) May(context.Context, user.Info, authz.Right) (bool, error) { return true, nil }

func (h *host) Event(_ runtime.Object, eventType, reason, message string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, eventType+" "+reason+": "+message)
}

func newHost(t *testing.T, catalog *unstructured.Unstructured) *host {
	t.Helper()
	kind := annotated.CatalogSources()
	metascheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metascheme); err != nil {
		t.Fatal(err)
	}
	definition := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: kind.Definition(), UID: "crd"}}
	sample := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Sample"},
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "ns", UID: "sample", ResourceVersion: "1"}}
	h := &host{
		T:           t,
		catalogs:    dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{kind.Resource: "CatalogSourceList"}, catalog),
		definitions: metadatafake.NewSimpleMetadataClient(metascheme, definition), objects: metadatafake.NewSimpleMetadataClient(metascheme, sample),
		key: author.NewKey([]byte("secret")),
	}
	h.controller = New(Options{
		Kinds: []annotated.Kind{kind}, Catalogs: h.catalogs, Definitions: h.definitions, Reader: h, Objects: h.objects, Rights: h, Key: h.key, Events: h, Clock: clock.RealClock{},
	})
	return h
}

func (h *host) run(do func()) {
	ctx, stop := context.WithCancel(h.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := h.controller.Run(ctx); err != nil {
			h.Error(err)
		}
	})
	do()
	stop()
	running.Wait()
}

func (h *host) changeSample(version string) {
	h.Helper()
	changed := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Sample"},
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "ns", UID: "sample", ResourceVersion: version}}
	if err := h.objects.Tracker().Update(samples, changed, "ns"); err != nil {
		h.Fatal(err)
	}
}

// catalog returns a CatalogSource with a template, and with an earlier image from that template.
func catalog(template string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"sourceType": "grpc", "image": "quay.io/c:v0"},
	}}
	object.SetGroupVersionKind(annotated.CatalogSources().GroupVersionKind)
	object.SetNamespace("olm")
	object.SetName("catalog")
	object.SetUID("u1")
	object.SetResourceVersion("1")
	object.SetAnnotations(map[string]string{annotated.OLMAnnotation: template})
	return object
}

func resolved(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "TemplatesHaveResolved", "status": "True", "reason": "AllTemplatesResolved", "message": "catalog image reference was successfully resolved", "lastTransitionTime": "2021-07-19T23:00:00Z"},
		map[string]any{"type": "ResolvedImage", "status": "True", "reason": "AllTemplatesResolved", "message": "quay.io/c:v0", "lastTransitionTime": "2021-07-19T23:00:00Z"},
	}}
	return object
}

// stamped adds a stamp that is signed for alice.
func stamped(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	subject := annotated.CatalogSources().Subject()
	digest, err := subject.Digest(object)
	if err != nil {
		t.Fatal(err)
	}
	stamp := &author.Stamp{User: "alice", Time: time.Now(), Kind: subject.Mark(), Extension: string(object.GetUID()), Name: object.GetName(), Namespace: object.GetNamespace(), Digest: digest}
	if err := author.NewKey([]byte("secret")).Sign(stamp); err != nil {
		t.Fatal(err)
	}
	value, err := stamp.Encode()
	if err != nil {
		t.Fatal(err)
	}
	annotations := object.GetAnnotations()
	annotations[extension.AuthorAnnotation] = value
	object.SetAnnotations(annotations)
	return object
}

func (h *host) live() *unstructured.Unstructured {
	h.Helper()
	found, err := h.catalogs.Resource(annotated.CatalogSources().Resource).Namespace("olm").Get(h.Context(), "catalog", metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	return found
}

func (h *host) writes() (count int) {
	for _, one := range h.catalogs.Actions() {
		if one.GetVerb() != "list" && one.GetVerb() != "watch" && one.GetVerb() != "get" {
			count++
		}
	}
	return count
}

// TestAway: while any of the APIs does not answer, nothing is written: the image and the conditions
// stay. No message has the text of the API, which may quote the object.
func TestAway(t *testing.T) {
	away := apierrors.NewServiceUnavailable("conversion of " + hiddenValue + " failed")
	for name, set := range map[string]func(*host){
		"Discovery": func(h *host) { h.find = errors.New("the aggregated API is down") },
		"Object":    func(h *host) { h.read = fmt.Errorf("reading: %w", away) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, stamped(t, resolved(catalog(sampleTemplate))))
				set(h)
				h.run(func() {
					time.Sleep(5 * time.Minute)
					synctest.Wait()
					if got := h.live(); h.writes() != 0 || annotated.CatalogSources().Image(got) != "quay.io/c:v0" {
						t.Errorf("%d writes; it is %v", h.writes(), got.Object)
					}
				})
				if name == "Object" && h.reads < 3 {
					t.Errorf("it was tried %d times within 5 minutes", h.reads)
				}
				if events := strings.Join(h.events, "\n"); strings.Contains(events, hiddenValue) {
					t.Errorf("the events have the value: %s", events)
				}
			})
		})
	}
}

// TestReadErrorsAreWithheld: the error of an API that cannot return an object may quote it, so it
// is withheld.
func TestReadErrorsAreWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := stamped(t, resolved(catalog(sampleTemplate)))
		h := newHost(t, object)
		h.read = apierrors.NewInternalError(errors.New("conversion of " + hiddenValue + " failed"))
		ctx, stop := context.WithCancel(t.Context())
		v := &scope{Controller: h.controller, kind: annotated.CatalogSources(), object: object, key: keyOf(annotated.CatalogSources(), object)}
		v.resolve(ctx, imagetemplate.Parse(sampleTemplate))
		stop()
		h.controller.queue.ShutDown()
		h.controller.running.Wait()
		if v.unknown == nil || strings.Contains(v.unknown.Error(), hiddenValue) || !strings.Contains(v.unknown.Error(), "Sample.example.com/v1 ns/one") {
			t.Errorf("the error is %v", v.unknown)
		}
	})
}

// TestUnsigned: for a template without a known author, nothing is read or watched. An event at each
// change of an object would reveal the change to users who cannot read it.
func TestUnsigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, catalog(sampleTemplate))
		h.run(func() {
			for i := range 5 {
				time.Sleep(time.Minute)
				synctest.Wait()
				h.changeSample(fmt.Sprint(i + 2))
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		})
		if len(h.events) != 1 || !strings.HasPrefix(h.events[0], "Warning TemplateAuthorUnknown: ") {
			t.Errorf("the events are %q", h.events)
		}
		if asked := h.objects.Actions(); len(asked) != 0 || h.reads != 0 {
			t.Errorf("%d reads, and requests %v", h.reads, asked)
		}
		if got := annotated.Conditions(h.live()); len(got) != 2 || !strings.Contains(fmt.Sprint(got[0]), "couldn't be resolved") {
			t.Errorf("the conditions are %v", got)
		}
	})
}

// TestKindGoes: after a kind was deleted, nothing of it is kept, and no metric counts its objects.
func TestKindGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := catalog("quay.io/c:v{kube_minor_version}")
		left.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "catalog", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:image":{}}}`)}})
		h := newHost(t, left)
		h.run(func() {
			time.Sleep(time.Minute)
			synctest.Wait()
			want := struct{ Kind, State string }{"CatalogSource", "LeftToOLM"}
			if got := h.controller.States(); got[want] != 1 || h.writes() != 0 {
				t.Errorf("%d writes, states %v", h.writes(), got)
			}
			if err := h.definitions.Tracker().Delete(objectwatch.Definitions, "", annotated.CatalogSources().Definition()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := h.controller.States(); len(got) != 0 || len(h.controller.settled) != 0 {
				t.Errorf("the kind is gone, and states are %v, settled %v", got, h.controller.settled)
			}
		})
	})
}
