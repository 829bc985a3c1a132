// Package probe decides from an object's live state whether it is ready. Verdicts are pure
// functions of one object: no client, no clock.
//
// Well-known kinds have built-in probes (see Builtin). A revision may add assertions on conditions,
// on fields and in CEL (see New). A probe never panics and never changes an object. If it cannot
// read a field, the verdict is Unknown, with a message that names the field.
package probe

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status of a verdict.
type Status string

const (
	// True means ready.
	True Status = "True"
	// False means not ready, or not yet.
	False Status = "False"
	// Unknown means that the object's state cannot be judged: its controller has not observed the
	// newest generation, or a field could not be read.
	Unknown Status = "Unknown"
)

// Verdict is the result of a probe.
type Verdict struct {
	Status Status
	// Message says what is missing; empty when Status is True. It is one line of at most
	// MaxMessageBytes. Equal states have equal messages, so it has no times and no random order.
	Message string
}

// Reads lists the parts of an object that a probe reads besides metadata. Only these parts are kept
// in memory.
type Reads struct {
	// Whole is true for the whole object. The other fields are then ignored.
	Whole bool
	// Status of the object.
	Status bool
	// Fields are paths, such as {"spec", "replicas"}. The path {"metadata"} adds no field; it
	// distinguishes a probe that reads only metadata from no probe.
	Fields [][]string
}

// Probe judges one object.
type Probe interface {
	// Probe judges an object that has at least the parts in Reads (see Reads.Trim). It does not
	// change the object. It is safe for concurrent use.
	Probe(object *unstructured.Unstructured) Verdict
	// Reads returns the parts that Probe reads.
	Reads() Reads
}

// Metered is a probe with user-written requirements, which may take long.
type Metered interface {
	Probe
	// ProbeWithin is Probe with a budget, which should have MaxCELCost units, and with ctx. A probe
	// that could not be evaluated is Unknown. That verdict is final only if the budget was full at
	// the start, the evaluation was not cut short (see CostBudget.Slow), and ctx has not ended.
	ProbeWithin(ctx context.Context, object *unstructured.Unstructured, budget *CostBudget) Verdict
}

// Set returns the probe of a kind.
type Set interface {
	// For returns the probe of objects of this kind, or nil if they are ready when they exist.
	For(kind schema.GroupKind) Probe
}
