// Package template renders a Helm chart with Helm's own engine, in a separate process, because
// templates cannot be interrupted and can allocate any amount of memory. It needs only its standard
// input and output. Package chart starts the process and reads the answer.
package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// processArgument has a program render a chart for another process of it. It is a flag, so
// that a program that does not know it ends.
const processArgument = "--render-chart"

// Limits of a process.
type Limits struct {
	// Time until it is ended.
	Time time.Duration
	// Memory is how many bytes it may have.
	Memory int64
	// Output is how many bytes it may answer.
	Output int64
}

// Arguments are those of a process with these limits.
func Arguments(limits Limits) []string {
	seconds := int64((limits.Time + time.Second - 1) / time.Second)
	return []string{processArgument, strconv.FormatInt(limits.Memory, 10), strconv.FormatInt(seconds, 10)}
}

// IsProcess reports whether a program with these arguments is to render a chart: then its main does
// nothing but RunProcess.
func IsProcess(args []string) bool { return len(args) == 4 && args[1] == processArgument }

// RunProcess renders the chart that is asked for on in, and answers on out. It returns the
// code to exit with; a chart that cannot be rendered is an answer too.
func RunProcess(args []string, in io.Reader, out, errOut io.Writer) int {
	if err := limit(args[2], args[3]); err != nil {
		fmt.Fprintf(errOut, "limiting the process: %v\n", err)
		return 1
	}
	var request Request
	if err := json.NewDecoder(in).Decode(&request); err != nil {
		fmt.Fprintf(errOut, "reading the chart: %v\n", err)
		return 1
	}
	if request.Integers {
		request.Values, _ = integers(request.Values).(map[string]any)
	}
	answer, err := render(request)
	if err != nil {
		var version *versionError
		answer = Answer{Error: err.Error(), Unknown: strings.Contains(err.Error(), unknownKinds), OtherKubernetes: errors.As(err, &version)}
		if version != nil {
			answer.KubeVersion = version.wanted
		}
	}
	if err := json.NewEncoder(out).Encode(answer); err != nil {
		fmt.Fprintf(errOut, "answering: %v\n", err)
		return 1
	}
	return 0
}

// integers makes whole numbers of a value integers, which templates print as they are.
func integers(value any) any {
	switch of := value.(type) {
	case map[string]any:
		for name, one := range of {
			of[name] = integers(one)
		}
	case []any:
		for i, one := range of {
			of[i] = integers(one)
		}
	case float64:
		// Beyond it, floating point has no units.
		const exact = 1 << 53
		if of == math.Trunc(of) && math.Abs(of) <= exact {
			return int64(of)
		}
	}
	return value
}

// Request is the chart to render.
type Request struct {
	// Archive is a chart as helm package makes it; Files are one that is unpacked. One of
	// them is set.
	Archive []byte `json:"archive,omitempty"`
	Files   []File `json:"files,omitempty"`

	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	// Values override those of the chart.
	Values map[string]any `json:"values,omitempty"`
	// Integers makes whole numbers of Values integers. Without it they are floating point, as those
	// of a file of values are to Helm, and a million is printed as 1e+06.
	Integers bool `json:"integers,omitempty"`
	// Cluster is the cluster that templates see in .Capabilities; nil for the one that Helm was
	// built with.
	Cluster *Capabilities `json:"cluster,omitempty"`
	// KubeVersion replaces the version of Kubernetes, and APIVersions are added to those that are served.
	KubeVersion string   `json:"kubeVersion,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"`
	// Generate allows functions that make another value each time, and renders twice, so
	// that it can be seen where their values are. Lookups of Secrets find Known.
	Generate bool             `json:"generate,omitempty"`
	Known    []map[string]any `json:"known,omitempty"`
}

// File is one file of a chart, or what a template made.
type File struct {
	// Name is the slash-separated path below the folder of the chart.
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Answer is the rendered chart.
type Answer struct {
	// Name, Version and Dependencies are those of Chart.yaml.
	Name    string `json:"name"`
	Version string `json:"version"`
	// KubeVersion is the range of versions of Kubernetes that Chart.yaml states.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// Definitions are the files of the folder crds, and Manifests what templates made, by
	// name. Again is the same from the second time.
	Definitions []File `json:"definitions,omitempty"`
	Manifests   []File `json:"manifests,omitempty"`
	Again       []File `json:"again,omitempty"`
	// Notes is the text of the chart's NOTES.txt, without those of the charts in it. They are empty
	// when they differ each time.
	Notes    string   `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Error says why there is nothing else.
	Error string `json:"error,omitempty"`
	// Unknown is true when Error is a question about the cluster that had no answer: a later try may succeed.
	Unknown bool `json:"unknown,omitempty"`
	// OtherKubernetes is true when Error is that the chart needs another version of Kubernetes.
	OtherKubernetes bool `json:"otherKubernetes,omitempty"`
}
