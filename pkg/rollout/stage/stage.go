// Package stage compiles phases of objects into the flat list of stages that the rollout engine
// executes. It is pure. Only this package decides the order of objects.
package stage

import (
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// Adoption is the policy for an existing object that does not belong to the chain.
type Adoption string

const (
	// AdoptNever leaves the object unchanged and reports a collision.
	AdoptNever Adoption = "Never"
	// AdoptUncontrolled adopts an object that has no controller owner and belongs to no other
	// chain.
	AdoptUncontrolled Adoption = "Uncontrolled"
	// AdoptAlways adopts an object from any owner.
	AdoptAlways Adoption = "Always"
)

// Ownership is the kind of ownership of an object.
type Ownership string

const (
	// Exclusive objects belong to the chain, which repairs them.
	Exclusive Ownership = ""
	// Shared objects belong to another owner. The engine sets only the fields of the manifest and
	// keeps all other fields. It deletes the object only with Policy.Delete. It reports later
	// changes and does not repair them.
	Shared Ownership = "Shared"
)

// Policy controls how the engine treats one object.
type Policy struct {
	// Own is Exclusive or Shared. Adopt and Yield have no effect on Shared objects.
	Own Ownership
	// Expect is the only state (see rollout.Fingerprint) in which a Shared object may be written.
	Expect string
	// Takes are the only fields that a Shared object may take from other managers.
	Takes []Take
	// Written means that the manager wrote the Shared object before, and its record was lost. The
	// object is not created again.
	Written bool
	// ReadOnly means that a Shared object is only compared, without annotations, and never written.
	ReadOnly bool
	// Delete means that a Shared object is deleted. Its manifest is not read.
	Delete bool
	Adopt  Adoption
	// CreateOnly means that the object is created if it is absent, and never changed. An existing
	// object of any owner is accepted, and never becomes ours. Adopt and Yield have no effect, and
	// no probe waits for the object.
	CreateOnly bool
	// Yield lists fields that are left to another manager once it changes them. They are applied
	// until then.
	Yield []manifest.FieldPath
}

// Take lists fields that one manager has and may lose.
type Take struct {
	Manager string
	// Fields are paths in the spelling of package managedfields, such as ".spec.replicas".
	Fields []string
}

// Step is one object and its desired manifest.
type Step struct {
	manifest.Ref
	Policy Policy
	// Level is the install level; the first is 0. It has no effect without Options.Levels.
	Level int
}

// Phase is a named group of steps, as a user wrote it.
type Phase struct {
	Name  string
	Steps []Step
}

// Gate is a probe that must pass before the next stage is reached.
type Gate struct {
	ID    manifest.ID
	Probe probe.Probe
}

// Stage is a set of steps that may be applied in any order, and their gates.
type Stage struct {
	// Phase is the name of the phase that the stage was compiled from.
	Phase string
	// Level is the install level of the steps; 0 without Options.Levels.
	Level int
	// Wave numbers the stages of one phase (and level): 0, 1 and so on, without gaps.
	Wave int
	// Early is true for a stage that needs only the existence of earlier objects in its phase and
	// level, and does not wait for their gates.
	Early bool
	// Steps in the order of the phase, at least one.
	Steps []Step
	// Gates are the probes of the steps whose kind has a probe, in the order of the steps.
	// Create-only steps have no gate.
	Gates []Gate
}

// Options of Compile.
type Options struct {
	// Probes returns the gates; nil for no gates.
	Probes probe.Set
	// Levels orders all phases of one install level before the phases of the next level, as in the
	// first installation.
	Levels bool
}
