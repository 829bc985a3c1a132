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

// kubernetes is the version of Kubernetes whose functions expressions may use. It is
// fixed, so that a new library never changes what new expressions may use without a
// decision here.
func kubernetes() *version.Version { return version.MajorMinor(1, 34) }

// typing is the environment in which expressions are parsed and checked: that of
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

// declared are variables of any type.
func declared(variables []string) []cel.EnvOption {
	options := make([]cel.EnvOption, len(variables))
	for i, name := range variables {
		options[i] = cel.Variable(name, cel.DynType)
	}
	return options
}

// evaluation is the environment in which expressions are evaluated: the same functions,
// without the library's own count of costs. That one reads every text and searches what
// it remembers at each step, and so takes much longer than what it counts.
// TestEnvironments says that the functions are the same: those of every version, for what
// was stored stays valid.
//
// With mixed, lists and maps may have values of several types, which Kubernetes allows
// only in its own objects.
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

// Functions returns the CEL functions of the newest Kubernetes version for which expressions may be
// written.
func Functions() []cel.EnvOption {
	return []cel.EnvOption{
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.Lists(ext.ListsVersion(3)), ext.TwoVarComprehensions(),
		library.URLs(), library.Regex(), library.Lists(library.ListsVersion(1)), library.Authz(), library.AuthzSelectors(),
		library.Quantity(), library.IP(), library.CIDR(), library.Format(), library.SemverLib(library.SemverVersion(1)),
	}
}

// implementations are those of all functions of an environment, by overload and
// by function.
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
