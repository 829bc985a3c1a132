package screens

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Diff has the changes between two revisions, or between the cluster and a revision.
type Diff struct {
	// Asked is the time of the diff, in RFC 3339. Objects in the cluster change after it.
	Asked string                 `json:"asked"`
	Diff  *v1alpha1.RevisionDiff `json:"diff"`
}

// narrowing returns the parameters by which pages may narrow a diff.
func narrowing() []string { return []string{"objectKind", "objectNamespace", "objectName", "unified"} }

func (a *API) diff(ctx context.Context, r *http.Request) (any, error) {
	name := r.PathValue("name")
	request := a.penstock.OlmV1alpha1().RESTClient().Get()
	// The first revision has no revision before it: its own diff shows everything as added.
	if own, only := strings.CutPrefix(name, ".."); only {
		request = request.Resource("clusterextensionrevisions").Name(own).SubResource("diff")
	} else {
		request = request.Resource("revisiondiffs").Name(name)
	}
	given := r.URL.Query()
	for _, key := range narrowing() {
		if given.Has(key) {
			request.Param(key, given.Get(key))
		}
	}
	read := &v1alpha1.RevisionDiff{}
	if err := request.Do(ctx).Into(read); err != nil {
		return nil, err
	}
	now := metav1.Now()
	return Diff{Asked: when(&now), Diff: read}, nil
}

func (a *API) history(ctx context.Context, r *http.Request) (any, error) {
	return a.penstock.OlmV1alpha1().RevisionHistories().Get(ctx, r.PathValue("name"), metav1.GetOptions{})
}

// objects returns the current state of each object of a revision, as far as the user may see it.
func (a *API) objects(ctx context.Context, r *http.Request) (any, error) {
	return a.penstock.OlmV1alpha1().ClusterExtensionRevisions().GetObjects(ctx, r.PathValue("name"), metav1.GetOptions{})
}

// ManifestObject is one object of a revision: its manifest.
type ManifestObject struct {
	Revision string `json:"revision"`
	Phase    string `json:"phase"`
	Digest   string `json:"digest"`
	// Size of the manifest in bytes.
	Size int64 `json:"size"`
	// Manifest is YAML, without the values of a Secret.
	Manifest string `json:"manifest"`
	// Hidden is true when values were left out.
	Hidden bool `json:"hidden,omitempty"`
}

// manifestOf reads the manifest of an object of a revision. The request names both.
func (a *API) manifestOf(ctx context.Context, r *http.Request) (*v1alpha1.RevisionManifest, error) {
	given := r.URL.Query()
	if given.Get("kind") == "" || given.Get("objectName") == "" {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Name", Message: "kind and objectName are required: they say which object"}
	}
	name := strings.Join([]string{r.PathValue("name"), given.Get("kind"), given.Get("namespace"), given.Get("objectName")}, ":")
	if wrong := content.IsPathSegmentName(name); len(wrong) > 0 {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Name", Message: fmt.Sprintf("%q is not the name of an object: %s", name, wrong[0])}
	}
	return a.penstock.OlmV1alpha1().RevisionManifests().Get(ctx, name, metav1.GetOptions{})
}

func (a *API) object(ctx context.Context, r *http.Request) (any, error) {
	found, err := a.manifestOf(ctx, r)
	if err != nil {
		return nil, err
	}
	name := found.Name
	out := ManifestObject{Revision: found.Revision, Phase: found.Phase, Digest: found.Digest, Size: found.Size}
	fields := map[string]any{}
	if err := json.Unmarshal(found.Object.Raw, &fields); err != nil {
		return nil, fmt.Errorf("reading the manifest of %s: %w", name, err)
	}
	raw := found.Object.Raw
	if out.Hidden = withoutSecrets(fields); out.Hidden {
		if raw, err = json.Marshal(fields); err != nil {
			return nil, fmt.Errorf("encoding the manifest of %s: %w", name, err)
		}
	}
	manifest, err := yaml.JSONToYAML(raw)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest of %s: %w", name, err)
	}
	out.Manifest = string(manifest)
	return out, nil
}

// withoutSecrets removes the values from a Secret: another person may see the screen, and a user
// who needs the values has kubectl.
func withoutSecrets(content map[string]any) (hidden bool) {
	if content["apiVersion"] != "v1" || content["kind"] != "Secret" {
		return false
	}
	for _, field := range []string{"data", "stringData"} {
		values, _ := content[field].(map[string]any)
		for key := range values {
			values[key], hidden = "hidden", true
		}
	}
	// kubectl apply keeps a copy of the values.
	if annotations, _, _ := unstructured.NestedMap(content, "metadata", "annotations"); annotations[corev1.LastAppliedConfigAnnotation] != nil {
		unstructured.RemoveNestedField(content, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
		hidden = true
	}
	return hidden
}
