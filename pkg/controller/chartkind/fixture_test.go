package chartkind

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/rendering"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/signer"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// TestMain also renders charts, because the controller starts the running program for that.
func TestMain(m *testing.M) {
	if template.IsProcess(os.Args) {
		os.Exit(template.RunProcess(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

var (
	lamps       = schema.GroupVersionResource{Group: "lights.example.com", Version: "v1", Resource: "lamps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// plane is a host and Penstock's API, without a cluster.
type plane struct {
	notes []olmv1alpha1.DiffNote

	*testing.T
	host     *dynamicfake.FakeDynamicClient
	metadata *metadatafake.FakeMetadataClient
	key      author.Key
	archive  []byte
	signed   map[string]*signer.Record

	// account is the client of a ServiceAccount; it replaces host.
	account dynamic.Interface
	stop    func()
	clock   clock.WithTicker

	mu        sync.Mutex
	revisions map[string]*olmv1alpha1.ClusterExtensionRevision
	packs     map[string][]manifest.Object
	handlers  []cache.ResourceEventHandler
	highest   int64
	version   int
	// made lists revisions with their creators. writes counts the writes of a manager. renders
	// counts the live reads before a creation.
	made      []string
	writes    map[string]int
	renders   int
	lacks     map[string]bool
	forbidden bool
}

func newPlane(t *testing.T) *plane {
	lists := map[schema.GroupVersionResource]string{chartkind.Resource: "ChartKindList", lamps: "LampList"}
	for kind, resource := range workloadKinds() {
		lists[schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}] = kind + "List"
	}
	metascheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metascheme); err != nil {
		t.Fatal(err)
	}
	definition := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: chartkind.DefinitionName, UID: "crd"}}
	p := &plane{
		T: t, host: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists), metadata: metadatafake.NewSimpleMetadataClient(metascheme, definition),
		key: author.NewKey([]byte("secret")), revisions: map[string]*olmv1alpha1.ClusterExtensionRevision{}, packs: map[string][]manifest.Object{},
		writes: map[string]int{}, lacks: map[string]bool{}, archive: chartOf(t), signed: map[string]*signer.Record{}, clock: clock.RealClock{},
	}
	p.host.PrependReactor("patch", "*", p.apply)
	return p
}

func chartOf(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	files := tar.NewWriter(zipped)
	for name, content := range map[string]string{
		"lamp/Chart.yaml":          "apiVersion: v2\nname: lamp\nversion: 1.2.3\n",
		"lamp/values.schema.json":  `{"properties": {"size": {"type": "integer", "minimum": 0}}}`,
		"lamp/templates/NOTES.txt": "Lamp {{ .Release.Name }} burns.",
		"lamp/templates/all.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}, annotations: {size: {{ .Values.size | quote }}}}\n" +
			"spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: x}]}}}\n",
	} {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// run runs a controller until the test ends or stop is called.
func (p *plane) run() (stop func()) {
	c := New(Options{
		Kinds: p.host, Metadata: p.metadata, Workloads: p.host, Releases: p.host, Packs: p,
		Account: func(chartkind.ServiceAccount) (Account, error) {
			return Account{Objects: p.objects(), Metadata: p.metadata}, nil
		},
		Store: maker.Store{Informer: p, Reader: reader{p, false}, Live: reader{p, true}, Heads: p, Own: writer{plane: p, who: "penstock"}, As: func(who user.Info) (maker.Revisions, error) { return writer{plane: p, who: who.GetName()}, nil }},
		Key:   p.key, Rights: p, Charts: p, Definitions: p, Capabilities: p, Program: os.Args[0], Pool: rendering.NewPool(), Clock: p.clock,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			p.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	p.Cleanup(stop)
	return stop
}

// objects returns the client of the host for a ServiceAccount.
func (p *plane) objects() dynamic.Interface {
	if p.account != nil {
		return p.account
	}
	return p.host
}

// apply does server-side apply as far as needed: each manager has its own fields.
func (p *plane) apply(action clienttesting.Action) (bool, runtime.Object, error) {
	patch, ok := action.(clienttesting.PatchActionImpl)
	if !ok || patch.GetPatchType() != types.ApplyPatchType {
		return false, nil, nil
	}
	var sent unstructured.Unstructured
	if err := json.Unmarshal(patch.GetPatch(), &sent.Object); err != nil {
		return true, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found, err := p.host.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	object := found.(*unstructured.Unstructured).DeepCopy()
	p.stamp(object)
	if sent.GetUID() != object.GetUID() {
		return true, nil, apierrors.NewConflict(patch.GetResource().GroupResource(), patch.GetName(), errors.New("it is another one"))
	}
	if patch.GetSubresource() != "status" {
		object.SetFinalizers(sent.GetFinalizers())
		if object.GetDeletionTimestamp() != nil && len(sent.GetFinalizers()) == 0 {
			return true, object, p.host.Tracker().Delete(patch.GetResource(), patch.GetNamespace(), patch.GetName())
		}
		return true, object, p.host.Tracker().Update(patch.GetResource(), object, patch.GetNamespace())
	}
	if p.forbidden {
		return true, nil, apierrors.NewForbidden(patch.GetResource().GroupResource(), patch.GetName(), errors.New("no right"))
	}
	p.writes[patch.PatchOptions.FieldManager]++
	next, _, _ := unstructured.NestedMap(object.Object, "status")
	if next == nil {
		next = map[string]any{}
	}
	given := sent.Object["status"].(map[string]any)
	conditions, _ := next["conditions"].([]any)
	for _, one := range given["conditions"].([]any) {
		kind := one.(map[string]any)["type"]
		conditions = append(slices.DeleteFunc(conditions, func(other any) bool { return other.(map[string]any)["type"] == kind }), one)
	}
	for name, value := range given {
		if number, is := value.(float64); is {
			value = int64(number)
		}
		next[name] = value
	}
	next["conditions"] = conditions
	object.Object["status"] = next
	return true, object, p.host.Tracker().Update(patch.GetResource(), object, patch.GetNamespace())
}

// AddEventHandler implements the informer of revisions.
func (p *plane) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handlers = append(p.handlers, handler)
	return nil, nil
}

// Get implements Heads.
func (p *plane) Get(context.Context, string) (chain.Head, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return chain.Head{Highest: p.highest, Confirmed: true}, true, nil
}

// Objects implements Packs.
func (p *plane) Objects(_ context.Context, root string) ([]manifest.Object, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, objects := range p.packs {
		return objects, nil // all have the same workload
	}
	return nil, fmt.Errorf("there is no pack %s", root)
}

// May implements Rights.
func (p *plane) May(_ context.Context, who user.Info, _ authz.Right) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.lacks[who.GetName()], nil
}

// Chart implements Charts.
func (p *plane) Chart(_ context.Context, reference string) (*Pulled, error) {
	return &Pulled{Archive: p.archive, Reference: reference + "@sha256:" + strings.Repeat("a", 64), Signed: p.signed[reference]}, nil
}

// Capabilities implements Capabilities.
func (p *plane) Capabilities(context.Context, string) (*template.Capabilities, error) {
	return &template.Capabilities{Version: "v1.36.3", Major: "1", Minor: "36", APIVersions: []string{"v1"}}, nil
}

func (p *plane) Definition(context.Context, string, string) (*apiextensionsv1.CustomResourceDefinition, error) {
	conditions := apiextensionsv1.JSONSchemaProps{XListType: ptr.To("map"), XListMapKeys: []string{"type"}}
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Lamp"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"status": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"conditions": conditions, "observedGeneration": {Type: "integer"}, "reconciledVersion": {Type: "string"},
				}},
			}}},
		}},
	}}, nil
}

// reader reads revisions; a live read happens before each creation.
type reader struct {
	*plane
	live bool
}

func (r reader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("only lists are read")
}

func (r reader) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live {
		r.renders++
	}
	out := list.(*olmv1alpha1.ClusterExtensionRevisionList)
	for _, name := range slices.Sorted(maps.Keys(r.revisions)) {
		if one := r.revisions[name]; asked.LabelSelector == nil || asked.LabelSelector.String() == olmv1alpha1.ChainLabel+"="+one.Labels[olmv1alpha1.ChainLabel] {
			out.Items = append(out.Items, *one.DeepCopy())
		}
	}
	return nil
}

// writer writes revisions as a user, like Penstock's API.
type writer struct {
	*plane
	maker.Revisions
	who string
}

func (w writer) Create(_ context.Context, revision *olmv1alpha1.ClusterExtensionRevision, _ metav1.CreateOptions) (*olmv1alpha1.ClusterExtensionRevision, error) {
	r := revision.DeepCopy()
	w.mu.Lock()
	if r.Spec.Revision <= w.highest {
		w.mu.Unlock()
		return nil, apierrors.NewAlreadyExists(olmv1alpha1.Resource("clusterextensionrevisions"), r.Name)
	}
	w.highest = r.Spec.Revision
	var objects []manifest.Object
	for i, phase := range r.Spec.Phases {
		for j := range phase.Objects {
			object, err := manifest.Digester{SecretKey: []byte("secret")}.FromJSON(phase.Objects[j].Object.Raw)
			if err != nil {
				w.mu.Unlock()
				return nil, err
			}
			objects = append(objects, object)
			r.Spec.Phases[i].Objects[j] = olmv1alpha1.RevisionObject{APIVersion: "apps/v1", Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, Digest: string(object.Digest)}
		}
	}
	w.packs[r.Name] = objects
	w.mu.Unlock()
	r.UID, r.Generation = types.UID(r.Name), 1
	r.Labels = map[string]string{olmv1alpha1.ChainLabel: r.Name[:strings.LastIndex(r.Name, "-")]}
	w.put(r)
	w.mu.Lock()
	w.made = append(w.made, w.who+" "+string(r.Spec.LifecycleState))
	w.mu.Unlock()
	return r, nil
}

func (w writer) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	w.mu.Lock()
	r := w.revisions[name]
	delete(w.revisions, name)
	handlers := w.handlers
	w.mu.Unlock()
	for _, handler := range handlers {
		handler.OnDelete(r)
	}
	return nil
}

// put stores a revision, and calls the handlers.
func (p *plane) put(r *olmv1alpha1.ClusterExtensionRevision) {
	p.mu.Lock()
	before := p.revisions[r.Name]
	p.version++
	r.ResourceVersion = fmt.Sprint(p.version)
	p.revisions[r.Name] = r
	handlers := p.handlers
	p.mu.Unlock()
	for _, handler := range handlers {
		if before == nil {
			handler.OnAdd(r, false)
		} else {
			handler.OnUpdate(before, r)
		}
	}
}

func (p *plane) change(name string, change func(*olmv1alpha1.ClusterExtensionRevision)) {
	p.mu.Lock()
	r := p.revisions[name].DeepCopy()
	p.mu.Unlock()
	change(r)
	p.put(r)
}

func (p *plane) roll(name, kind, reason string) {
	p.change(name, func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "said"}}
	})
}

func (p *plane) kind(change func(spec map[string]any)) {
	p.Helper()
	p.kindOf("lamp", time.Now(), change)
}

// kindOf stores a ChartKind as alice, with a name and a time.
func (p *plane) kindOf(name string, at time.Time, change func(spec map[string]any)) {
	p.Helper()
	spec := map[string]any{
		"resource": map[string]any{"group": lamps.Group, "version": lamps.Version, "kind": "Lamp"}, "chart": map[string]any{"ref": "r.example/lamp:1"},
		"serviceAccount": map[string]any{"namespace": "lights", "name": "operator"},
		"values":         []any{map[string]any{"to": "size", "from": "spec.size"}},
		"extension":      "'lamp-' + object.metadata.namespace + '-' + object.metadata.name",
	}
	if change != nil {
		change(spec)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(chartkind.Kind)
	object.SetName(name)
	object.SetUID(types.UID("kind-" + name))
	object.SetGeneration(1)
	object.SetCreationTimestamp(metav1.NewTime(at).Rfc3339Copy())
	subject := chartkind.Author()
	digest, err := subject.Digest(object)
	if err != nil {
		p.Fatal(err)
	}
	stamp := &author.Stamp{User: "alice", Time: at, Kind: subject.Mark(), Name: name, Generation: 1, Digest: digest}
	if err := p.key.Sign(stamp); err != nil {
		p.Fatal(err)
	}
	value, err := stamp.Encode()
	if err != nil {
		p.Fatal(err)
	}
	object.SetAnnotations(map[string]string{extension.AuthorAnnotation: value})
	if err := p.host.Tracker().Create(chartkind.Resource, object, ""); err != nil {
		p.Fatal(err)
	}
}

// store changes an object in a namespace, and creates it if needed.
func (p *plane) store(resource schema.GroupVersionResource, kind, name string, change func(*unstructured.Unstructured)) {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	found, err := p.host.Tracker().Get(resource, "house", name)
	if err == nil {
		object := found.(*unstructured.Unstructured).DeepCopy()
		change(object)
		p.stamp(object)
		err = p.host.Tracker().Update(resource, object, "house")
	} else {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
		object.SetNamespace("house")
		object.SetName(name)
		object.SetUID(types.UID(name))
		object.SetGeneration(1)
		change(object)
		p.stamp(object)
		err = p.host.Tracker().Create(resource, object, "house")
	}
	if err != nil {
		p.Fatal(err)
	}
}

// stamp sets the next resourceVersion, as every write does. The caller holds the lock.
func (p *plane) stamp(object *unstructured.Unstructured) {
	p.version++
	object.SetResourceVersion(fmt.Sprint(p.version))
}

func (p *plane) lamp(name string, size int64) {
	p.Helper()
	p.store(lamps, "Lamp", name, func(object *unstructured.Unstructured) {
		if _, has := object.Object["spec"]; has {
			object.SetGeneration(object.GetGeneration() + 1)
		}
		object.Object["spec"] = map[string]any{"size": size}
	})
}

// deployment stores the Deployment that the chart makes for a Lamp, with the status that the
// Deployment controller would write.
func (p *plane) deployment(name, available string) {
	p.Helper()
	p.store(deployments, "Deployment", name, func(object *unstructured.Unstructured) {
		object.SetLabels(map[string]string{olmv1alpha1.ChainLabel: "lamp-house-" + name})
		object.Object["spec"] = map[string]any{"replicas": int64(1)}
		object.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Available", "status": available}}}
	})
}

// await returns a Lamp when the condition holds, or nil when it must be deleted.
func (p *plane) await(name, what string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	p.Helper()
	var last *unstructured.Unstructured
	p.until(what, func() bool {
		found, err := p.host.Tracker().Get(lamps, "house", name)
		if last = nil; err == nil {
			last = found.(*unstructured.Unstructured).DeepCopy()
		}
		return is(last)
	}, func() any { return last })
	return last
}

// until waits until a condition holds, by polling: the fakes have no watch of their counters.
func (p *plane) until(what string, so func() bool, shown func() any) {
	p.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		p.mu.Lock()
		done := so()
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-deadline.C:
			p.Fatalf("%s: it is %v", what, shown())
		case <-tick.C:
		}
	}
}

// says returns a check that a condition of a Lamp has a status and a reason.
func says(kind, status, reason string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		if object == nil {
			return false
		}
		for _, one := range report.StatusOf(object).Conditions {
			if one.Type == kind && string(one.Status) == status && one.Reason == reason {
				return true
			}
		}
		return false
	}
}

func (p *plane) counts() (made int, writes map[string]int, renders int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.made), maps.Clone(p.writes), p.renders
}

// Propose returns a diff with the notes of the test.
func (w writer) Propose(_ context.Context, _ string, _ *olmv1alpha1.ClusterExtensionRevision, _ metav1.CreateOptions) (*olmv1alpha1.RevisionDiff, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &olmv1alpha1.RevisionDiff{Notes: w.notes}, nil
}
