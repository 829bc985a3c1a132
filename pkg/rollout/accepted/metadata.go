package accepted

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mostAnnotations is how many bytes of annotations a manifest may have: a quarter of what an
// object may, for controllers write more of them together with status.
const mostAnnotations = validation.TotalAnnotationSizeLimitB / 4

// metadata of an object or of a template. Finalizers and owners are not judged.
func metadata(j *judgement, path string, before, after any) {
	object{fields: map[string]rule{"labels": labels, "annotations": annotations}}.judge(j, path, before, after)
}

func labels(j *judgement, path string, before, after any) {
	all := keys(j, path, before, after, func(key string) bool { return strings.HasPrefix(key, "app.kubernetes.io/") })
	if errs := v1validation.ValidateLabels(all, field.NewPath(path)); len(errs) > 0 {
		j.unknown(path, "the server would refuse a label")
	}
}

func annotations(j *judgement, path string, before, after any) {
	all := keys(j, path, before, after, func(string) bool { return false })
	if errs := validation.ValidateAnnotations(all, field.NewPath(path)); len(errs) > 0 {
		j.unknown(path, "the server would refuse an annotation")
	}
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size > mostAnnotations {
		j.unknown(path, "%d bytes; more than %d are not judged", size, mostAnnotations)
	}
}

// keys returns the new entries of a map. Entries of Kubernetes' own domains mean something to
// the server; those that are known to mean nothing are plain.
func keys(j *judgement, path string, before, after any, plain func(key string) bool) map[string]string {
	was, ok := stringsOf(before)
	is, also := stringsOf(after)
	if !ok || !also {
		j.unknown(path, "is no map of strings")
		return nil
	}
	check := func(key string) {
		if reserved(key) && !plain(key) {
			j.unknown(path, "%s may mean something to the server", key)
		}
	}
	for key, value := range is {
		if old, both := was[key]; !both || old != value {
			check(key)
		}
	}
	for key := range was {
		if _, both := is[key]; !both {
			check(key)
		}
	}
	return is
}

// reserved is true for keys in a domain of Kubernetes or of a distribution that compiles
// admission of its own in, and for those that are such a domain: api-approved.kubernetes.io
// is a key.
func reserved(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	for _, of := range [...]string{"kubernetes.io", "k8s.io", "openshift.io"} {
		if domain == of || strings.HasSuffix(domain, "."+of) {
			return true
		}
	}
	return false
}
