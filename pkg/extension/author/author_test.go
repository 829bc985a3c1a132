package author

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/extension"
)

var written = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

func key() Key { return NewKey([]byte("the secret of a store")) }

func stored() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"namespace": "argocd", "source": map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": "argocd-operator"}},
	}}}
	object.SetGroupVersionKind(extension.Kind)
	object.SetName("argocd")
	object.SetUID("u1")
	object.SetGeneration(1)
	object.SetCreationTimestamp(metav1.NewTime(written))
	object.SetAnnotations(map[string]string{extension.ApprovalAnnotation: "Manual", "example.com/team": "a"})
	return object
}

func stamped(t *testing.T, object *unstructured.Unstructured, change func(*Stamp)) *unstructured.Unstructured {
	t.Helper()
	digest, err := ClusterExtensions().Digest(object)
	if err != nil {
		t.Fatal(err)
	}
	stamp := &Stamp{
		User: "alice", UID: "1", Groups: []string{"team-a"}, Extra: map[string][]string{"scope": {"x"}}, Time: written,
		Extension: string(object.GetUID()), Name: object.GetName(), Generation: object.GetGeneration(), Digest: digest,
	}
	if change != nil {
		change(stamp)
	}
	if err := key().Sign(stamp); err != nil {
		t.Fatal(err)
	}
	value, err := stamp.Encode()
	if err != nil {
		t.Fatal(err)
	}
	annotations := object.GetAnnotations()
	annotations[extension.AuthorAnnotation] = value
	object.SetAnnotations(annotations)
	return object
}

func created(s *Stamp) { s.Extension = "" }

func TestVerify(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		stamp   func(*Stamp)
		change  func(*unstructured.Unstructured)
		problem Problem
	}{
		"AsWritten":     {reason: "what it was made for"},
		"AtCreation":    {reason: "nobody knew the uid", stamp: created},
		"OtherMetadata": {reason: "labels and annotations of others are not its business", change: func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) }},
		"OtherTeam": {reason: "an annotation of others", change: func(o *unstructured.Unstructured) {
			annotate(o, "example.com/team", "b")
		}},
		"None":          {reason: "written before we ran", change: func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, problem: Missing},
		"NoJSON":        {reason: "not ours", change: func(o *unstructured.Unstructured) { annotate(o, extension.AuthorAnnotation, "alice") }, problem: Unreadable},
		"MoreJSON":      {reason: "not ours", change: func(o *unstructured.Unstructured) { edit(o, "}", "}{}") }, problem: Unreadable},
		"UnknownField":  {reason: "not ours", change: func(o *unstructured.Unstructured) { edit(o, "{", `{"admin":true,`) }, problem: Unreadable},
		"OtherUser":     {reason: "forged", change: func(o *unstructured.Unstructured) { edit(o, `"alice"`, `"admin"`) }, problem: Unsigned},
		"OtherGroups":   {reason: "forged", change: func(o *unstructured.Unstructured) { edit(o, `"team-a"`, `"system:masters"`) }, problem: Unsigned},
		"MayBypass":     {reason: "forged", change: func(o *unstructured.Unstructured) { edit(o, `"name"`, `"bypass":true,"name"`) }, problem: Unsigned},
		"Later":         {reason: "forged", change: func(o *unstructured.Unstructured) { edit(o, "2026-11-23", "2026-11-24") }, problem: Unsigned},
		"OtherSpec":     {reason: "changed without a stamp", change: func(o *unstructured.Unstructured) { setSpec(o, "kube-system") }, problem: OtherContent},
		"OtherApproval": {reason: "changed without a stamp", change: func(o *unstructured.Unstructured) { annotate(o, extension.ApprovalAnnotation, "Automatic") }, problem: OtherContent},
		"Added":         {reason: "changed without a stamp", change: func(o *unstructured.Unstructured) { annotate(o, extension.TargetAnnotation, "x") }, problem: OtherContent},
		"Removed": {reason: "changed without a stamp", change: func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations", extension.ApprovalAnnotation)
		}, problem: OtherContent},
		"ThereAndBack": {reason: "the generation says that it was another meanwhile", change: func(o *unstructured.Unstructured) { o.SetGeneration(3) }, problem: OtherContent},
		"Deleting":     {reason: "the beginning of a deletion counts the generation up", change: func(o *unstructured.Unstructured) { remove(o, 1) }},
		"DeletingBack": {reason: "it was another before the deletion", change: func(o *unstructured.Unstructured) { remove(o, 2) }, problem: OtherContent},
		"CopiedStamp":  {reason: "of another extension", change: func(o *unstructured.Unstructured) { o.SetUID("u2") }, problem: OtherExtension},
		"CopiedName":   {reason: "of another extension", change: func(o *unstructured.Unstructured) { o.SetName("argocd-2") }, problem: OtherExtension},
		"CopiedCreation": {reason: "of another extension", stamp: created, change: func(o *unstructured.Unstructured) {
			o.SetName("argocd-2")
		}, problem: OtherExtension},
		"Recreated": {reason: "deleted and created again with the old stamp", stamp: created, change: func(o *unstructured.Unstructured) {
			o.SetUID("u2")
			o.SetCreationTimestamp(metav1.NewTime(written.Add(CreationSkew + time.Second)))
		}, problem: OtherExtension},
		"RecreatedBefore": {reason: "the clocks are too far apart", stamp: created, change: func(o *unstructured.Unstructured) {
			o.SetCreationTimestamp(metav1.NewTime(written.Add(-CreationSkew - time.Second)))
		}, problem: OtherExtension},
		"CreatedMeanwhile": {reason: "the clocks are not quite the same", stamp: created, change: func(o *unstructured.Unstructured) {
			o.SetCreationTimestamp(metav1.NewTime(written.Add(-CreationSkew)))
		}},
		"Generated": {reason: "its name was made of a prefix", stamp: func(s *Stamp) { s.Extension, s.Name = "", "argo-" }, change: func(o *unstructured.Unstructured) {
			o.SetGenerateName("argo-")
			o.SetName("argo-x7")
		}},
		"GeneratedOther": {reason: "its name was made of another prefix", stamp: func(s *Stamp) { s.Extension, s.Name = "", "argo-" }, change: func(o *unstructured.Unstructured) {
			o.SetGenerateName("a")
			o.SetName("argo-x7")
		}, problem: OtherExtension},
		"NoName": {reason: "no name is no prefix", stamp: func(s *Stamp) { s.Extension, s.Name = "", "" }, problem: OtherExtension},
	} {
		t.Run(name, func(t *testing.T) {
			object := stamped(t, stored(), tc.stamp)
			if tc.change != nil {
				tc.change(object)
			}
			stamp, err := ClusterExtensions().Verify(key(), object)
			var invalid *Error
			switch {
			case tc.problem == "" && (err != nil || stamp.User != "alice" || stamp.Info().GetGroups()[0] != "team-a"):
				t.Errorf("%s: %v %v", tc.reason, stamp, err)
			case tc.problem != "" && (!errors.As(err, &invalid) || invalid.Problem != tc.problem || stamp != nil):
				t.Errorf("%s: %v %v, want %s", tc.reason, stamp, err, tc.problem)
			}
		})
	}
}

func annotate(object *unstructured.Unstructured, name, value string) {
	annotations := object.GetAnnotations()
	annotations[name] = value
	object.SetAnnotations(annotations)
}

func edit(object *unstructured.Unstructured, old, changed string) {
	annotate(object, extension.AuthorAnnotation, strings.Replace(object.GetAnnotations()[extension.AuthorAnnotation], old, changed, 1))
}

func setSpec(object *unstructured.Unstructured, namespace string) {
	_ = unstructured.SetNestedField(object.Object, namespace, "spec", "namespace")
}

// TestOtherStore: a stamp of another store is not accepted, because the key differs.
func TestOtherStore(t *testing.T) {
	object := stamped(t, stored(), nil)
	var invalid *Error
	if _, err := ClusterExtensions().Verify(NewKey([]byte("another secret")), object); !errors.As(err, &invalid) || invalid.Problem != Unsigned {
		t.Errorf("%v, want %s", err, Unsigned)
	}
}

// TestEveryByteIsSigned: a stamp with any changed byte is refused.
func TestEveryByteIsSigned(t *testing.T) {
	object := stamped(t, stored(), nil)
	value := object.GetAnnotations()[extension.AuthorAnnotation]
	for i := range value {
		for _, other := range []byte{value[i] ^ 1, value[i] ^ 0x20} {
			changed := value[:i] + string(rune(other)) + value[i+1:]
			annotate(object, extension.AuthorAnnotation, changed)
			// Field names can differ in case without a change of the content.
			if stamp, err := ClusterExtensions().Verify(key(), object); err == nil && !same(t, stamp, value) {
				t.Errorf("%s counts", changed)
			}
		}
	}
}

func same(t *testing.T, stamp *Stamp, value string) bool {
	t.Helper()
	encoded, err := stamp.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return encoded == value
}

// TestDigest: equal content has an equal digest, independent of its formatting.
func TestDigest(t *testing.T) {
	read := func(text string) string {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		digest, err := ClusterExtensions().Digest(object)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	const head = `{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","metadata":{"name":"a"`
	one := read(head + `,"annotations":{"penstock.dev/on-failure":"None"}},"spec":{"config":{"inline":{"a":1,"b":2.5}},"namespace":"x"}}`)
	for _, equal := range []string{
		head + `,"annotations":{"penstock.dev/author":"x","a":"b","penstock.dev/on-failure":"None"}},"spec":{"namespace":"x","config":{"inline":{"b":2.5,"a":1}}}}`,
		head + `,"generation":3,"annotations":{"penstock.dev/on-failure":"None"}},"spec":{"config":{"inline":{"a":1,"b":2.5}},"namespace":"x"},"status":{"a":1}}`,
	} {
		if got := read(equal); got != one {
			t.Errorf("%s: %s, want %s", equal, got, one)
		}
	}
	for _, other := range []string{
		head + `},"spec":{"config":{"inline":{"a":1,"b":2.5}},"namespace":"x"}}`,
		head + `,"annotations":{"penstock.dev/on-failure":"None"}},"spec":{"config":{"inline":{"a":"1","b":2.5}},"namespace":"x"}}`,
		head + `,"annotations":{"penstock.dev/on-failure":"None"}}}`,
	} {
		if got := read(other); got == one {
			t.Errorf("%s: the same digest", other)
		}
	}
}

func TestFresh(t *testing.T) {
	stamp := &Stamp{Time: written}
	for after, want := range map[time.Duration]bool{
		0: true, Lifetime - time.Second: true, Lifetime: false, 100 * Lifetime: false, -30 * time.Second: true, -time.Hour: false,
	} {
		if got := stamp.Fresh(written.Add(after)); got != want {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
}

func TestEncodeIsBounded(t *testing.T) {
	stamp := &Stamp{User: "alice"}
	for i := range 10000 {
		stamp.Groups = append(stamp.Groups, fmt.Sprintf("a-group-of-a-large-company-%d", i))
	}
	if _, err := stamp.Encode(); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("%v", err)
	}
}

func TestKeyIsNotPrinted(t *testing.T) {
	if text := fmt.Sprintf("%v %+v %#v %x", key(), key(), key(), key()); text != strings.TrimSpace(strings.Repeat("[redacted] ", 4)) {
		t.Errorf("%s", text)
	}
	if out, _ := json.Marshal(struct{ Key any }{key()}); string(out) != `{"Key":{}}` {
		t.Errorf("%s", out)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(`{"user":"admin","time":"2026-11-23T08:00:00Z","name":"argocd","generation":1,"digest":"sha256:x","signature":""}`, "u1")
	f.Add(`{"user":"admin","signature":null}`, "")
	f.Fuzz(func(t *testing.T, value, uid string) {
		object := stored()
		object.SetUID(types.UID(uid))
		annotate(object, extension.AuthorAnnotation, value)
		if stamp, err := ClusterExtensions().Verify(key(), object); err == nil {
			t.Errorf("%q counts as of %s", value, stamp.User)
		}
	})
}

// TestSubjects: a stamp is valid for one kind only.
func TestSubjects(t *testing.T) {
	of := func(kind string) Subject {
		return Subject{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, Annotation: func(key string) bool { return key == "example.com/template" }}
	}
	stamp := func(s Subject, object *unstructured.Unstructured) {
		digest, err := s.Digest(object)
		if err != nil {
			t.Fatal(err)
		}
		made := &Stamp{User: "alice", Time: written, Kind: s.Mark(), Extension: string(object.GetUID()), Name: object.GetName(), Namespace: object.GetNamespace(), Digest: digest}
		if err := key().Sign(made); err != nil {
			t.Fatal(err)
		}
		value, err := made.Encode()
		if err != nil {
			t.Fatal(err)
		}
		annotate(object, extension.AuthorAnnotation, value)
	}
	for name, tc := range map[string]struct {
		change  func(*unstructured.Unstructured)
		by      Subject
		problem Problem
	}{
		"AsWritten":      {by: of("Catalog")},
		"OtherSpec":      {by: of("Catalog"), change: func(o *unstructured.Unstructured) { setSpec(o, "kube-system"); o.SetGeneration(7) }},
		"OtherMetadata":  {by: of("Catalog"), change: func(o *unstructured.Unstructured) { annotate(o, extension.ApprovalAnnotation, "Automatic") }},
		"OtherTemplate":  {by: of("Catalog"), change: func(o *unstructured.Unstructured) { annotate(o, "example.com/template", "b") }, problem: OtherContent},
		"OtherNamespace": {by: of("Catalog"), change: func(o *unstructured.Unstructured) { o.SetNamespace("b") }, problem: OtherExtension},
		"OtherKind":      {by: of("Source"), problem: OtherExtension},
		"Extension":      {by: ClusterExtensions(), problem: OtherExtension},
	} {
		t.Run(name, func(t *testing.T) {
			object := stored()
			object.SetNamespace("a")
			annotate(object, "example.com/template", "a")
			stamp(of("Catalog"), object)
			if tc.change != nil {
				tc.change(object)
			}
			_, err := tc.by.Verify(key(), object)
			var invalid *Error
			if found := errors.As(err, &invalid); found != (tc.problem != "") || found && invalid.Problem != tc.problem {
				t.Errorf("%v, want %q", err, tc.problem)
			}
		})
	}
	object := stored()
	stamp(ClusterExtensions(), object)
	if strings.Contains(object.GetAnnotations()[extension.AuthorAnnotation], `"kind"`) {
		t.Error("stamps of ClusterExtensions are other ones than they were")
	}
}

// remove marks an object as being deleted, and raises its generation.
func remove(object *unstructured.Unstructured, later int64) {
	now := metav1.NewTime(written)
	object.SetDeletionTimestamp(&now)
	object.SetGeneration(object.GetGeneration() + later)
}
