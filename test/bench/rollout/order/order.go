// Package order defines the messages between the benchmark and the program with its peers: one line
// of JSON for each order, and one for its answer.
package order

// Verb is the action on releases.
type Verb string

// Verbs of orders.
const (
	// Apply applies the releases' objects, whatever is in the cluster.
	Apply Verb = "apply"
	// Rollback returns to the previously applied state.
	Rollback Verb = "rollback"
	// Remove deletes the releases.
	Remove Verb = "remove"
)

// Order asks for one thing to be done with releases.
type Order struct {
	Verb     Verb      `json:"verb"`
	Releases []Release `json:"releases"`
	// Workers is the number of releases, or for a loop of objects, that are handled at the same
	// time.
	Workers int `json:"workers"`
	// CAFile and AuthFile authenticate a client of the charts' registry. They are empty if no
	// release names a chart.
	CAFile   string `json:"caFile,omitempty"`
	AuthFile string `json:"authFile,omitempty"`
}

// Release is a set of objects under a name.
type Release struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// File has the objects: a JSON array.
	File string `json:"file"`
	// Chart is the reference of a chart that takes the place of File, or empty.
	Chart string `json:"chart,omitempty"`
}

// Answer is the result of an order.
type Answer struct {
	// Millis is the duration, without reading the files.
	Millis float64 `json:"millis"`
	Error  string  `json:"error,omitempty"`
}
