// Package accepted says of an update whether the API server certainly takes it, without
// asking: of the change from the manifest that was applied last to the one that will be. It
// is pure.
//
// The argument is this. The live object is as our last apply left it, and nobody else has a
// field of it (rollout says when that is known). The server took that state. So the update
// changes what the two manifests differ in, and nothing else, and it is taken if each
// changed field is valid by itself and nothing compares it with the old value or with other
// fields. Kinds and fields for which that was read in the source of Kubernetes are in one
// closed table (kinds); everything else is unknown.
//
// What the manifests cannot tell is in the verdict, for others to find out: admission, rights,
// quotas.
package accepted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/right"
)

// mostBytes is how large a manifest may be. A stored object has defaults and managedFields
// too, which name each field once more, and etcd takes 1.5 MiB.
const mostBytes = 512 << 10

// Verdict is what is known of an update.
type Verdict struct {
	// Unknown is why the server has to be asked: a path and a reason, without values. It is
	// empty when validation certainly accepts the update; the other fields then say what
	// else has to be known.
	Unknown string
	// Resource that serves the kind.
	Resource schema.GroupVersionResource
	// Rights are needed besides that to patch the resource: Kubernetes asks for them on all
	// objects of the resource, or on one.
	Rights []right.Right
	// Quota is true when a ResourceQuota of the namespace has a say in updates of the kind.
	Quota bool
	// Images is true when the image of a container changes.
	Images bool
}

// Judge says what is known of the update of an object from a manifest to another one, both in
// canonical JSON. The reference is that of the new manifest; both are of its version.
func Judge(ref manifest.Ref, before, after []byte) Verdict {
	known, listed := kinds[ref.GroupVersionKind()]
	if !listed {
		return Verdict{Unknown: fmt.Sprintf("kind: of %s in %s nothing is known without the server", ref.Kind, ref.APIVersion())}
	}
	if most := cmp.Or(known.most, mostBytes); len(after) > most {
		return Verdict{Unknown: fmt.Sprintf("size: %d bytes; more than %d are not judged", len(after), most)}
	}
	j := &judgement{Verdict: Verdict{Resource: ref.GroupVersionKind().GroupVersion().WithResource(known.resource), Rights: known.rights, Quota: known.quota}}
	was, is, err := topLevel(before, after)
	if err != nil {
		return Verdict{Unknown: "manifest: is no object of JSON"}
	}
	known.fields.judge(j, "", was, is)
	return j.Verdict
}

// topLevel reads two manifests as far as they differ: of a member that both have alike,
// neither has it here. Most of a definition is never decoded so.
func topLevel(before, after []byte) (was, is map[string]any, err error) {
	var old, now map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(before, &old), json.Unmarshal(after, &now)); err != nil {
		return nil, nil, err
	}
	was, is = map[string]any{}, map[string]any{}
	for name, raw := range old {
		if other, both := now[name]; both && bytes.Equal(raw, other) && !isContext(name) {
			delete(now, name)
			continue
		}
		if was[name], err = decoded(raw); err != nil {
			return nil, nil, err
		}
	}
	for name, raw := range now {
		if is[name], err = decoded(raw); err != nil {
			return nil, nil, err
		}
	}
	return was, is, nil
}

// isContext is true for members that say how others are to be judged.
func isContext(name string) bool {
	return slices.Contains([]string{"type", "immutable", "stringData", "data", "binaryData"}, name)
}

func decoded(raw []byte) (any, error) {
	var value any
	err := utiljson.Unmarshal(raw, &value) // which keeps whole numbers whole
	return value, err
}

// judgement is a verdict in the making.
type judgement struct{ Verdict }

// unknown notes the first thing that is not known.
func (j *judgement) unknown(path, format string, args ...any) {
	if j.Unknown == "" {
		j.Unknown = path + ": " + fmt.Sprintf(format, args...)
	}
}

// absent is the value of a field that is not there; nil is null.
type absent struct{}

// rule judges the change of one field. The values are those of decoded JSON, or absent; they
// differ.
type rule func(j *judgement, path string, before, after any)

// object is what may change in an object of JSON: fields by name, and what is judged of the
// object as a whole when one of them has changed, which may be nil.
type object struct {
	fields map[string]rule
	whole  func(j *judgement, path string, before, after map[string]any)
}

// judge compares two objects. One that is not there is as good as an empty one: none of those
// that are judged means something by being there.
func (o object) judge(j *judgement, path string, before, after any) {
	was, ok := membersOf(before)
	is, also := membersOf(after)
	if !ok || !also {
		j.unknown(path, "is no object")
		return
	}
	changed := false
	for name, value := range is {
		old := member(was, name)
		if same(old, value) {
			continue
		}
		changed = true
		o.compare(j, path, name, old, value)
	}
	for name, old := range was {
		if _, both := is[name]; !both {
			changed = true
			o.compare(j, path, name, old, absent{})
		}
	}
	if changed && o.whole != nil && j.Unknown == "" {
		o.whole(j, path, was, is)
	}
}

func (o object) compare(j *judgement, path, name string, before, after any) {
	at := name
	if path != "" {
		at = path + "." + name
	}
	if known, listed := o.fields[name]; listed {
		known(j, at, before, after)
		return
	}
	j.unknown(at, "what may change here is not known without the server")
}

func membersOf(value any) (map[string]any, bool) {
	if value == (absent{}) {
		return nil, true
	}
	members, is := value.(map[string]any)
	return members, is
}

// member of an object, or absent.
func member(of map[string]any, name string) any {
	if value, found := of[name]; found {
		return value
	}
	return absent{}
}

// same compares values of decoded JSON.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, is := b.(map[string]any)
		return is && maps.EqualFunc(x, y, same)
	case []any:
		y, is := b.([]any)
		return is && slices.EqualFunc(x, y, same)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// stringsOf is a map whose values are all strings; one that is not there is empty.
func stringsOf(value any) (map[string]string, bool) {
	members, is := membersOf(value)
	if !is {
		return nil, false
	}
	all := make(map[string]string, len(members))
	for key, member := range members {
		text, is := member.(string)
		if !is {
			return nil, false
		}
		all[key] = text
	}
	return all, true
}

// isWords is true for a list of strings.
func isWords(value any) bool {
	list, is := value.([]any)
	return is && !slices.ContainsFunc(list, func(one any) bool {
		_, text := one.(string)
		return !text
	})
}
