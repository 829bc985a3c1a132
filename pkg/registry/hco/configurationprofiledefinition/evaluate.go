package configurationprofiledefinition

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco"
)

// Evaluator computes the current plan of a definition, for the caller of a request.
type Evaluator interface {
	Evaluate(ctx context.Context, definition *hco.ConfigurationProfileDefinition, options *hco.JSONObject) (*hco.ProfileEvaluationStatus, error)
}

// EvaluateREST serves the subresource evaluate: the answer to a POST with options has items with
// their diffs. Nothing is stored.
type EvaluateREST struct {
	store     *genericregistry.Store
	evaluator Evaluator
}

var _ rest.NamedCreater = &EvaluateREST{}

// New returns an empty request.
func (*EvaluateREST) New() runtime.Object { return &hco.ProfileEvaluation{} }

// Destroy does nothing: the main resource owns the store.
func (*EvaluateREST) Destroy() {}

// Create returns the items of a definition for the options of the request.
func (r *EvaluateREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	asked := obj.(*hco.ProfileEvaluation)
	asked.Name, asked.Status = name, hco.ProfileEvaluationStatus{}
	if validate != nil {
		if err := validate(ctx, asked.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	found, err := r.store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	answer, err := r.evaluator.Evaluate(ctx, found.(*hco.ConfigurationProfileDefinition), asked.Spec.Options)
	if err != nil {
		return nil, err
	}
	asked.Status = *answer
	return asked, nil
}
