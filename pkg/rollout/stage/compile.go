package stage

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// maxErrors is the largest number of problems that one error lists.
const maxErrors = 10

// Compile makes stages from phases. The phases keep their order. Each becomes one stage for every
// wave in which it has objects, in the order of Waves. Phases without objects make no stage. With
// Levels, Compile does this for the objects of each install level separately, the lowest level
// first. Equal phases make equal stages. Compile does not change phases.
//
// An error lists the faults: unnamed or equally named phases, and objects that are incomplete or
// listed twice.
func Compile(phases []Phase, options Options) ([]Stage, error) {
	if err := check(phases); err != nil {
		return nil, err
	}
	var stages []Stage
	order := newOrder(Waves())
	for _, level := range levels(phases, options) {
		for _, phase := range phases {
			stages = append(stages, level.stagesOf(phase, order, options)...)
		}
	}
	return stages, nil
}

// level is one iteration over the phases: the steps of one install level, or all steps.
type level struct {
	number int
	all    bool
}

func levels(phases []Phase, options Options) []level {
	if !options.Levels {
		return []level{{all: true}}
	}
	var numbers []int
	for _, phase := range phases {
		for _, step := range phase.Steps {
			numbers = append(numbers, step.Level)
		}
	}
	slices.Sort(numbers)
	var out []level
	for _, number := range slices.Compact(numbers) {
		out = append(out, level{number: number})
	}
	return out
}

func (l level) stagesOf(phase Phase, order order, options Options) []Stage {
	byWave := make([][]Step, order.count)
	for _, step := range phase.Steps {
		if l.all || step.Level == l.number {
			wave := order.waveOf(step.GroupKind())
			byWave[wave] = append(byWave[wave], step)
		}
	}
	var stages []Stage
	for wave, steps := range byWave {
		if len(steps) > 0 {
			// Stages live long, so their slices have no spare capacity.
			stages = append(stages, Stage{
				Phase: phase.Name, Level: l.number, Wave: len(stages), Early: order.early(wave, steps, stages),
				Steps: slices.Clip(slices.Clone(steps)), Gates: slices.Clip(slices.Clone(gates(steps, options))),
			})
		}
	}
	return stages
}

func gates(steps []Step, options Options) []Gate {
	if options.Probes == nil {
		return nil
	}
	var gates []Gate
	for _, step := range steps {
		if step.Policy.CreateOnly {
			continue // another owner may control the object
		}
		if p := options.Probes.For(step.GroupKind()); p != nil {
			gates = append(gates, Gate{ID: step.ID, Probe: p})
		}
	}
	return gates
}

func check(phases []Phase) error {
	var errs []error
	found := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	names := map[string]int{}
	places := map[manifest.ID]string{}
	for i, phase := range phases {
		if first, taken := names[phase.Name]; taken {
			found("phases %d and %d have the same name %q", first, i, phase.Name)
		}
		names[phase.Name] = i
		if phase.Name == "" {
			found("phase %d has no name", i)
		}
		for j, step := range phase.Steps {
			place := fmt.Sprintf("object %d of phase %q", j, phase.Name)
			if missing := incomplete(step.Ref); missing != "" {
				found("%s (%s) has no %s", place, step.ID, missing)
				continue
			}
			if first, taken := places[step.ID]; taken {
				found("%s is listed twice: as %s and as %s", step.ID, first, place)
				continue
			}
			places[step.ID] = place
		}
	}
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

func incomplete(ref manifest.Ref) string {
	switch {
	case ref.Kind == "":
		return "kind"
	case ref.Version == "":
		return "version"
	case ref.Name == "":
		return "name"
	}
	return ""
}
