package rollout

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// Scenario is a saga for external tests, which see only exported names.
type Scenario struct{ *saga }

// NewScenario returns a chain in an empty cluster.
func NewScenario() *Scenario { return &Scenario{newSaga()} }

// Names returns the marks of objects.
func (s *Scenario) Names() observe.Names { return testNames() }

// Work returns the desired state of the chain.
func (s *Scenario) Work() Work { return s.work() }

// Revision starts a revision.
func (s *Scenario) Revision(number int64) *script { return s.revision(number) }

// Adopting starts a revision that adopts existing objects.
func (s *Scenario) Adopting(number int64) *script {
	return s.revision(number).adopting(stage.AdoptAlways)
}

// Phase adds a phase (see phase).
func (r *script) Phase(name string, objects ...string) *script { return r.phase(name, objects...) }

// Adopting sets the adoption policy.
func (r *script) Adopting(adopt stage.Adoption) *script { return r.adopting(adopt) }

// Become sets the active revisions.
func (s *Scenario) Become(revisions ...*script) { s.become(revisions...) }

// Roll calls Become, and waits until the engine is idle.
func (s *Scenario) Roll(t testing.TB, revisions ...*script) { s.roll(t, revisions...) }

// Release makes the engine release the objects of a revision instead of deleting them.
func (s *Scenario) Release(revision int64) { s.orphan[revision] = true }

// Refuse sets a function that answers writes and dry-runs; nil removes it.
func (s *Scenario) Refuse(answer func(verb string, ref manifest.Ref) error) { s.refuse = answer }

// Unreadable makes every read fail with an error.
func (s *Scenario) Unreadable(answer error) { s.unreadable = answer }

// Set changes a field of an object as a manager.
func (s *Scenario) Set(id manifest.ID, field, value, manager string) {
	s.alter(id, func(o *thing) { o.set(field, value, manager) })
}

// Terminate marks an object as being deleted.
func (s *Scenario) Terminate(id manifest.ID) {
	s.alter(id, func(o *thing) { o.deleting, o.finalizers = true, []string{"example.com/hold"} })
}

// Control gives an object a controller.
func (s *Scenario) Control(id manifest.ID, by *metav1.OwnerReference) {
	s.alter(id, func(o *thing) { o.controller = by })
}

// Place creates an object with another owner in the cluster.
func (s *Scenario) Place(ref manifest.Ref, data map[string]string) { s.place(ref, data) }

// Erase deletes an object.
func (s *Scenario) Erase(id manifest.ID) { s.erase(id) }

// Spent returns the writes and reads since the last call.
func (s *Scenario) Spent() (writes, reads []string) { return s.spent() }

// ServeWidgets serves the kind Widget in exactly these versions.
func (s *Scenario) ServeWidgets(versions ...string) { s.define(widgets(), serving(versions...)) }

// RefOf parses a reference (see refOf).
func RefOf(text string) manifest.Ref { return refOf(text) }

// ResourceOf returns the resource of an object (see resourceOf).
func ResourceOf(ref manifest.Ref) schema.GroupResource { return resourceOf(ref) }

// Try is a dry-run of server-side apply with force.
func (m *model) Try(_ context.Context, ref manifest.Ref, body []byte, o targetclient.TryOptions) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, "try "+ref.ID.String())
	if m.refuse != nil {
		if err := m.refuse("try", ref); err != nil {
			return nil, err
		}
	}
	fields, err := flatten(body)
	if err != nil {
		return nil, err
	}
	now := &thing{ref: ref, fields: map[string]owned{}, uid: "would-be"}
	if err := m.applies(ref, m.objects[ref.ID], false); err != nil && !(o.Merge && targetclient.IsVersionGone(err)) {
		return nil, err
	}
	if have := m.objects[ref.ID]; have != nil {
		if have.uid != o.UID || fmt.Sprint(have.version) != o.ResourceVersion {
			return nil, apierrors.NewConflict(resourceOf(ref), ref.Name, errors.New("it is another one"))
		}
		now = have.clone()
	}
	if o.Merge {
		now.merges(body, fields, "patch")
	} else {
		now.takes(fields, o.FieldManager)
	}
	return now.whole(), nil
}
