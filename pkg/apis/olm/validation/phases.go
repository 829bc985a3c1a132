package validation

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// maxObjectErrors bounds the reported errors of objects. A mistake in a generator causes the same
// error thousands of times.
const maxObjectErrors = 32

func validatePhases(phases []olm.RevisionPhase, path *field.Path) field.ErrorList {
	if errs := validateAmounts(phases, path); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i, phase := range phases {
		errs = append(errs, validatePhaseName(phase.Name, names, path.Index(i).Child("name"))...)
		errs = append(errs, validateCollisionProtection(phase.CollisionProtection, path.Index(i).Child("collisionProtection"), optional)...)
	}
	return append(errs, validateObjects(phases, path)...)
}

// validateAmounts checks the limits that do not need single objects. It bounds the work of the
// checks that follow.
func validateAmounts(phases []olm.RevisionPhase, path *field.Path) field.ErrorList {
	if len(phases) > v1alpha1.MaxPhases {
		return field.ErrorList{tooMany(path, len(phases), fmt.Sprintf("a revision has at most %d phases", v1alpha1.MaxPhases))}
	}
	objects, createOnly, size := 0, 0, int64(0)
	for _, phase := range phases {
		objects += len(phase.Objects)
		for _, object := range phase.Objects {
			size += max(object.Size, 0)
			if object.CreateOnly {
				createOnly++
			}
		}
	}
	var errs field.ErrorList
	if objects > v1alpha1.MaxObjects {
		errs = append(errs, tooMany(path, objects, fmt.Sprintf("a revision has at most %d objects in all its phases", v1alpha1.MaxObjects)))
	}
	if createOnly > v1alpha1.MaxCreateOnlyObjects {
		errs = append(errs, tooMany(path, createOnly, fmt.Sprintf("a revision has at most %d create-only objects in all its phases", v1alpha1.MaxCreateOnlyObjects)))
	}
	if size > v1alpha1.MaxManifestBytes {
		errs = append(errs, tooLong(path, fmt.Sprintf("the manifests have %d bytes as canonical JSON, must have at most %d", size, v1alpha1.MaxManifestBytes)))
	}
	return errs
}

func validatePhaseName(name string, taken map[string]bool, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a phase needs a name")}
	}
	var errs field.ErrorList
	for _, problem := range utilvalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	if taken[name] {
		errs = append(errs, field.Duplicate(path, name))
	}
	taken[name] = true
	return errs
}

func validateObjects(phases []olm.RevisionPhase, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	places := map[manifest.ID]*field.Path{}
	for i, phase := range phases {
		for j := range phase.Objects {
			if len(errs) >= maxObjectErrors {
				return append(errs, field.Invalid(path, field.OmitValueType{},
					fmt.Sprintf("%d errors are listed, objects from %s on were not looked at", len(errs), path.Index(i).Child("objects").Index(j))))
			}
			errs = append(errs, validateObject(&phase.Objects[j], places, path.Index(i).Child("objects").Index(j))...)
		}
	}
	return errs
}

// validateObject checks one entry and records its position in places.
func validateObject(object *olm.RevisionObject, places map[manifest.ID]*field.Path, path *field.Path) field.ErrorList {
	if object.Object != nil {
		return field.ErrorList{field.InternalError(path.Child("object"), errors.New("the manifest was not replaced by its identity and digest"))}
	}
	errs := validateCollisionProtection(object.CollisionProtection, path.Child("collisionProtection"), optional)
	if object.Size < 0 {
		errs = append(errs, field.Invalid(path.Child("size"), object.Size, "must not be negative"))
	}
	id, identity := validateObjectIdentity(object, path)
	if len(identity) > 0 {
		return append(errs, identity...)
	}
	errs = append(errs, validateDigest(object.Digest, id, path.Child("digest"))...)
	if first, found := places[id]; found {
		return append(errs, &field.Error{Type: field.ErrorTypeDuplicate, Field: path.String(), BadValue: id.String(),
			Detail: fmt.Sprintf("is also at %s: an object can be in a revision only once, in any version of its API", first)})
	}
	places[id] = path
	return errs
}

func validateObjectIdentity(object *olm.RevisionObject, path *field.Path) (manifest.ID, field.ErrorList) {
	var errs field.ErrorList
	group, problems := validateAPIVersion(object.APIVersion, path.Child("apiVersion"))
	errs = append(errs, problems...)
	errs = append(errs, validateKind(object.Kind, path.Child("kind"))...)
	if object.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), missingIdentity))
	}
	errs = append(errs, validatePathSegment(object.Name, path.Child("name"))...)
	errs = append(errs, validatePathSegment(object.Namespace, path.Child("namespace"))...)
	return manifest.ID{Group: group, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}, errs
}

const missingIdentity = "an entry has either a manifest in object, or apiVersion, kind, name and digest"

func validateAPIVersion(apiVersion string, path *field.Path) (group string, errs field.ErrorList) {
	if apiVersion == "" {
		return "", field.ErrorList{field.Required(path, missingIdentity)}
	}
	parsed, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || parsed.String() != apiVersion ||
		len(utilvalidation.IsDNS1035Label(parsed.Version)) > 0 ||
		parsed.Group != "" && len(utilvalidation.IsDNS1123Subdomain(parsed.Group)) > 0 {
		return "", field.ErrorList{field.Invalid(path, apiVersion, "must be <group>/<version>, or v1 for the core group")}
	}
	return parsed.Group, nil
}

// validateKind applies the rule of CustomResourceDefinitions for kinds.
func validateKind(kind string, path *field.Path) field.ErrorList {
	if kind == "" {
		return field.ErrorList{field.Required(path, missingIdentity)}
	}
	if len(utilvalidation.IsDNS1035Label(strings.ToLower(kind))) > 0 {
		return field.ErrorList{field.Invalid(path, kind, "must be letters and digits, such as ConfigMap")}
	}
	return nil
}

// validatePathSegment refuses names that would change the path of a request. The API server of the
// kind checks the rest.
func validatePathSegment(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range content.IsPathSegmentName(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}

func validateDigest(digest string, id manifest.ID, path *field.Path) field.ErrorList {
	parsed := manifest.Digest(digest)
	switch {
	case digest == "":
		return field.ErrorList{field.Required(path, missingIdentity)}
	case parsed.Validate() != nil:
		return field.ErrorList{field.Invalid(path, digest, "must be sha256:<64 hexadecimal digits in lower case>, or hmac-sha256:<…> for a Secret")}
	case parsed.Keyed() && !id.IsSecret():
		return field.ErrorList{field.Invalid(path, digest, fmt.Sprintf("must start with sha256: only digests of Secrets are keyed, and this is a %s", id.GroupKind()))}
	case !parsed.Keyed() && id.IsSecret():
		return field.ErrorList{field.Invalid(path, digest, "must start with hmac-sha256: a plain hash of a Secret would let its content be guessed")}
	}
	return nil
}
