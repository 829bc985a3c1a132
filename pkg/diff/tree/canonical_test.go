package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/diff/schema"
)

const (
	head       = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":`
	containers = head + `{"name":"d"},"spec":{"template":{"spec":{"containers":`
)

// readable returns manifests that need not be decoded, by their feature.
func readable() map[string]string {
	return map[string]string{
		"Empty":            `{}`,
		"Nothing":          `{"a":{},"b":[],"c":"","d":null,"e":[null,[],{}]}`,
		"Numbers":          `{"a":-1,"b":9223372036854775807,"c":18446744073709551616,"d":0.5,"e":-1e-7,"f":1e+30,"g":0,"h":1.0,"i":1e5,"j":10.0}`,
		"Strings":          `{"a":"\"\\\b\t\n\f\r","b":"é😀","c":"<&>","d":"` + "\x7f" + `"}`,
		"Keys":             `{"":1,"A":1,"a":1,"a\n":1,"a.b/c":1,"é":1}`,
		"Implied":          containers + `[{"args":[],"image":"i","imagePullPolicy":"Always","name":"c","ports":[{"containerPort":1,"protocol":"TCP"}]}]}}}}`,
		"SiblingIsNull":    `{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":null,"targetPort":80},{"port":80,"targetPort":80}]}}`,
		"SiblingIsObject":  `{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":{"a":[1,null],"b":null},"targetPort":{"a":[1,null]}}]}}`,
		"SiblingIsOther":   `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"strategy":{"rollingUpdate":{},"type":{"a":1}}}}`,
		"Quantities":       containers + `[{"name":"c","resources":{"limits":{"cpu":0.5,"memory":"1Gi"},"requests":{"cpu":"1e3","example.com/x":true}}}]}}}}`,
		"UnknownType":      `{"apiVersion":"example.com/v1","kind":"X","spec":{"limits":{"cpu":"500m","other":"500m"},"requests":[{"memory":["1Gi"]}]}}`,
		"WrongTypes":       head + `[1],"spec":{"replicas":{"a":1},"template":"x"}}`,
		"Sets":             `{"apiVersion":"v1","kind":"Pod","metadata":{"finalizers":["b","a","a"]}}`,
		"ServerFields":     head + `{"annotations":{"a":"b","penstock.dev/x":"y"},"creationTimestamp":null,"generation":3,"labels":{"penstock.dev/x":"y"},"managedFields":[{"a":{"b":[]}}],"name":"d","uid":"u"},"status":{"a":[1]}}`,
		"OnlyServerMarks":  head + `{"annotations":{"deployment.kubernetes.io/revision":"4"},"labels":{}}}`,
		"NullMarks":        head + `{"annotations":{"a":null},"labels":{"penstock.dev/x":null}}}`,
		"MarksOfOtherType": head + `{"annotations":["a"],"labels":"penstock.dev/x"},"spec":{"metadata":{"labels":{"penstock.dev/x":"y"},"uid":"1"},"status":1}}`,
		"CopyOfNoSecret":   head + `{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"ConfigMap\"}"}}}`,
		"SpeaksOfSecrets":  head + `{"annotations":{"a":"Secrets are described elsewhere"},"labels":{"last-applied":"Secret"}}}`,
		"KindInText":       `{"data":{"x":"{\"kind\":\"Secret\"}"},"kind":"ConfigMap"}`,
	}
}

// unreadable returns manifests that must be decoded, and manifests that cannot be decoded.
func unreadable() map[string]string {
	return map[string]string{
		"Space":         `{"a": 1}`,
		"SpaceBefore":   ` {}`,
		"SpaceBehind":   "{}\n",
		"KeyOrder":      `{"b":1,"a":2}`,
		"Duplicate":     `{"a":1,"a":2}`,
		"DuplicateDeep": `{"a":[{"b":1,"b":{"c":2}}]}`,
		"Escape":        `{"a":"\u003c"}`,
		"EscapedKey":    `{"\u006bind":"Secret","apiVersion":"v1","data":{"a":"eA=="}}`,
		"EscapedSlash":  `{"a":"\/"}`,
		"NegativeZero":  `{"a":-0}`,
		"Zeros":         `{"a":00}`,
		"ZeroFirst":     `{"a":01.5}`,
		"Plus":          `{"a":+1}`,
		"NoFraction":    `{"a":1.}`,
		"NoWhole":       `{"a":.5}`,
		"NoDigits":      `{"a":-}`,
		"Exponent":      `{"a":1E5}`,
		"NoExponent":    `{"a":1e}`,
		"Infinite":      `{"a":1e999}`,
		"InvalidUTF8":   "{\"a\":\"\xff\"}",
		"InvalidKey":    "{\"\xff\":1}",
		"InvalidAlong":  "{\"a\":\"\\n\xff\"}",
		"Control":       "{\"a\":\"\x01\"}",
		"RawNewline":    "{\"a\":\"\\t\n\"}",
		"Unfinished":    `{"a":[1,{"b":"c`,
		"NoValue":       `{"a":}`,
		"NoColon":       `{"a"1}`,
		"LastComma":     `{"a":1,}`,
		"LastItem":      `[1,]`,
		"Word":          `{"a":nul}`,
		"Words":         `{"a":truefalse}`,
		"List":          `[]`,
		"Null":          `null`,
		"None":          ``,
		"Two":           `{}{}`,
		"Deep":          strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300),
		"TooDeep":       `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}",
		"Secret":        `{"apiVersion":"v1","data":{"a":"eA=="},"kind":"Secret"}`,
		"SecretInside":  `{"items":[{"apiVersion":"v1","data":{"a":"eA=="},"kind":"Secret"}]}`,
		"CopyOfSecret":  head + `{"annotations":{"a":"{\"kind\":\"Secret\"}"}}}`,
		"AppliedSecret": head + `{"annotations":{"last-applied":"Secret"}}}`,
	}
}

// TestCanonical compares both readers. If the canonical reader succeeds, its result equals that of
// the decoder and build. Other manifests are left to the decoder.
func TestCanonical(t *testing.T) {
	c := testComparer(t)
	for name, text := range readable() {
		t.Run(name, func(t *testing.T) {
			if !checkCanonical(t, c, text) {
				t.Errorf("not read: %s", text)
			}
		})
	}
	for name, text := range unreadable() {
		t.Run(name, func(t *testing.T) {
			if checkCanonical(t, c, text) {
				t.Errorf("read: %.100s", text)
			}
			// An earlier failure must not affect later reads.
			if !checkCanonical(t, c, readable()["ServerFields"]) {
				t.Error("the next one is not read")
			}
		})
	}
}

// TestCanonicalProperty is TestCanonical for random manifests.
func TestCanonicalProperty(t *testing.T) {
	c := testComparer(t)
	word := rapid.SampledFrom([]string{"a", "kind", "Secret", "metadata", "labels", "annotations", "status", "uid", "penstock.dev/x", "limits", "cpu", "1Gi", "é\u202e\x1b", "<", "\n", "last-applied"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			kind := rapid.IntRange(0, 5).Draw(t, "kind")
			if depth == 0 {
				kind %= 4
			}
			switch kind {
			case 0, 1:
				return word.Draw(t, "word")
			case 2:
				return rapid.SampledFrom([]any{nil, true, 0.5, 1e-300, 1e21}).Draw(t, "scalar")
			case 3:
				return rapid.Int64().Draw(t, "number")
			case 4:
				return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
			default:
				return rapid.MapOfN(word, value(depth-1), 0, 5).Draw(t, "object")
			}
		})
	}
	read := 0
	rapid.Check(t, func(rt *rapid.T) {
		object := rapid.MapOfN(word, value(3), 0, 6).Draw(rt, "object")
		object["apiVersion"], object["kind"] = "v1", rapid.SampledFrom([]string{"Pod", "Service", "X"}).Draw(rt, "kind")
		object["metadata"] = map[string]any{
			"name": "x", "labels": value(2).Draw(rt, "labels"), "annotations": rapid.MapOfN(word, value(1), 0, 3).Draw(rt, "annotations"), "uid": value(1).Draw(rt, "uid"),
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(object); err != nil {
			rt.Fatal(err)
		}
		if checkCanonical(rt, c, strings.TrimSuffix(text.String(), "\n")) {
			read++
		}
	})
	if read == 0 {
		t.Error("nothing was read without decoding it")
	}
}

func FuzzCanonical(f *testing.F) {
	for _, texts := range []map[string]string{readable(), unreadable()} {
		for _, text := range texts {
			f.Add(text)
		}
	}
	c := testComparer(f)
	f.Fuzz(func(t *testing.T, text string) { checkCanonical(t, c, text) })
}

func testComparer(t testing.TB) *Comparer {
	t.Helper()
	types, err := schema.NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	return NewComparer(types, nil, func() bool { return false })
}

// checkCanonical reports whether a manifest was read without a decoder. It fails if the result
// differs from the decoder's.
func checkCanonical(t rapid.TB, c *Comparer, text string) bool {
	t.Helper()
	var said struct{ APIVersion, Kind any }
	// An error is ignored: said then stays empty.
	_ = json.Unmarshal([]byte(text), &said)
	version, _ := said.APIVersion.(string)
	kind, _ := said.Kind.(string)
	group, _ := runtimeschema.ParseGroupVersion(version)
	typ := c.types.TypeOf(group.WithKind(kind))
	short, ok := c.readCanonical([]byte(text), typ, false)
	if !ok {
		return false
	}
	long, err := c.decode([]byte(text), typ, nil, false)
	if err != nil {
		t.Fatalf("%s: read, though a decoder says %v", text, err)
	}
	if different := difference("", short, long); different != "" {
		t.Fatalf("%s: read without a decoder, with it: %s", text, different)
	}
	return true
}

func difference(at string, a, b *Node) string {
	if !reflect.DeepEqual([]any{a.kind, a.isText, a.implied, a.hash, a.text, a.scalar, a.amount, a.digest, a.typ}, []any{b.kind, b.isText, b.implied, b.hash, b.text, b.scalar, b.amount, b.digest, b.typ}) {
		return fmt.Sprintf("%s: %+v, %+v", at, *a, *b)
	}
	if !slices.EqualFunc(a.fields, b.fields, func(a, b Field) bool { return a.Name == b.Name }) || len(a.items) != len(b.items) {
		return fmt.Sprintf("%s: fields %v and %d items, %v and %d", at, a.fields, len(a.items), b.fields, len(b.items))
	}
	for i := range a.fields {
		if found := difference(at+"."+a.fields[i].Name, a.fields[i].Value, b.fields[i].Value); found != "" {
			return found
		}
	}
	for i := range a.items {
		if found := difference(fmt.Sprintf("%s[%d]", at, i), a.items[i], b.items[i]); found != "" {
			return found
		}
	}
	return ""
}
