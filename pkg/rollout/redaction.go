package rollout

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// reading adds the hidden fields of the object to what a gate reads, so that they can be
// recognised where the status of the object quotes them. It adds nothing for an object of
// which the gate reads nothing, and nothing for Secrets, whose content is never kept.
func (e *Engine) reading(gate stage.Gate) probe.Reads {
	reads := gate.Probe.Reads()
	if gate.ID.IsSecret() || reads.Whole || !reads.Status && len(reads.Fields) == 0 {
		return reads
	}
	return reads.Union(probe.Reads{Fields: e.Redactor.Fields(gate.ID.GroupKind())})
}

// judge lets a probe judge an object by its true values, and takes the words from
// its judgement of the object as it may be shown. So whatever a probe does with a
// hidden value, nothing of it is in a message. (Probes of Secrets see no content.)
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
	// Controllers write into status what they like.
	verdict.Message = e.Redactor.Values(kind, object.Object).Mask(shown.Message)
	return verdict
}

// describeDrift is the description of drifts that may be shown. Paths into sets have values
// in them.
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
