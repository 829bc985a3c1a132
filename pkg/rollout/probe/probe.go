// Package probe judges from an object's live state whether it is ready. Verdicts are functions of
// one object: no client, no clock.
//
// Well-known kinds have built-in probes (see Builtin). A revision may add assertions on conditions,
// on fields and in CEL (see New). A probe neither panics nor changes an object, whatever its
// content. A field that it cannot read makes the verdict Unknown, with a message that names the
// field.
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
	// MaxMessageBytes. Equal states give equal messages, so it has no times and no random order.
	Message string
}

// Reads lists the parts of an object that a probe reads besides metadata. Only these parts are kept
// in memory.
type Reads struct {
	// Whole object. The other members then mean nothing.
	Whole bool
	// Status of the object.
	Status bool
	// Fields are paths, such as {"spec", "replicas"}. A probe that reads only metadata uses the
	// path {"metadata"}, which adds nothing, so that its Reads differ from the Reads of no probe.
	Fields [][]string
}

// Probe judges one object.
type Probe interface {
	// Probe judges an object that has at least the parts in Reads (see Reads.Trim). It does not
	// change the object. It is safe for concurrent use.
	Probe(object *unstructured.Unstructured) Verdict
	// Reads names the parts that Probe looks at.
	Reads() Reads
}

// Metered is a probe with requirements that users wrote, which may take long.
type Metered interface {
	Probe
	// ProbeWithin is Probe with a budget, which should have MaxCELCost units, and with ctx. A probe
	// that could not be evaluated is Unknown. That is a final verdict only if the budget started
	// full, was not cut short (see Meter.Slow), and ctx has not ended.
	ProbeWithin(ctx context.Context, object *unstructured.Unstructured, budget *CostBudget) Verdict
}

// Set picks the probe of a kind of object.
type Set interface {
	// For returns the probe of objects of this kind, or nil when there is
	// nothing to wait for but their existence.
	For(kind schema.GroupKind) Probe
}
