package verbs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/release"
	"github.com/penstock-project/penstock/pkg/text"
)

// The layouts of a directory of manifests.
const (
	plainLayout   = "plain"
	releaseLayout = "release"
)

// addReleaseFlags defines the flags that annotations of release manifests need.
func (o *renderOptions) addReleaseFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.release.Profile, "profile", "", "Cluster profile: keep manifests with include.release.openshift.io/<profile>: \"true\" (--layout release).")
	flags.StringSliceVar(&o.release.Exclude, "exclude", nil, "Leave out manifests with exclude.release.openshift.io/<identifier>: \"true\" (--layout release).")
	flags.StringSliceVar(&o.release.Capabilities, "capabilities", nil, "Capabilities that the cluster has, or * for all, for capability.openshift.io/name (--layout release).")
	flags.StringVar(&o.release.FeatureSet, "feature-set", "", "Feature set of the cluster, for release.openshift.io/feature-set. Without it: Default (--layout release).")
	flags.StringSliceVar(&o.release.FeatureGates, "feature-gates", nil, "Feature gates that are on, for release.openshift.io/feature-gate (--layout release).")
}

func releaseFlags() []string {
	return []string{"profile", "exclude", "capabilities", "feature-set", "feature-gates"}
}

func (o *renderOptions) validateLayout(command *cobra.Command) error {
	switch o.layout {
	case releaseLayout:
		if info, err := os.Stat(o.from); o.from == "-" || err == nil && !info.IsDir() {
			return errors.New("--layout release reads a directory: run levels are in the names of its files")
		}
		if command.Flags().Changed("feature-gates") && o.release.FeatureGates == nil {
			o.release.FeatureGates = []string{}
		}
		return nil
	case plainLayout:
		for _, name := range releaseFlags() {
			if command.Flags().Changed(name) {
				return fmt.Errorf("--%s does nothing without --layout release", name)
			}
		}
		return nil
	default:
		return fmt.Errorf("--layout %q: want plain or release", o.layout)
	}
}

// readLayout reads manifests, and reports the omitted ones.
func readLayout(command *cobra.Command, options renderOptions) (phases []source.Phase, notes string, err error) {
	from := options.from
	if options.layout != releaseLayout {
		phases, err = readPhases(command.Context(), command.InOrStdin(), from, warnings(command))
		return phases, "", err
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	options.release.Warn = below(from, warnings(command))
	result, err := release.Render(command.Context(), root.FS(), options.release)
	if err != nil {
		return nil, "", withDirectory(from, err)
	}
	for _, why := range slices.Sorted(maps.Keys(result.LeftOut)) {
		notes += fmt.Sprintf("note: %s left out: %s\n", text.Count(result.LeftOut[why], "manifest"), why)
	}
	return result.Phases, notes, nil
}
