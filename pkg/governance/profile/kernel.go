package profile

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// KernelArgument returns the value of a key of the kernel's command line as it is
// in effect: the last one counts.
func KernelArgument(config *unstructured.Unstructured, key string) (value string, set bool) {
	if config == nil {
		return "", false
	}
	arguments, _, _ := unstructured.NestedStringSlice(config.Object, "spec", "kernelArguments")
	for _, argument := range arguments {
		// One entry may hold several arguments.
		for _, word := range strings.Fields(argument) {
			name, given, _ := strings.Cut(word, "=")
			if name == key {
				value, set = given, true
			}
		}
	}
	return value, set
}
