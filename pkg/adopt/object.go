package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/source/helm"
)

// State is the result of comparing an object in the cluster with the release.
type State string

const (
	// Same: the object equals the release. It is only adopted.
	Same State = "same"
	// Ours: the extension already owns the object.
	Ours State = "adopted"
	// Differs: the object was changed after the rollout.
	Differs State = "differs"
	// Gone: the object was deleted after the rollout.
	Gone State = "gone"
	// Others: the object has another owner now.
	Others State = "others"
	// Unknown: the caller cannot read the object, or the server does not answer.
	Unknown State = "unknown"
)

// Object is one object of the revision that becomes active.
type Object struct {
	manifest.ID
	State State
	// Detail names the differing fields, the owner, or the reason why the state is unknown. It
	// contains no values.
	Detail string
	// Served is the apiVersion in which the cluster has the object. It is set only when the cluster
	// no longer serves the apiVersion of the release.
	Served string
}

const (
	lookAtOnce = 8
	maxFields  = 3
	// looks is the number of attempts to read an object that changes during the comparison.
	looks = 5
)

func (a *Adopter) compare(ctx context.Context, taken *Taken) error {
	manifests := taken.Revisions[0].objects()
	taken.Objects = make([]Object, len(manifests))
	out := taken.Objects
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookAtOnce)
	for i, wanted := range manifests {
		group.Go(func() error {
			out[i] = Object{ID: wanted.ID}
			var err error
			for range looks {
				out[i].State, out[i].Detail, out[i].Served, err = a.look(ctx, taken, wanted)
				if err == nil || !targetclient.IsOvertaken(err) {
					break
				}
			}
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				out[i].State, out[i].Detail = Unknown, reasonOf(err)
			}
			return nil
		})
	}
	return group.Wait()
}

func reasonOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}

// look compares one object with its manifest, by a dry-run.
func (a *Adopter) look(ctx context.Context, taken *Taken, wanted manifest.Object) (state State, detail, served string, err error) {
	live, err := a.target.Read(ctx, wanted.Ref)
	switch {
	case apierrors.IsNotFound(err):
		return Gone, "", "", nil
	case meta.IsNoMatchError(err):
		return Unknown, "the cluster does not serve its kind", "", nil
	case err != nil:
		return "", "", "", err
	}
	if version := live.GetAPIVersion(); version != wanted.APIVersion() {
		return Unknown, fmt.Sprintf("the cluster no longer serves %s, and has the object as %s", wanted.APIVersion(), version), version, nil
	}
	state, detail, err = a.compareLive(ctx, taken, wanted, live)
	return state, detail, "", err
}

func (a *Adopter) compareLive(ctx context.Context, taken *Taken, wanted manifest.Object, live *unstructured.Unstructured) (State, string, error) {
	// After another rollout of the release, also an object of the extension can differ.
	if state, detail := taken.owner(live); state != "" && (state != Ours || !taken.again) {
		return state, detail, nil
	}
	var content map[string]any
	if err := utiljson.Unmarshal(wanted.JSON, &content); err != nil {
		return "", "", fmt.Errorf("reading the manifest of %s: %w", wanted.ID, err)
	}
	manager := managerOf(taken.extension)
	left := managedfields.Yielding(content, live.GetManagedFields(), manager, nil)
	managedfields.Cut(content, left.And(nil))
	body, err := json.Marshal(content)
	if err != nil {
		return "", "", err
	}
	tried, err := a.target.Try(ctx, wanted.Ref, body, targetclient.TryOptions{
		FieldManager: manager, Precondition: targetclient.Precondition{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()},
	})
	if err != nil {
		return "", "", err
	}
	fields := differing(plain(live), plain(tried))
	if len(fields) == 0 {
		if len(left) > 0 {
			return Same, "leaves " + left.String(), nil
		}
		return Same, "", nil
	}
	named := strings.Join(fields[:min(len(fields), maxFields)], ", ")
	if more := len(fields) - maxFields; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return Differs, named, nil
}

func managerOf(extension string) string { return v1alpha1.FieldManagerPrefix + extension }

// owner returns the state and the owner of an object that has another owner than the installation.
func (t *Taken) owner(live *unstructured.Unstructured) (State, string) {
	switch chain := live.GetLabels()[v1alpha1.ChainLabel]; {
	case chain == t.extension && managedfields.ApplyOf(live.GetManagedFields(), managerOf(chain)) != nil:
		return Ours, ""
	case chain != "" && chain != t.extension:
		return Others, fmt.Sprintf("belongs to the extension %s", chain)
	}
	if live.GetDeletionTimestamp() != nil {
		return Unknown, "is being deleted"
	}
	return t.foreign(live)
}

func controlled(live *unstructured.Unstructured) (State, string) {
	if controller := metav1.GetControllerOf(live); controller != nil {
		return Others, fmt.Sprintf("is controlled by %s %s", controller.Kind, controller.Name)
	}
	return "", ""
}

// belongsElsewhere returns the state and the owner of an object of a Helm release that has another
// owner. Helm sets no controller reference.
func (r Request) belongsElsewhere(live *unstructured.Unstructured) (State, string) {
	if state, detail := controlled(live); state != "" {
		return state, detail
	}
	annotations := live.GetAnnotations()
	if name, namespace := annotations[helm.NameAnnotation], annotations[helm.NamespaceAnnotation]; name != "" && (name != r.Release || namespace != r.Namespace) {
		return Others, fmt.Sprintf("belongs to the Helm release %s/%s", namespace, name)
	}
	return "", ""
}

// plain returns an object without the fields that change with every write, and without the marks
// that adoption adds.
func plain(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	delete(content, "status")
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		delete(metadata, field)
	}
	for field, marks := range map[string][]string{
		"annotations": {helm.TeardownAnnotation, v1alpha1.AppliedAnnotation}, "labels": {v1alpha1.ChainLabel},
	} {
		entries, _ := metadata[field].(map[string]any)
		entries = maps.Clone(entries)
		for _, mark := range marks {
			delete(entries, mark)
		}
		if metadata[field] = entries; len(entries) == 0 {
			delete(metadata, field)
		}
	}
	content["metadata"] = metadata
	return content
}

// differing returns the paths at which two values differ, sorted. Lists of different length differ
// as a whole.
func differing(before, after any) []string {
	var found []string
	walk("", before, after, &found)
	slices.Sort(found)
	return found
}

func walk(path string, before, after any, found *[]string) {
	one, isMap := before.(map[string]any)
	other, both := after.(map[string]any)
	list, isList := before.([]any)
	second, bothLists := after.([]any)
	switch {
	case equality.Semantic.DeepEqual(before, after):
	case isMap && both:
		keys := map[string]bool{}
		for key := range one {
			keys[key] = true
		}
		for key := range other {
			keys[key] = true
		}
		for key := range keys {
			walk(path+"."+key, one[key], other[key], found)
		}
	case isList && bothLists && len(list) == len(second):
		for i := range list {
			walk(fmt.Sprintf("%s[%d]", path, i), list[i], second[i], found)
		}
	default:
		*found = append(*found, path)
	}
}
