package rollout

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// reading returns the parts of an object that a gate reads, and the object's hidden fields, so that
// quotes of them in status can be masked. It adds no fields if the gate reads nothing, and none for
// Secrets, whose content is never cached.
func (e *Engine) reading(gate stage.Gate) probe.Reads {
	reads := gate.Probe.Reads()
	if gate.ID.IsSecret() || reads.Whole || !reads.Status && len(reads.Fields) == 0 {
		return reads
	}
	return reads.Union(probe.Reads{Fields: e.Redactor.Fields(gate.ID.GroupKind())})
}

// judge lets a probe judge an object by its true values, and takes the message from a second
// judgement of the redacted object. So the message never contains a hidden value. (Probes of
// Secrets see no content.)
func (e *Engine) judge(gate stage.Gate, object *unstructured.Unstructured, ask func(*unstructured.Unstructured) probe.Verdict) probe.Verdict {
	verdict := ask(object)
	kind := gate.ID.GroupKind()
	if verdict.Status == probe.True || gate.ID.IsSecret() || len(e.Redactor.Mask(kind)) == 0 {
		return verdict
	}
	shown := ask(&unstructured.Unstructured{Object: e.Redactor.Object(kind, object.Object)})
	if shown.Status != verdict.Status {
		verdict.Message = "does not pass its probe; why depends on a hidden field"
		return verdict
	}
	// Controllers may copy hidden values into status.
	verdict.Message = e.Redactor.Values(kind, object.Object).Mask(shown.Message)
	return verdict
}

// describeDrift describes drifts without hidden values. Even a path can contain a value: the key of
// a set's element.
func (e *Engine) describeDrift(id manifest.ID, drifts []managedfields.Drift, objects ...map[string]any) string {
	if len(e.Redactor.Mask(id.GroupKind())) == 0 {
		return managedfields.Describe(drifts)
	}
	return e.Redactor.Values(id.GroupKind(), objects...).Mask(managedfields.Describe(drifts))
}

// trouble returns the reason why an object's presence is unknown, redacted.
func (e *Engine) trouble(id manifest.ID) error {
	return e.Redactor.Error(id, e.Observer.Trouble(id))
}
