// Package stage compiles phases of objects into the flat list of stages that the
// rollout engine executes. It is pure: what runs in which order is decided here,
// and nowhere else.
package stage

import (
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// Adoption says what may be done with an object that exists and is not ours.
type Adoption string

const (
	// AdoptNever leaves it alone and reports a collision.
	AdoptNever Adoption = "Never"
	// AdoptUncontrolled takes it over when it has no controller owner and
	// belongs to no other chain.
	AdoptUncontrolled Adoption = "Uncontrolled"
	// AdoptAlways takes it over from anyone.
	AdoptAlways Adoption = "Always"
)

// Ownership says whose object it is.
type Ownership string

const (
	// Exclusive objects belong to the owner of the work, who repairs them.
	Exclusive Ownership = ""
	// Shared objects belong to somebody else: of them only the fields of the
	// manifest are set, what else they have stays, they are never deleted, and
	// what others change afterwards is reported and not repaired.
	Shared Ownership = "Shared"
)

// Policy is how one object is treated.
type Policy struct {
	// Own is Exclusive or Shared. Adopt and Yield mean nothing for Shared objects.
	Own Ownership
	// Expect, of a Shared object, is the only state (see rollout.Fingerprint) that
	// it may be written in.
	Expect string
	// Takes, of a Shared object, are the fields that it may take from others; it
	// takes nothing else. None are for an object that takes nothing.
	Takes []Take
	// Written, of a Shared object, says that it was written before, by the manager that has
	// forgotten it since: it is not made again.
	Written bool
	// ReadOnly keeps a Shared object from being written at all: it is compared.
	// Annotations are left out of that.
	ReadOnly bool
	// Delete, of a Shared object, wants it gone; nothing of its manifest is read.
	Delete bool
	Adopt  Adoption
	// CreateOnly has the object created whenever it is absent, and nothing else:
	// one that exists is as wanted, no matter who made it, and is never ours. Adopt
	// and Yield mean nothing then, and no probe waits for it.
	CreateOnly bool
	// Yield lists fields that are left to the manager that changes them. They are applied
	// until that happens.
	Yield []manifest.FieldPath
}

// Take are fields that one manager has and may lose.
type Take struct {
	Manager string
	// Fields are paths as package rollout spells them, such as ".spec.replicas".
	Fields []string
}

// Step is one object to be as a manifest says.
type Step struct {
	manifest.Ref
	Policy Policy
	// Level is the install level: 0 for what comes first. It orders nothing
	// unless Compile is told to.
	Level int
}

// Phase is a named group of steps, as a person wrote it.
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
	// Early is true for a stage that needs of those before it in its phase (and
	// level) that their objects exist, and no more: it does not wait for their gates.
	Early bool
	// Steps in the order in which the phase lists them. There is at least one.
	Steps []Step
	// Gates of the steps whose kind has a probe, in the order of the steps.
	// Create-only steps have none.
	Gates []Gate
}

// Options of Compile.
type Options struct {
	// Probes picks the gates; nil makes none.
	Probes probe.Set
	// Levels puts all phases of one install level before those of the next, as
	// the first installation does.
	Levels bool
}
