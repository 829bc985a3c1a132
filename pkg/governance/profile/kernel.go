package profile

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func argumentsOf(config *unstructured.Unstructured) []string {
	arguments, _, _ := unstructured.NestedStringSlice(specOf(config), "kernelArguments")
	return arguments
}

// wantedArguments returns the kernel arguments of a MachineConfig with their effective values: the
// last value counts. It leaves out accumulating arguments.
func wantedArguments(config *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for _, argument := range argumentsOf(config) {
		for _, word := range strings.Fields(argument) {
			if key, value, _ := strings.Cut(word, "="); !accumulates(key) {
				out[key] = value
			}
		}
	}
	return out
}

// HasArguments reports whether the kernel arguments of wanted are in effect in a rendered
// configuration.
func HasArguments(rendered, wanted *unstructured.Unstructured) bool {
	in := wantedArguments(rendered)
	for key, value := range wantedArguments(wanted) {
		if have, set := in[key]; !set || have != value {
			return false
		}
	}
	have := strings.Fields(strings.Join(argumentsOf(rendered), " "))
	for _, word := range strings.Fields(strings.Join(argumentsOf(wanted), " ")) {
		if key, _, _ := strings.Cut(word, "="); accumulates(key) && !slices.Contains(have, word) {
			return false
		}
	}
	return true
}

// accumulates reports whether every occurrence of a kernel argument counts, and not only the last.
func accumulates(key string) bool {
	switch key {
	case "console", "earlycon", "hugepages", "hugepagesz", "ip", "nameserver", "module_blacklist":
		return true
	default:
		return strings.HasPrefix(key, "rd.") || strings.HasPrefix(key, "systemd.")
	}
}
