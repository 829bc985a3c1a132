// Package order defines the messages between the benchmark and the program with its peers: one line
// of JSON per order, and one per answer.
package order

// Verb is the action on releases.
type Verb string

const (
	// Apply applies the releases' objects in any state of the cluster.
	Apply Verb = "apply"
	// Rollback restores the previously applied state.
	Rollback Verb = "rollback"
	// Remove deletes the releases.
	Remove Verb = "remove"
)

// Order requests one action on releases.
type Order struct {
	Verb     Verb      `json:"verb"`
	Releases []Release `json:"releases"`
	// Workers is the number of releases that are handled in parallel; for a loop, the number of
	// objects.
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
	// File is a JSON array of the objects.
	File string `json:"file"`
	// Chart is the reference of a chart, used instead of File, or empty.
	Chart string `json:"chart,omitempty"`
}

// Answer is the result of an order.
type Answer struct {
	// Millis is the duration without reading the files.
	Millis float64 `json:"millis"`
	Error  string  `json:"error,omitempty"`
}
