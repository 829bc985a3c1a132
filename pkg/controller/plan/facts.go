package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// FactWatch watches the input of profiles: the definitions that they name, and the objects of
// served kinds. It starts and stops a watch when a definition is created or deleted, without a
// restart.
type FactWatch struct {
	client       dynamic.Interface
	requirements []profile.Requirement
	notify       func()

	mu          sync.Mutex
	running     bool
	definitions map[string]*feed
	objects     map[string]*feed
}

type feed struct {
	resource schema.GroupVersionResource
	watching *objectwatch.Watch[*unstructured.Unstructured]
	stop     context.CancelFunc
}

// NewFactWatch returns a watch of the facts of some profiles. It calls notify when the facts may
// have changed; notify must not block for long. It sends no request before Run.
func NewFactWatch(client dynamic.Interface, profiles []profile.Profile, notify func()) *FactWatch {
	w := &FactWatch{client: client, notify: notify, definitions: map[string]*feed{}, objects: map[string]*feed{}}
	known := map[string]int{}
	for _, p := range profiles {
		for _, requirement := range p.Requires() {
			at, again := known[requirement.Definition]
			if !again {
				known[requirement.Definition] = len(w.requirements)
				w.requirements = append(w.requirements, requirement)
				continue
			}
			w.requirements[at].Objects = w.requirements[at].Objects || requirement.Objects
		}
	}
	return w
}

// Run watches until ctx ends.
func (w *FactWatch) Run(ctx context.Context) error {
	w.mu.Lock()
	w.running = true
	for _, requirement := range w.requirements {
		name := requirement.Definition
		w.definitions[name] = w.start(profile.Definitions(), name, trimDefinition)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.end()
	return nil
}

func (w *FactWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
	for _, feeds := range []map[string]*feed{w.definitions, w.objects} {
		for _, f := range feeds {
			f.stop()
		}
	}
}

// start starts a watch of the named object, or of all objects of a resource. The caller holds mu.
func (w *FactWatch) start(resource schema.GroupVersionResource, name string, keep cache.TransformFunc) *feed {
	// The watch outlives the pass that needs it, and ends with Run.
	ctx, stop := context.WithCancel(context.Background())
	f := &feed{resource: resource, stop: stop, watching: objectwatch.New(w.client, w.client.Resource(resource), &unstructured.Unstructured{},
		objectwatch.Options{Name: name, Keep: keep, Changed: w.notify, Failed: w.notify})}
	go f.watching.Run(ctx)
	return f
}

// unknown returns the error of a watch that has not synced.
func (f *feed) unknown(err error) error {
	if errors.Is(err, objectwatch.ErrUnknown) {
		return fmt.Errorf("reading %s", f.resource.GroupResource())
	}
	return fmt.Errorf("reading %s: %w", f.resource.GroupResource(), err)
}

// Facts returns the known facts. The error names the facts that are still unknown. FactWatch calls
// notify when they change.
func (w *FactWatch) Facts() (profile.Facts, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	facts := profile.NewFacts()
	if !w.running {
		return facts, fmt.Errorf("reading the cluster")
	}
	for _, requirement := range w.requirements {
		found, err := profile.Find(context.Background(), watched{w}, requirement)
		if err != nil {
			return facts, err
		}
		if !facts.Add(requirement, found) {
			w.unfollow(requirement.Definition)
		}
	}
	return facts, nil
}

// watched reads the facts from the watches without waiting. The caller holds mu.
type watched struct{ *FactWatch }

var _ profile.Source = watched{}

// Definition implements profile.Source.
func (w watched) Definition(_ context.Context, name string) (*unstructured.Unstructured, error) {
	f := w.definitions[name]
	crd, err := f.watching.Get()
	if err != nil {
		return nil, f.unknown(err)
	}
	return crd, nil
}

// Objects implements profile.Source. The first call for a resource starts its watch.
func (w watched) Objects(_ context.Context, name string, resource schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	f := w.objects[name]
	if f != nil && f.resource != resource {
		w.unfollow(name)
		f = nil
	}
	if f == nil {
		f = w.start(resource, "", trimObject)
		w.objects[name] = f
	}
	objects, err := f.watching.List()
	if err != nil {
		return nil, f.unknown(err)
	}
	return objects, nil
}

// unfollow ends the watch of a kind that is no longer served.
func (w *FactWatch) unfollow(name string) {
	if f := w.objects[name]; f != nil {
		f.stop()
		delete(w.objects, name)
	}
}

func trimDefinition(delivered any) (any, error) {
	if crd, ok := delivered.(*unstructured.Unstructured); ok {
		crd.SetManagedFields(nil)
		crd.SetAnnotations(nil)
	}
	return delivered, nil
}

// trimObject drops data that no profile reads. The content of files in MachineConfigs is most of
// their size. The parameters of fence agent templates may be credentials.
func trimObject(delivered any) (any, error) {
	object, ok := delivered.(*unstructured.Unstructured)
	if !ok {
		return delivered, nil
	}
	object.SetManagedFields(nil)
	switch kind := object.GroupVersionKind().GroupKind(); {
	case kind == profile.MachineConfigKind():
		profile.Summarize(object)
	case kind.Kind == "FenceAgentsRemediationTemplate":
		unstructured.RemoveNestedField(object.Object, "spec")
		object.SetAnnotations(nil)
	}
	return object, nil
}
