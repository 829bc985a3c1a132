package imagetemplate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/version"
)

// maxValue limits the value of a variable, in bytes: a tag has at most 128.
const maxValue = 128

// Result is the result of a template.
type Result struct {
	// Image is the image reference; empty if there is none.
	Image string
	// Unresolved are the variables without a value, as written and in order.
	Unresolved []string
	// Malformed is true if a brace of the template begins no variable, or if the result is not an
	// image reference.
	Malformed bool
}

// Resolve replaces variables with values. It calls value once for each variable; value returns ""
// if a variable has no value. A value that is not a valid part of a reference counts as "". So a
// value cannot select another registry or image than the template.
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

// with returns the text with the variables replaced by values.
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

// makesHost reports whether a value turns the first part of the name into a host. Only the spelling
// decides whether the first part is a host. Otherwise "team{v}/catalog", an image of docker.io,
// could be pulled from any registry. If the first part consists only of variables, a value may make
// it a host.
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

// Fits reports whether a value can be part of a reference: letters, digits, dots, hyphens and
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

// KubeVersion returns the values of the well-known variables, by name. It parses gitVersion,
// because the fields major and minor of a cluster's version can be "36+".
func KubeVersion(gitVersion string) (map[string]string, error) {
	parsed, err := version.ParseSemantic(gitVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the version %q of the cluster: %w", gitVersion, err)
	}
	number := func(n uint) string { return strconv.FormatUint(uint64(n), 10) }
	return map[string]string{KubeMajor: number(parsed.Major()), KubeMinor: number(parsed.Minor()), KubePatch: number(parsed.Patch())}, nil
}
