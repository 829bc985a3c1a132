package applycheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// decoders decode objects into Go types, as kube-apiserver does. Only decoding shows whether
// quantities, times and base64 are valid.
type decoders struct{ scheme *runtime.Scheme }

func newDecoders() (*decoders, error) {
	scheme := runtime.NewScheme()
	if err := kubernetesscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the types of Kubernetes: %w", err)
	}
	return &decoders{scheme}, nil
}

func (d *decoders) of(kind runtimeschema.GroupVersionKind) *decoder {
	if !d.scheme.Recognizes(kind) {
		return nil
	}
	return &decoder{scheme: d.scheme, kind: kind}
}

type decoder struct {
	scheme *runtime.Scheme
	kind   runtimeschema.GroupVersionKind
}

func (d *decoder) check(object *manifest.Object, findings *Findings) {
	into, err := d.scheme.New(d.kind)
	if err != nil {
		return
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object.JSON, into); err != nil {
		findings.add(Finding{Reason: Undecodable, Problem: undecodable(object.ID, err)})
	}
}

// undecodable returns the reason why an object does not match its kind. For a Secret, it has no
// detail, because decoders quote values.
func undecodable(id manifest.ID, err error) string {
	if id.IsSecret() {
		return "it cannot be read as a Secret: the values of data are base64, those of stringData text"
	}
	return fmt.Sprintf("it cannot be read as a %s: %s", id.Kind, text.Clip(err.Error(), maxProblemBytes))
}

// Decode decodes the JSON of an object for the checks: integers become int64.
func Decode(data []byte) (map[string]any, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil {
		return nil, err
	}
	return object, nil
}
