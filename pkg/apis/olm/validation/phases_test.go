package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func phases(phases []olm.RevisionPhase) change {
	return withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Phases = phases })
}

func TestPhases(t *testing.T) {
	named := func(names ...string) change {
		out := make([]olm.RevisionPhase, 0, len(names))
		for _, name := range names {
			out = append(out, olm.RevisionPhase{Name: name})
		}
		return phases(out)
	}
	runRevisionCases(t, map[string]revisionCase{
		"None":  {reason: "an empty revision is odd, and valid", change: phases(nil)},
		"Empty": {reason: "a phase without objects", change: named("a")},
		"Most":  {reason: "as many as allowed", change: phases(numbered(v1alpha1.MaxPhases, 1))},
		"TooMany": {
			reason: "one more", change: phases(numbered(v1alpha1.MaxPhases+1, 1)),
			want: []string{many + "spec.phases"}, mentions: "65: a revision has at most 64 phases",
		},
		"NoName": {
			reason: "phases are a map by name", change: named("a", ""),
			want: []string{missing + "spec.phases[1].name"},
		},
		"NotALabel": {
			reason: "a name that cannot be shown everywhere", change: named("a.b"),
			want: []string{invalid + "spec.phases[0].name"}, mentions: "must not contain dots",
		},
		"Twice": {
			reason: "phases are a map by name", change: named("a", "b", "a"),
			want: []string{duplicate + "spec.phases[2].name"}, mentions: `"a"`,
		},
		"Collision": {
			reason: "a value of its own",
			change: phases([]olm.RevisionPhase{{Name: "a", CollisionProtection: olm.CollisionProtectionNone}}),
		},
		"UnknownCollision": {
			reason: "allowed values are listed",
			change: phases([]olm.RevisionPhase{{Name: "a", CollisionProtection: "All"}}),
			want:   []string{notSupported + "spec.phases[0].collisionProtection"}, mentions: `"Prevent", "IfNoController", "None"`,
		},
	})
}

func TestAmounts(t *testing.T) {
	sized := func(sizes ...int64) change {
		out := numbered(1, len(sizes))
		for i, size := range sizes {
			out[0].Objects[i].Size = size
		}
		return phases(out)
	}
	runRevisionCases(t, map[string]revisionCase{
		"TooManyObjects": {
			reason: "counted over all phases", change: phases(append(numbered(40, 100), olm.RevisionPhase{Name: "last", Objects: []olm.RevisionObject{object("v1", "Pod", "p")}})),
			want: []string{many + "spec.phases"}, mentions: "4001: a revision has at most 4000 objects",
		},
		"MostBytes": {reason: "exactly the limit", change: sized(v1alpha1.MaxManifestBytes-1, 1)},
		"TooManyBytes": {
			reason: "one byte more", change: sized(v1alpha1.MaxManifestBytes, 1),
			want: []string{long + "spec.phases"}, mentions: "16777217 bytes as canonical JSON, must have at most 16777216",
		},
	})
}

func TestObjects(t *testing.T) {
	set := func(change func(*olm.RevisionObject)) change { return withObject(change) }
	const at = "spec.phases[0].objects[0]"
	runRevisionCases(t, map[string]revisionCase{
		"ClusterScoped":  {reason: "no namespace", change: set(func(o *olm.RevisionObject) { o.Namespace = "" })},
		"UnknownSize":    {reason: "0 is unknown", change: set(func(o *olm.RevisionObject) { o.Size = 0 })},
		"RoleName":       {reason: "names of some kinds are no DNS names", change: set(func(o *olm.RevisionObject) { o.Kind, o.Name = "Role", "system:argocd" })},
		"OwnCollision":   {reason: "a value of its own", change: set(func(o *olm.RevisionObject) { o.CollisionProtection = olm.CollisionProtectionIfNoController })},
		"SecretOfOthers": {reason: "only the core kind is one", change: set(func(o *olm.RevisionObject) { o.APIVersion, o.Kind = "example.com/v1", "Secret" })},
		"Manifest": {
			reason: "the registry forgot to take it out", change: set(func(o *olm.RevisionObject) { o.Object = &olm.Manifest{Raw: []byte(`{}`)} }),
			want: []string{"InternalError " + at + ".object"},
		},
		"NoAPIVersion": {reason: "identity", change: set(func(o *olm.RevisionObject) { o.APIVersion = "" }), want: []string{missing + at + ".apiVersion"}},
		"NoKind":       {reason: "identity", change: set(func(o *olm.RevisionObject) { o.Kind = "" }), want: []string{missing + at + ".kind"}},
		"NoName":       {reason: "identity", change: set(func(o *olm.RevisionObject) { o.Name = "" }), want: []string{missing + at + ".name"}},
		"NoDigest": {
			reason: "an identity alone says no content", change: set(func(o *olm.RevisionObject) { o.Digest = "" }),
			want: []string{missing + at + ".digest"}, mentions: "either a manifest in object, or",
		},
		"Nothing": {
			reason: "all that is missing is named", change: set(func(o *olm.RevisionObject) { *o = olm.RevisionObject{} }),
			want: []string{missing + at + ".apiVersion", missing + at + ".kind", missing + at + ".name"},
		},
		"APIVersion":     {reason: "two slashes", change: set(func(o *olm.RevisionObject) { o.APIVersion = "a/b/c" }), want: []string{invalid + at + ".apiVersion"}, mentions: "<group>/<version>"},
		"Group":          {reason: "no DNS name", change: set(func(o *olm.RevisionObject) { o.APIVersion = "A_b/v1" }), want: []string{invalid + at + ".apiVersion"}},
		"EmptyGroup":     {reason: "the core group has no slash", change: set(func(o *olm.RevisionObject) { o.APIVersion = "/v1" }), want: []string{invalid + at + ".apiVersion"}},
		"Kind":           {reason: "a path", change: set(func(o *olm.RevisionObject) { o.Kind = "../x" }), want: []string{invalid + at + ".kind"}},
		"Name":           {reason: "a path would lead elsewhere", change: set(func(o *olm.RevisionObject) { o.Name = "a/b" }), want: []string{invalid + at + ".name"}},
		"Namespace":      {reason: "a path would lead elsewhere", change: set(func(o *olm.RevisionObject) { o.Namespace = ".." }), want: []string{invalid + at + ".namespace"}},
		"Size":           {reason: "negative", change: set(func(o *olm.RevisionObject) { o.Size = -1 }), want: []string{invalid + at + ".size"}},
		"Collision":      {reason: "allowed values are listed", change: set(func(o *olm.RevisionObject) { o.CollisionProtection = "x" }), want: []string{notSupported + at + ".collisionProtection"}},
		"DigestShort":    {reason: "63 digits", change: set(func(o *olm.RevisionObject) { o.Digest = plainDigest[:len(plainDigest)-1] }), want: []string{invalid + at + ".digest"}, mentions: "64 hexadecimal digits"},
		"DigestUpper":    {reason: "one spelling only", change: set(func(o *olm.RevisionObject) { o.Digest = "sha256:" + strings.Repeat("A", 64) }), want: []string{invalid + at + ".digest"}},
		"DigestUnknown":  {reason: "another algorithm", change: set(func(o *olm.RevisionObject) { o.Digest = "md5:" + strings.Repeat("a", 64) }), want: []string{invalid + at + ".digest"}},
		"DigestKeyed":    {reason: "not a Secret", change: set(func(o *olm.RevisionObject) { o.Digest = keyedDigest }), want: []string{invalid + at + ".digest"}, mentions: "this is a ConfigMap"},
		"DigestNotKeyed": {reason: "a Secret", change: set(func(o *olm.RevisionObject) { o.Kind = "Secret" }), want: []string{invalid + at + ".digest"}, mentions: "must start with hmac-sha256"},
	})
}

func TestObjectOnce(t *testing.T) {
	// add appends an object to phase deploy, as its second object.
	add := func(o olm.RevisionObject) change {
		return func(r *olm.ClusterExtensionRevision) {
			r.Spec.Phases[1].Objects = append(r.Spec.Phases[1].Objects, o)
		}
	}
	elsewhere := object("v1", "ConfigMap", "cm")
	elsewhere.Namespace = "other"
	runRevisionCases(t, map[string]revisionCase{
		"OtherName":      {reason: "another object", change: add(object("v1", "ConfigMap", "cm2"))},
		"OtherNamespace": {reason: "another object", change: add(elsewhere)},
		"OtherGroup":     {reason: "another object", change: add(object("example.com/v1", "ConfigMap", "cm"))},
		"SamePhase": {
			reason: "both places are named", change: add(object("apps/v1", "Deployment", "server")),
			want: []string{duplicate + "spec.phases[1].objects[1]"}, mentions: `"Deployment.apps argocd/server": is also at spec.phases[1].objects[0]`,
		},
		"OtherPhase": {
			reason: "the whole revision counts", change: add(object("v1", "ConfigMap", "cm")),
			want: []string{duplicate + "spec.phases[1].objects[1]"}, mentions: "is also at spec.phases[0].objects[0]",
		},
		"OtherVersion": {
			reason: "one object is served in several versions", change: add(object("apps/v1beta2", "Deployment", "server")),
			want: []string{duplicate + "spec.phases[1].objects[1]"}, mentions: "in any version of its API",
		},
	})
}

func TestErrorsAreBounded(t *testing.T) {
	broken := numbered(2, 100)
	for i := range broken {
		for j := range broken[i].Objects {
			broken[i].Objects[j].Digest = ""
		}
	}
	got := ValidateRevision(revision(phases(broken)))
	if len(got) != maxObjectErrors+1 {
		t.Fatalf("got %d errors, want %d and one that says so", len(got), maxObjectErrors)
	}
	last := got[len(got)-1].Error()
	if want := fmt.Sprintf("spec.phases[0].objects[%d]", maxObjectErrors); !strings.Contains(last, want) {
		t.Errorf("the last error does not say where checking stopped, %s: %s", want, last)
	}
}
