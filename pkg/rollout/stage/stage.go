// Package stage compiles phases of objects into the flat list of stages that the rollout engine
// executes. It is pure. It alone decides the order.
package stage

import (
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// Adoption decides about an existing object that is not ours.
type Adoption string

const (
	// AdoptNever does not touch it and reports a collision.
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
	// Exclusive objects belong to the owner of the work, which repairs them.
	Exclusive Ownership = ""
	// Shared objects belong to another owner. The engine sets only the fields of the manifest,
	// keeps all others, never deletes the object, and reports later changes of others without
	// repair.
	Shared Ownership = "Shared"
)

// Policy controls how one object is treated.
type Policy struct {
	// Own is Exclusive or Shared. Adopt and Yield have no effect on Shared objects.
	Own Ownership
	// Expect, of a Shared object, is the only state (see rollout.Fingerprint) that
	// it may be written in.
	Expect string
	// Takes are the fields that a Shared object may take from other managers; it takes no other
	// field.
	Takes []Take
	// Written means that the manager wrote the Shared object before, and lost the record of it: it
	// is not created again.
	Written bool
	// ReadOnly means that a Shared object is only compared, without annotations, and never written.
	ReadOnly bool
	// Delete means that a Shared object is deleted; nothing of its manifest is read.
	Delete bool
	Adopt  Adoption
	// CreateOnly means that the object is created if it is absent, and never changed. An existing
	// object is accepted, whoever created it, and never becomes ours. Adopt and Yield have no
	// effect, and no probe waits for the object.
	CreateOnly bool
	// Yield lists fields that are left to the manager that changes them. They are applied until
	// then.
	Yield []manifest.FieldPath
}

// Take are fields that one manager has and may lose.
type Take struct {
	Manager string
	// Fields are paths as package rollout spells them, such as ".spec.replicas".
	Fields []string
}

// Step is one object and its desired manifest.
type Step struct {
	manifest.Ref
	Policy Policy
	// Level is the install level; 0 is the first. It has no effect without Options.Levels.
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

// Stage is a set of steps that may be applied in any order, and the gates behind
// them.
type Stage struct {
	// Phase is the name of the phase that the stage was compiled from.
	Phase string
	// Level is the install level of the steps, where levels order; 0 elsewhere.
	Level int
	// Wave orders the stages of one phase (and level): 0, 1 and so on, without
	// gaps.
	Wave int
	// Early is true for a stage that needs only the existence of earlier objects in its phase and
	// level: it does not wait for their gates.
	Early bool
	// Steps are in the order of the phase. There is at least one.
	Steps []Step
	// Gates are the probes of steps whose kind has a probe, in the order of the steps. Create-only
	// steps have none.
	Gates []Gate
}

// Options of Compile.
type Options struct {
	// Probes picks the gates; nil makes none.
	Probes probe.Set
	// Levels puts all phases of one install level before the phases of the next level, as in the
	// first installation.
	Levels bool
}
