package clusterextensionrevision

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// maxManifestErrors bounds the invalid manifests in one answer: many errors usually have one cause.
const maxManifestErrors = 50

// inliner replaces inline manifests by identity and digest. It works on a decoded request body, and
// on a revision whose manifests have passed the filter.
type inliner struct {
	digester manifest.Digester
}

// entryKey identifies the object of an entry. Two entries with equal keys have the same content.
type entryKey struct {
	apiVersion, kind, namespace, name, digest string
}

func keyOf(entry *olm.RevisionObject) entryKey {
	return entryKey{entry.APIVersion, entry.Kind, entry.Namespace, entry.Name, entry.Digest}
}

func keyOfManifest(object manifest.Object) entryKey {
	return entryKey{object.APIVersion(), object.Kind, object.Namespace, object.Name, string(object.Digest)}
}

func keyOfTree(entry map[string]any) entryKey {
	text := func(name string) string {
		value, _ := entry[name].(string)
		return value
	}
	return entryKey{text("apiVersion"), text("kind"), text("namespace"), text("name"), text("digest")}
}

func (k entryKey) String() string {
	if k.namespace == "" {
		return fmt.Sprintf("%s %s %s", k.apiVersion, k.kind, k.name)
	}
	return fmt.Sprintf("%s %s %s/%s", k.apiVersion, k.kind, k.namespace, k.name)
}

// sizeOf returns the size of a manifest that its entry shows, in bytes. It is 0 for a Secret: the
// size helps to guess the content.
func sizeOf(object manifest.Object) int64 {
	if object.IsSecret() {
		return 0
	}
	return int64(len(object.JSON))
}

// contradiction returns an error if the fields of an entry contradict its manifest. Empty fields
// contradict nothing.
func contradiction(given entryKey, object manifest.Object) error {
	found := keyOfManifest(object)
	for _, claim := range []struct{ field, given, found string }{
		{"apiVersion", given.apiVersion, found.apiVersion},
		{"kind", given.kind, found.kind},
		{"namespace", given.namespace, found.namespace},
		{"name", given.name, found.name},
		{"digest", given.digest, found.digest},
	} {
		if claim.given == "" || claim.given == claim.found {
			continue
		}
		if claim.field == "digest" && object.IsSecret() {
			return errors.New("the digest of the entry is not that of the manifest: remove one of them")
		}
		return fmt.Errorf("the entry says %s %q, but the manifest has %q: remove one of them", claim.field, claim.given, claim.found)
	}
	return nil
}

// rewriteTree replaces the manifests of a decoded body, puts them into held, and reports whether it
// changed the body. Entries with an invalid manifest stay unchanged. known returns the entries of
// the stored revision. A manifest that an older Penstock stored without status stays without it.
func (i inliner) rewriteTree(tree map[string]any, known func() map[entryKey]facts, held *staged) bool {
	changed := rewriteLastAppliedOfTree(tree)
	eachEntry(tree, func(entry map[string]any) {
		if object, ok := i.manifestOfTree(entry); ok {
			if earlier, had, err := i.digester.WithoutStatus(object); err == nil && had {
				if _, stored := known()[keyOfManifest(earlier)]; stored {
					object = earlier
				}
			}
			held.add(object)
			writeTree(entry, object)
			changed = true
		}
	})
	return changed
}

// entriesWithoutManifest returns the entries of a decoded body that name their
// object by digest alone.
func entriesWithoutManifest(tree map[string]any) []map[string]any {
	var entries []map[string]any
	eachEntry(tree, func(entry map[string]any) {
		if _, inline := entry["object"]; !inline && entry["digest"] != nil {
			entries = append(entries, entry)
		}
	})
	return entries
}

// eachEntry calls f for every well-formed entry of every phase. The endpoint reports the other
// entries.
func eachEntry(tree map[string]any, f func(entry map[string]any)) {
	spec, _ := tree["spec"].(map[string]any)
	phases, _ := spec["phases"].([]any)
	for _, phase := range phases {
		phase, _ := phase.(map[string]any)
		objects, _ := phase["objects"].([]any)
		for _, entry := range objects {
			if entry, ok := entry.(map[string]any); ok {
				f(entry)
			}
		}
	}
}

func (i inliner) manifestOfTree(entry map[string]any) (manifest.Object, bool) {
	body, ok := entry["object"].(map[string]any)
	if !ok {
		return manifest.Object{}, false
	}
	for _, name := range []string{"apiVersion", "kind", "namespace", "name", "digest"} {
		if value, given := entry[name]; given {
			if _, ok := value.(string); !ok {
				return manifest.Object{}, false
			}
		}
	}
	object, err := i.digester.New(body)
	if err != nil || contradiction(keyOfTree(entry), object) != nil {
		return manifest.Object{}, false
	}
	return object, true
}

func writeTree(entry map[string]any, object manifest.Object) {
	delete(entry, "object")
	delete(entry, "namespace")
	key := keyOfManifest(object)
	entry["apiVersion"], entry["kind"], entry["name"], entry["digest"] = key.apiVersion, key.kind, key.name, key.digest
	if key.namespace != "" {
		entry["namespace"] = key.namespace
	}
	factsOf(object).ontoTree(entry)
}

// rewriteRevision works like rewriteTree, for manifests that passed the filter. Entries whose
// manifest is invalid, or was not in the request, stay inline; invalidManifests reports them.
//
// Mutating admission runs between the filter and this function, and sees digests. If a webhook
// replaces a digest by a manifest, it changes the sent content, and the request is refused.
func (i inliner) rewriteRevision(revision *olm.ClusterExtensionRevision, held *staged) {
	for p := range revision.Spec.Phases {
		entries := revision.Spec.Phases[p].Objects
		for e := range entries {
			if entries[e].Object == nil {
				continue
			}
			if strange(&entries[e], held) {
				continue
			}
			if object, err := i.manifestOf(&entries[e]); err == nil && held.admits(object) {
				held.add(object)
				writeEntry(&entries[e], object)
			}
		}
	}
	rewriteLastApplied(revision.Annotations)
}

func (i inliner) manifestOf(entry *olm.RevisionObject) (manifest.Object, error) {
	object, err := i.digester.FromJSON(entry.Object.Raw)
	if err != nil {
		return manifest.Object{}, err
	}
	return object, contradiction(keyOf(entry), object)
}

func writeEntry(entry *olm.RevisionObject, object manifest.Object) {
	key := keyOfManifest(object)
	*entry = olm.RevisionObject{
		APIVersion:          key.apiVersion,
		Kind:                key.kind,
		Namespace:           key.namespace,
		Name:                key.name,
		Digest:              key.digest,
		CollisionProtection: entry.CollisionProtection,
	}
	factsOf(object).onto(entry)
}

// onlyAsOne is the end of the error about an inline manifest that the filter has not seen.
const onlyAsOne = "mutating admission must not add a manifest, and a JSON patch must set a manifest as one value"

// strange reports whether an entry has an inline manifest of a Secret that the filter has not seen.
// It is not used, because the caller's right to know the stored Secret was not checked.
func strange(entry *olm.RevisionObject, held *staged) bool {
	object, err := manifest.Parse(entry.Object.Raw)
	return err == nil && object.IsSecret() && held.strange(object.ID)
}

// invalidManifests returns the errors about manifests that are still inline. The error for a
// strange Secret does not depend on the stored content.
func (i inliner) invalidManifests(revision *olm.ClusterExtensionRevision, held *staged) field.ErrorList {
	var errs field.ErrorList
	for p := range revision.Spec.Phases {
		for e := range revision.Spec.Phases[p].Objects {
			entry := &revision.Spec.Phases[p].Objects[e]
			if entry.Object == nil || len(errs) >= maxManifestErrors {
				continue
			}
			path := objectPath(p, e).Child("object")
			if strange(entry, held) {
				errs = append(errs, field.Forbidden(path, "this manifest of a Secret did not come with the request: "+onlyAsOne))
				continue
			}
			object, err := i.manifestOf(entry)
			var invalid *manifest.InvalidError
			switch {
			case errors.As(err, &invalid):
				errs = append(errs, invalid.Under(path)...)
			case err != nil:
				errs = append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
			default:
				errs = append(errs, field.Forbidden(path, fmt.Sprintf(
					"this manifest of %s did not come with the request: %s", keyOfManifest(object), onlyAsOne)))
			}
		}
	}
	return errs
}

func objectPath(phase, entry int) *field.Path {
	return field.NewPath("spec", "phases").Index(phase).Child("objects").Index(entry)
}

// rewriteLastAppliedOfTree works like rewriteLastApplied, for a decoded body.
func rewriteLastAppliedOfTree(tree map[string]any) bool {
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	recorded, ok := annotations[corev1.LastAppliedConfigAnnotation].(string)
	if !ok {
		return false
	}
	shortened, changed := withoutObjects(recorded)
	if changed {
		annotations[corev1.LastAppliedConfigAnnotation] = shortened
	}
	return changed
}

// rewriteLastApplied empties the lists of objects in the annotation of client-side `kubectl apply`.
// With manifests, the annotation would exceed the limit of 256 KiB, and show Secrets to all users
// who may read revisions.
//
// The lists and phases themselves stay, so that kubectl notices their removal from the file.
// kubectl compares a list of objects with the live list as a whole, so it does not need the
// content.
func rewriteLastApplied(annotations map[string]string) {
	if shortened, changed := withoutObjects(annotations[corev1.LastAppliedConfigAnnotation]); changed {
		annotations[corev1.LastAppliedConfigAnnotation] = shortened
	}
}

func withoutObjects(recorded string) (string, bool) {
	if recorded == "" {
		return recorded, false
	}
	var tree map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(recorded), &tree); err != nil {
		return recorded, false
	}
	changed := false
	spec, _ := tree["spec"].(map[string]any)
	phases, _ := spec["phases"].([]any)
	for _, phase := range phases {
		phase, _ := phase.(map[string]any)
		if objects, ok := phase["objects"].([]any); ok && len(objects) > 0 {
			phase["objects"] = []any{}
			changed = true
		}
	}
	if !changed {
		return recorded, false
	}
	shortened, err := json.Marshal(tree)
	if err != nil {
		return recorded, false
	}
	return string(shortened), true
}
