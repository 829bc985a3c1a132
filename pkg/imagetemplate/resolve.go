package imagetemplate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/version"
)

// maxValue bounds what a variable stands for, in bytes: a tag has 128.
const maxValue = 128

// Result is the result of a template.
type Result struct {
	// Image is the reference, empty when there is none.
	Image string
	// Unresolved are the variables without a value, as they were written, in their order.
	Unresolved []string
	// Malformed is true if the template has a brace that begins no variable, or if the result is no
	// image reference.
	Malformed bool
}

// Resolve replaces variables with values. It calls value once for each variable; "" means that the
// variable has no value. A value that is no valid part of a reference counts as "", so that it
// cannot select another registry or image than the template.
func (t *Template) Resolve(value func(Variable) string) Result {
	values := map[string]string{}
	result := Result{Malformed: t.Problem != nil}
	for _, v := range t.Variables() {
		got := value(v)
		if !Fits(got) {
			result.Unresolved = append(result.Unresolved, v.Text)
		}
		values[v.Text] = got
	}
	if len(result.Unresolved) > 0 || result.Malformed {
		return result
	}
	image := t.with(func(v Variable) string { return values[v.Text] })
	if _, err := reference.ParseNormalizedNamed(image); err != nil || t.makesHost(image) {
		result.Malformed = true
		return result
	}
	result.Image = image
	return result
}

// with is the text with values in the place of variables.
func (t *Template) with(value func(Variable) string) string {
	var text strings.Builder
	for _, p := range t.parts {
		if p.variable != nil {
			text.WriteString(value(*p.variable))
			continue
		}
		text.WriteString(p.text)
	}
	return text.String()
}

// makesHost reports whether a value has made a host of what is none in the template: the first part
// of a name is one by the look of it, so that "team{v}/catalog", which is an image of docker.io,
// would be pulled from any registry. Where the first part is nothing but variables, the template
// leaves the choice to them.
func (t *Template) makesHost(image string) bool {
	written, _, isName := strings.Cut(t.with(func(Variable) string { return "" }), "/")
	if !isName || written == "" {
		return false
	}
	plain, _, _ := strings.Cut(t.with(func(Variable) string { return "x" }), "/")
	first, _, _ := strings.Cut(image, "/")
	return isHost(first) && !isHost(plain)
}

// isHost reports whether the first part of a path is a host, by the rule of distribution/reference.
func isHost(first string) bool {
	return strings.ContainsAny(first, ".:") || first == "localhost" || strings.ToLower(first) != first
}

// Fits reports whether a value can be a part of a reference: letters, digits, dots, hyphens and
// underscores.
func Fits(value string) bool {
	if value == "" || len(value) > maxValue {
		return false
	}
	for _, c := range []byte(value) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// KubeVersion returns the values of the well-known variables, by name. It parses a cluster's
// gitVersion, because its fields major and minor may be "36+".
func KubeVersion(gitVersion string) (map[string]string, error) {
	parsed, err := version.ParseSemantic(gitVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the version %q of the cluster: %w", gitVersion, err)
	}
	number := func(n uint) string { return strconv.FormatUint(uint64(n), 10) }
	return map[string]string{KubeMajor: number(parsed.Major()), KubeMinor: number(parsed.Minor()), KubePatch: number(parsed.Patch())}, nil
}
