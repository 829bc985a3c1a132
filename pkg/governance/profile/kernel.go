package profile

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argumentsOf is the list of kernel arguments of a MachineConfig.
func argumentsOf(config *unstructured.Unstructured) []string {
	arguments, _, _ := unstructured.NestedStringSlice(specOf(config), "kernelArguments")
	return arguments
}

// wantedArguments are the kernel arguments of a MachineConfig with the value that counts, the
// last one. Arguments that add to each other are not among them.
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

// HasArguments reports whether a rendered configuration has the kernel arguments of another one in
// effect.
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

// accumulates tells of kernel arguments that may be given several times, and all count.
func accumulates(key string) bool {
	switch key {
	case "console", "earlycon", "hugepages", "hugepagesz", "ip", "nameserver", "module_blacklist":
		return true
	default:
		return strings.HasPrefix(key, "rd.") || strings.HasPrefix(key, "systemd.")
	}
}
