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
// Kubernetes, with self.
func typing() (*environment.EnvSet, error) {
	set, err := environment.MustBaseEnvSet(kubernetes()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", cel.DynType)},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	return set, nil
}

// evaluation is the environment in which expressions are evaluated: the same functions,
// without the library's own count of costs. That one reads every text and searches what
// it remembers at each step, and so takes much longer than what it counts.
// TestEnvironments says that the functions are the same: those of every version, for what
// was stored stays valid.
func evaluation() (*cel.Env, error) {
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.Lists(ext.ListsVersion(3)), ext.TwoVarComprehensions(),
		library.URLs(), library.Regex(), library.Lists(library.ListsVersion(1)), library.Authz(), library.AuthzSelectors(),
		library.Quantity(), library.IP(), library.CIDR(), library.Format(), library.SemverLib(library.SemverVersion(1)),
		cel.Variable("self", cel.DynType),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	return env, nil
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
