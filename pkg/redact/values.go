package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// wordBytes is the smallest length of a word of a hidden value that is removed from a text.
	// Shorter words occur in every text.
	wordBytes = 5
	// fragmentBytes is the smallest length of any fragment of a hidden value that is removed: the
	// author of a text may have shortened the value.
	fragmentBytes = 8
	// textBytes is the largest text that is kept, in bytes.
	textBytes = 16 << 10
)

// Values are hidden values to remove from texts.
type Values struct {
	redactor *Redactor
	whole    map[string]bool
	words    map[string]bool
}

// Values returns the hidden values of objects of a kind.
func (r *Redactor) Values(kind schema.GroupKind, objects ...map[string]any) *Values {
	v := &Values{redactor: r, whole: map[string]bool{}, words: map[string]bool{}}
	for _, object := range objects {
		v.Add(kind, object)
	}
	return v
}

// Add adds the hidden values of another object.
func (v *Values) Add(kind schema.GroupKind, object map[string]any) {
	mask := v.redactor.Mask(kind)
	if kind == secretKind() {
		mask = append(slices.Clip(mask), SecretMask()...)
	}
	v.collect(object, mask)
}

// collect finds the hidden values below a value. They include Secrets inside other objects, such as
// templates.
func (v *Values) collect(value any, mask Mask) {
	if mask.Hides(value) {
		v.all(value)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if value["kind"] == "Secret" && value["apiVersion"] == "v1" {
			mask = append(slices.Clip(mask), SecretMask()...)
		}
		for name, field := range value {
			v.collect(field, mask.Field(name))
		}
	case []any:
		for _, item := range value {
			v.collect(item, mask.Item())
		}
	}
}

// all adds all parts of a hidden value, including the keys of objects.
func (v *Values) all(value any) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for name, field := range value {
			v.add(name)
			v.all(field)
		}
	case []any:
		for _, item := range value {
			v.all(item)
		}
	case string:
		v.add(value)
		// A Secret's data is in base64, and other objects may have such values too.
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil && utf8.Valid(decoded) {
			v.add(string(decoded))
		}
	default:
		v.add(fmt.Sprint(value))
	}
}

// Quotes returns a text without quoted strings and numbers of a live object of any kind. It keeps
// the object's identity, values that ours also has, names of fields, and booleans.
func Quotes(text string, live, ours map[string]any) string {
	known := map[string]bool{}
	leaves(ours, func(value string) { known[value] = true })
	metadata, _ := live["metadata"].(map[string]any)
	for _, name := range []string{"name", "namespace"} {
		if value, ok := metadata[name].(string); ok {
			known[value] = true
		}
	}
	values := (*Redactor)(nil).Values(schema.GroupKind{})
	for name, field := range live {
		switch name {
		case "apiVersion", "kind":
		case "metadata":
			field = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
			fallthrough
		default:
			leaves(field, func(value string) {
				if !known[value] {
					values.add(value)
				}
			})
		}
	}
	return values.Mask(text)
}

// leaves calls f for every string and number below a value.
func leaves(value any, f func(string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			leaves(field, f)
		}
	case []any:
		for _, item := range value {
			leaves(item, f)
		}
	case nil, bool:
	default:
		f(fmt.Sprint(value))
	}
}

// add adds a value in all spellings in which messages may quote it.
func (v *Values) add(value string) {
	if value == "" || v.whole[value] {
		return
	}
	for _, spelling := range Spellings(value) {
		if spelling != "" {
			v.whole[spelling] = true
		}
	}
	for _, split := range []func(rune) bool{unicode.IsSpace, isPunctuation} {
		for _, word := range strings.FieldsFunc(value, split) {
			if len(word) >= wordBytes {
				v.words[word] = true
			}
		}
	}
}

// Spellings returns the forms in which texts may quote a value.
func Spellings(value string) []string {
	quoted, _ := json.Marshal(value) // a string can be encoded
	return []string{
		value, strings.TrimSpace(value), strings.Join(strings.Fields(value), " "),
		string(quoted[1 : len(quoted)-1]), strings.Trim(strconv.Quote(value), `"`), strings.Trim(strconv.QuoteToASCII(value), `"`),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
		url.QueryEscape(value), url.PathEscape(value),
	}
}

// Readings returns the forms in which a text is searched: unchanged, without indentation, and
// decoded from base64.
func Readings(text string) []string {
	all := []string{text, strings.Join(strings.Fields(text), " ")}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
		all = append(all, string(decoded))
	}
	return all
}

// Texts returns texts as hidden values.
func Texts(texts []string) *Values {
	hidden := (*Redactor)(nil).Values(schema.GroupKind{})
	for _, one := range texts {
		hidden.add(one)
	}
	return hidden
}

func isPunctuation(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`{}[]():,;=<>", r)
}

// Mask returns a text with Hidden in place of the values and their fragments. It cuts a text that
// is too long.
func (v *Values) Mask(text string) string {
	text = clip(text)
	if len(v.whole) == 0 || text == "" {
		return text
	}
	marked := make([]bool, len(text))
	mark := func(from, to int) {
		for i := from; i < to; i++ {
			marked[i] = true
		}
	}
	for value := range v.whole {
		markWhole(text, value, mark)
	}
	for _, split := range []func(rune) bool{unicode.IsSpace, isPunctuation} {
		markWords(text, split, v.words, mark)
	}
	v.markFragments(text, mark)
	return blank(text, marked)
}

// markWhole marks each occurrence of a value. It marks a value of a few characters only as a
// separate word, because many words contain it.
func markWhole(text, value string, mark func(from, to int)) {
	for from := 0; ; {
		i := strings.Index(text[from:], value)
		if i < 0 {
			return
		}
		i += from
		end := i + len(value)
		if len(value) >= wordBytes || !inWord(text, i) && !inWord(text, end) {
			mark(i, end)
		}
		from = i + 1
	}
}

func inWord(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return at > 0 && at < len(text) && isAlphanumeric(before) && isAlphanumeric(after)
}

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func markWords(text string, split func(rune) bool, words map[string]bool, mark func(from, to int)) {
	start := -1
	end := func(i int) {
		if start >= 0 && words[text[start:i]] {
			mark(start, i)
		}
		start = -1
	}
	for i, r := range text {
		switch {
		case split(r):
			end(i)
		case start < 0:
			start = i
		}
	}
	end(len(text))
}

// markFragments marks the fragments that a text and a value have in common.
func (v *Values) markFragments(text string, mark func(from, to int)) {
	places := map[string][]int{}
	for i := 0; i+fragmentBytes <= len(text); i++ {
		fragment := text[i : i+fragmentBytes]
		places[fragment] = append(places[fragment], i)
	}
	for value := range v.whole {
		for i := 0; i+fragmentBytes <= len(value); i++ {
			fragment := value[i : i+fragmentBytes]
			inner := strings.TrimSpace(fragment)
			skip := strings.Index(fragment, inner)
			for _, place := range places[fragment] {
				mark(place+skip, place+skip+len(inner))
			}
			delete(places, fragment)
		}
	}
}

// blank replaces the marked parts by Hidden.
func blank(text string, marked []bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case !marked[i]:
			b.WriteByte(text[i])
		case i == 0 || !marked[i-1]:
			b.WriteString(Hidden)
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}

// clip shortens a text between words, because a part of a value could not be found.
func clip(text string) string {
	if len(text) <= textBytes {
		return text
	}
	text = text[:textBytes]
	if end := strings.LastIndexFunc(text, unicode.IsSpace); end > 0 {
		text = text[:end]
	} else {
		text = ""
	}
	return text + " (cut)"
}
