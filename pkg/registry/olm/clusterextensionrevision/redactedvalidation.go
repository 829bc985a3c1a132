package clusterextensionrevision

import (
	"context"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/redact"
)

// quietly wraps the validation of a create so that its errors and warnings contain no hidden
// values. Validating admission sees the manifests and may quote them. The caller may have sent only
// digests, or may roll back to a revision whose Secrets they cannot read.
func quietly(validate rest.ValidateObjectFunc, redactor *redact.Redactor) rest.ValidateObjectFunc {
	if validate == nil {
		return nil
	}
	return func(ctx context.Context, obj runtime.Object) error {
		revision, ok := obj.(*olm.ClusterExtensionRevision)
		if !ok {
			return validate(ctx, obj)
		}
		// Most creates cause no errors or warnings.
		hidden := sync.OnceValue(func() *redact.Values { return hiddenOf(revision, redactor) })
		quiet := warning.WithWarningRecorder(ctx, quietWarnings(func(agent, text string) { warning.AddWarning(ctx, agent, hidden().Mask(text)) }))
		if err := validate(quiet, obj); err != nil {
			return hidden().Error(err)
		}
		return nil
	}
}

func hiddenOf(revision *olm.ClusterExtensionRevision, redactor *redact.Redactor) *redact.Values {
	values := redactor.Values(schema.GroupKind{})
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		var object map[string]any
		if entry.Object == nil || json.Unmarshal(entry.Object.Raw, &object) != nil {
			return
		}
		values.Add(keyOf(entry).ref().GroupKind(), object)
	})
	return values
}

// quietWarnings is a recorder that passes warnings to a function.
type quietWarnings func(agent, text string)

// AddWarning implements warning.Recorder.
func (w quietWarnings) AddWarning(agent, text string) { w(agent, text) }
