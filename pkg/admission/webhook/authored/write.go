package authored

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

// Write is a request that creates or changes an object.
type Write struct {
	// Object is the written object, and Old the stored object, nil for a creation.
	Object, Old *unstructured.Unstructured
	// ForOthers is true if the user writes on behalf of another user.
	ForOthers bool
	// Brings is true if the user may write the stamp of another author.
	Brings bool

	subject author.Subject
	user    authenticationv1.UserInfo
	key     author.Key
	now     time.Time
}

func newWrite(r webhook.Review, subject author.Subject, key author.Key, now time.Time) (*Write, error) {
	w := &Write{subject: subject, user: r.User, key: key, now: now}
	var err error
	if w.Object, err = read(r.ObjectJSON); err != nil {
		return nil, err
	}
	if r.Operation == admissionv1.Update {
		w.Old, err = read(r.OldJSON)
	}
	return w, err
}

// read keeps integers, like all later readers of the object.
func read(text []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if len(text) == 0 {
		return nil, errors.New("the review has no object")
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &object.Object); err != nil || object.Object == nil {
		return nil, errors.New("it is not the JSON of an object")
	}
	return object, nil
}

// written returns the value of the annotation, "" if it is absent.
func written(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return object.GetAnnotations()[extension.AuthorAnnotation]
}

// Changes reports whether the write creates the object, or changes the part of it that its author is
// responsible for (see author.Subject).
func (w *Write) Changes() bool {
	return w.Old == nil || w.subject.Spec && w.changesGeneration() ||
		!maps.Equal(w.subject.Annotations(w.Object.GetAnnotations()), w.subject.Annotations(w.Old.GetAnnotations()))
}

// MakesStamp reports whether the user who writes becomes the author.
func (w *Write) MakesStamp() bool { return w.Changes() || written(w.Object) == author.Renew }

// ChangesStamp reports whether the write changes the stamp itself.
func (w *Write) ChangesStamp() bool { return written(w.Object) != written(w.Old) }

// changesGeneration reports whether kube-apiserver increases the generation. For a custom resource
// with a status it does so when a field outside of metadata and status changes
// (k8s.io/apiextensions-apiserver, registry/customresource: PrepareForUpdate).
func (w *Write) changesGeneration() bool {
	return !equality.Semantic.DeepEqual(content(w.Object), content(w.Old))
}

func content(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	delete(fields, "metadata")
	delete(fields, "status")
	return fields
}

// generation returns the generation for a stamp: metadata.generation after this write, or 0 if the
// subject does not include the spec.
func (w *Write) generation() int64 {
	switch {
	case !w.subject.Spec:
		return 0
	case w.Old == nil:
		return 1
	case w.changesGeneration():
		return w.Old.GetGeneration() + 1
	default:
		return w.Old.GetGeneration()
	}
}

// IsStamped reports whether the object has a recent stamp of this user, for this content and the given
// generation.
func (w *Write) IsStamped(generation int64) bool {
	stamp, err := w.subject.Written(w.key, w.Object)
	return err == nil && stamp.Generation == generation && w.now.Sub(stamp.Time).Abs() <= author.CreationSkew && isStampOf(stamp, w.user)
}

// IsBrought reports whether the user may write other authors' stamps, and the object has a recent,
// valid stamp of any author for this content and the given generation.
func (w *Write) IsBrought(generation int64) bool {
	if !w.Brings {
		return false
	}
	stamp, err := w.subject.Written(w.key, w.Object)
	return err == nil && stamp.Generation == generation && w.now.Sub(stamp.Time).Abs() <= author.CreationSkew
}

// IsDropped reports whether an update by a user who may write other authors' stamps leaves the
// object without a stamp, and changes only metadata or status. The old object must not have a valid
// stamp, so that the update removes no author.
func (w *Write) IsDropped() bool {
	if !w.Brings || w.Old == nil || written(w.Object) != "" || w.changesGeneration() {
		return false
	}
	_, err := w.subject.Verify(w.key, w.Old)
	return err != nil
}

// isStampOf reports whether a stamp names a user and the user's present groups.
func isStampOf(stamp *author.Stamp, who authenticationv1.UserInfo) bool {
	return stamp.User == who.Username && stamp.UID == who.UID && slices.Equal(stamp.Groups, who.Groups) &&
		maps.EqualFunc(stamp.Extra, extra(who), slices.Equal[[]string])
}

func extra(who authenticationv1.UserInfo) map[string][]string {
	values := make(map[string][]string, len(who.Extra))
	for key, value := range who.Extra {
		values[key] = value
	}
	return values
}

// newStamp returns a signed stamp of the user who writes.
func (w *Write) newStamp(bypass bool) (*author.Stamp, error) {
	digest, err := w.subject.Digest(w.Object)
	if err != nil {
		return nil, err
	}
	stamp := &author.Stamp{
		User: w.user.Username, UID: w.user.UID, Groups: w.user.Groups, Extra: extra(w.user), Time: w.now, Bypass: bypass,
		Kind: w.subject.Mark(), Name: w.Object.GetName(), Namespace: w.Object.GetNamespace(), Generation: w.generation(), Digest: digest,
	}
	if stamp.Name == "" {
		stamp.Name = w.Object.GetGenerateName()
	}
	if w.Old != nil {
		stamp.Extension = string(w.Old.GetUID())
	}
	stamp.Chosen = w.chosen()
	return stamp, w.key.Sign(stamp)
}

// chosen returns the last write that changed spec.source: this write, or the write that the old
// stamp names.
func (w *Write) chosen() *author.Choice {
	if !w.subject.Spec {
		return nil
	}
	if w.Old == nil {
		return author.Choose(nil, true, nil, nil, w.generation(), w.now)
	}
	var before *author.Choice
	if former, err := w.subject.Verify(w.key, w.Old); err == nil {
		before = former.Chosen
	}
	return author.Choose(before, false, source(w.Old), source(w.Object), w.generation(), w.now)
}

func source(object *unstructured.Unstructured) any {
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "source")
	return found
}

// unsigned removes the stamp, because it is for the previous content.
func (w *Write) unsigned() webhook.Answer {
	if written(w.Object) == "" {
		return webhook.Answer{}
	}
	return webhook.Answer{Annotations: map[string]*string{extension.AuthorAnnotation: nil}}
}

func (w *Write) keepOld() webhook.Answer {
	before, found := w.Old.GetAnnotations()[extension.AuthorAnnotation]
	switch {
	case written(w.Object) == before:
		return webhook.Answer{}
	case found:
		return webhook.Answer{Annotations: map[string]*string{extension.AuthorAnnotation: &before}}
	default:
		return webhook.Answer{Annotations: map[string]*string{extension.AuthorAnnotation: nil}}
	}
}

// takeover warns a user who changes a part of another author's object: the user becomes the author
// of all of it.
func (w *Write) takeover() []string {
	if w.Old == nil {
		return nil
	}
	before, err := w.subject.Verify(w.key, w.Old)
	if err != nil || before.User == w.user.Username {
		return nil
	}
	return []string{fmt.Sprintf("%s %s was written by %s until now; from now on Penstock acts on it in the name of %s", w.subject.Kind.Kind, w.Old.GetName(), before.User, w.user.Username)}
}
