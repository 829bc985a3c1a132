package expression

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// kubernetes is the version of Kubernetes whose functions expressions may use. It is fixed, so that
// an update of the library does not allow new functions unnoticed.
func kubernetes() *version.Version { return version.MajorMinor(1, 34) }

// typing returns the environment in which expressions are parsed and checked: the environment of
// Kubernetes, with some variables.
func typing(variables ...string) (*environment.EnvSet, error) {
	set, err := environment.MustBaseEnvSet(kubernetes()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        declared(variables),
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	return set, nil
}

func declared(variables []string) []cel.EnvOption {
	options := make([]cel.EnvOption, len(variables))
	for i, name := range variables {
		options[i] = cel.Variable(name, cel.DynType)
	}
	return options
}

// evaluation returns the environment in which expressions are evaluated: the same functions,
// without the library's own cost tracking, which takes much longer than the steps that it counts.
// TestEnvironments checks that the functions are the same. They include the functions of every
// version, because stored expressions stay valid.
//
// If mixed is true, lists and maps may have values of several types, which Kubernetes allows only
// in its own objects.
func evaluation(mixed bool, variables ...string) (*cel.Env, error) {
	options := append(Functions(), declared(variables)...)
	if !mixed {
		options = append(options, cel.HomogeneousAggregateLiterals())
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	return env, nil
}

// Functions returns the CEL functions that new expressions may use.
func Functions() []cel.EnvOption {
	return []cel.EnvOption{
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.Lists(ext.ListsVersion(3)), ext.TwoVarComprehensions(),
		library.URLs(), library.Regex(), library.Lists(library.ListsVersion(1)), library.Authz(), library.AuthzSelectors(),
		library.Quantity(), library.IP(), library.CIDR(), library.Format(), library.SemverLib(library.SemverVersion(1)),
	}
}

func implementations(env *cel.Env) (map[string]*functions.Overload, error) {
	all := map[string]*functions.Overload{}
	for name, function := range env.Functions() {
		bindings, err := function.Bindings()
		if err != nil {
			return nil, fmt.Errorf("preparing the CEL function %s: %w", name, err)
		}
		for _, binding := range bindings {
			all[binding.Operator] = binding
		}
	}
	return all, nil
}
