package cel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Digest returns the digest of a definition's logic: its spec without the description.
func Digest(spec *v1alpha1.ConfigurationProfileDefinitionSpec) string {
	logic := spec.DeepCopy()
	logic.Description = ""
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(logic)
	if err != nil {
		panic(err) // it has only strings, lists and decoded JSON
	}
	raw, err := json.Marshal([]any{"penstock/definition/1", content})
	if err != nil {
		panic(err) // it is JSON
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Manifest returns a definition in the form that a plan keeps.
func Manifest(name string, spec *v1alpha1.ConfigurationProfileDefinitionSpec) (manifest.Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return manifest.Object{}, fmt.Errorf("keeping definition %s: %w", name, err)
	}
	return manifest.Digester{}.New(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "ConfigurationProfileDefinition",
		"metadata": map[string]any{"name": name}, "spec": content,
	})
}

// OfManifest is the inverse of Manifest.
func OfManifest(raw []byte) (*v1alpha1.ConfigurationProfileDefinition, error) {
	kept := &unstructured.Unstructured{}
	if err := kept.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("reading a definition: %w", err)
	}
	definition := &v1alpha1.ConfigurationProfileDefinition{}
	if err := json.Unmarshal(raw, definition); err != nil {
		return nil, fmt.Errorf("reading definition %s: %w", kept.GetName(), err)
	}
	return definition, nil
}
