// Package release reads the manifests of an OpenShift release: files named 0000_<run
// level>_<component>_<anything>.yaml, whose annotations select clusters. Each run level becomes a
// phase, with all its components.
//
// Each such annotation needs the matching option. Otherwise it is refused with the name of the
// option, so that a missing option neither drops nor adds an object.
package release

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/manifest/release"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// Options describe the cluster for which manifests are selected.
type Options struct {
	// MaxErrors has the same meaning as in directory.Options.
	MaxErrors int
	// Warn has the same meaning as in directory.Options.
	Warn func(directory.Error)
	// Profile of the cluster. Manifests without include.release.openshift.io/<Profile>: "true" are
	// left out. If it is empty, manifests with any such annotation are refused.
	Profile string
	// Exclude are identifiers of the cluster. Manifests with
	// exclude.release.openshift.io/<identifier>: "true" are left out.
	Exclude []string
	// Capabilities are the capabilities of the cluster; "*" means all. If it is empty, manifests
	// that need one are refused.
	Capabilities []string
	// FeatureSet of the cluster; empty means Default.
	FeatureSet string
	// FeatureGates are the enabled gates. If it is nil, manifests that name a gate are refused.
	FeatureGates []string
}

// Result is the result of reading.
type Result struct {
	// Phases are the run levels, lowest first, without empty ones.
	Phases []source.Phase
	// LeftOut counts the manifests that are left out, by reason.
	LeftOut map[string]int
}

// fileName matches the names of release manifests: a run level and a component.
var fileName = regexp.MustCompile(`^0000_([0-9]+)_([a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*?)_`)

// Render reads all manifests of a file system. Errors in them are a *directory.Errors.
func Render(ctx context.Context, fsys fs.FS, options Options) (Result, error) {
	result := Result{LeftOut: map[string]int{}}
	located, err := directory.Read(ctx, fsys, directory.Options{
		MaxErrors: options.MaxErrors,
		Warn:      options.Warn,
		Keep: func(object directory.Located) (bool, error) {
			if fileName.FindStringSubmatch(path.Base(object.File)) == nil {
				return false, errors.New("the file is not named 0000_<run level>_<component>_<anything>, so it has no run level: rename it, or render without --layout release")
			}
			why, err := options.omits(object.Object)
			if why != "" {
				result.LeftOut[why]++
			}
			return why == "" && err == nil, err
		},
	})
	if err != nil {
		return Result{}, err
	}
	result.Phases = byRunLevel(located)
	return result, nil
}

// byRunLevel sorts objects into phases. Run levels compare as text, like file names, so all run
// levels should have the same number of digits.
func byRunLevel(located []directory.Located) []source.Phase {
	byLevel := map[string]*source.Phase{}
	slices.SortStableFunc(located, func(a, b directory.Located) int {
		return strings.Compare(path.Base(a.File), path.Base(b.File))
	})
	for _, object := range located {
		level := fileName.FindStringSubmatch(path.Base(object.File))[1]
		phase, known := byLevel[level]
		if !known {
			phase = &source.Phase{Name: "run-level-" + level}
			byLevel[level] = phase
		}
		phase.Objects = append(phase.Objects, object.Object)
	}
	var phases []source.Phase
	for _, level := range slices.Sorted(maps.Keys(byLevel)) {
		phases = append(phases, *byLevel[level])
	}
	return phases
}

// checkMarks refuses install levels and create-only marks that the server would refuse.
func checkMarks(offences []release.Offence) error {
	var errs []error
	for _, offence := range offences {
		errs = append(errs, fmt.Errorf("%s", offence))
	}
	return errors.Join(errs...)
}
