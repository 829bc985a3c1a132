package imagetemplate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// expected lists the allowed contents of braces, for error messages.
const expected = "{" + KubeMajor + "}, {" + KubeMinor + "}, {" + KubePatch + "} or {group:G,version:V,kind:K,name:N,namespace:S,jsonpath:{P}} is expected, without spaces"

// readVariable parses the variable at the beginning of a text. Without one, detail is the reason.
func readVariable(text string) (found *Variable, detail string) {
	for _, name := range []string{KubeMajor, KubeMinor, KubePatch} {
		if whole := "{" + name + "}"; strings.HasPrefix(text, whole) {
			return &Variable{Text: whole, Kube: name}, ""
		}
	}
	const begin = "{group:"
	if !strings.HasPrefix(text, begin) {
		return nil, expected
	}
	field := &Field{}
	rest := text[len(begin):]
	for _, one := range []struct {
		name, next string
		into       *string
		wrong      func(string) []string
	}{
		{"group", ",version:", &field.Group, blankOr(validation.IsDNS1123Subdomain)},
		{"version", ",kind:", &field.Version, validation.IsDNS1123Label},
		{"kind", ",name:", &field.Kind, isKind},
		{"name", ",namespace:", &field.Name, blankOr(isName)},
		{"namespace", ",jsonpath:", &field.Namespace, blankOr(validation.IsDNS1123Label)},
	} {
		value, after, found := strings.Cut(rest, one.next)
		if !found || strings.ContainsAny(value, ",{}") {
			return nil, fmt.Sprintf("%s of the object must be followed by %q: %s", one.name, one.next, expected)
		}
		if wrong := one.wrong(value); len(wrong) > 0 {
			return nil, fmt.Sprintf("%s of the object is %q: %s", one.name, value, strings.Join(wrong, "; "))
		}
		*one.into, rest = value, after
	}
	length, detail := readPath(rest)
	if detail != "" {
		return nil, detail
	}
	field.Path, rest = rest[:length], rest[length:]
	if !strings.HasPrefix(rest, "}") {
		return nil, "jsonpath must be one pair of braces, followed by the } of the variable"
	}
	return &Variable{Text: text[:len(text)-len(rest)+1], Field: field}, ""
}

// readPath returns the length in bytes of the JSON path at the beginning of a text. The path ends
// at the brace that closes the first brace; braces in quotes do not count.
func readPath(text string) (length int, detail string) {
	if !strings.HasPrefix(text, "{") {
		return 0, "jsonpath must begin with { and end with }"
	}
	depth, quote := 0, byte(0)
	for i := range min(len(text), MaxPath) {
		c := text[i]
		switch {
		case c <= ' ' || c == 0x7f:
			return 0, "jsonpath must have no spaces"
		case quote != 0:
			// An escaped quote does not end the string.
			if c == quote && text[i-1] != '\\' {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1, ""
			}
		}
	}
	return 0, fmt.Sprintf("jsonpath must end with }, within %d bytes", MaxPath)
}

func blankOr(wrong func(string) []string) func(string) []string {
	return func(value string) []string {
		if value == "" {
			return nil
		}
		return wrong(value)
	}
}

// isKind returns the errors of a kind.
func isKind(value string) []string {
	for i, c := range []byte(value) {
		letter := c >= 'A' && c <= 'Z' || i > 0 && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
		if !letter {
			return []string{"a kind begins with an upper case letter, and has letters and digits"}
		}
	}
	if value == "" || len(value) > validation.DNS1123LabelMaxLength {
		return []string{fmt.Sprintf("a kind has 1 to %d letters and digits", validation.DNS1123LabelMaxLength)}
	}
	return nil
}

// isName returns the errors of an object's name. Names of some kinds allow more characters than a
// DNS name.
func isName(value string) []string {
	if len(value) > validation.DNS1123SubdomainMaxLength {
		return []string{fmt.Sprintf("a name has at most %d bytes", validation.DNS1123SubdomainMaxLength)}
	}
	if i := strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\'' }); i >= 0 {
		return []string{"a name has neither spaces nor quotes"}
	}
	return content.IsPathSegmentName(value)
}
