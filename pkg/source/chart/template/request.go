// Package template renders a Helm chart with Helm's own engine. It runs in a separate process,
// because templates cannot be interrupted and can allocate any amount of memory. The process uses
// only its standard input and output. Package chart starts the process and reads the answer.
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

// processArgument makes a program render a chart for its parent process. It is a flag, so that a
// program without support for it exits.
const processArgument = "--render-chart"

// Limits of a process.
type Limits struct {
	// Time limits the running time of the process.
	Time time.Duration
	// Memory limits the memory of the process, in bytes.
	Memory int64
	// Output limits the answer of the process, in bytes.
	Output int64
}

// Arguments returns the arguments for a process with these limits.
func Arguments(limits Limits) []string {
	seconds := int64((limits.Time + time.Second - 1) / time.Second)
	return []string{processArgument, strconv.FormatInt(limits.Memory, 10), strconv.FormatInt(seconds, 10)}
}

// IsProcess reports whether these arguments request the rendering of a chart. Then main only calls
// RunProcess.
func IsProcess(args []string) bool { return len(args) == 4 && args[1] == processArgument }

// RunProcess renders the requested chart: it reads the request from in, and writes the answer to
// out. It returns the exit code. If the chart cannot be rendered, the answer has an error.
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

// integers converts whole floats in a value to integers, which templates print without an exponent.
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
		// Larger floats cannot represent every integer.
		const exact = 1 << 53
		if of == math.Trunc(of) && math.Abs(of) <= exact {
			return int64(of)
		}
	}
	return value
}

// Request describes the chart to render.
type Request struct {
	// Archive is a packaged chart. Files are an unpacked chart. Exactly one of them is set.
	Archive []byte `json:"archive,omitempty"`
	Files   []File `json:"files,omitempty"`

	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	// Values override the chart's values.
	Values map[string]any `json:"values,omitempty"`
	// Integers keeps integers in Values. Otherwise they become floating point, as in a values file
	// for Helm, and a million is printed as 1e+06.
	Integers bool `json:"integers,omitempty"`
	// Cluster has the capabilities of the cluster for .Capabilities; nil uses Helm's defaults.
	Cluster *Capabilities `json:"cluster,omitempty"`
	// KubeVersion replaces the version of Kubernetes. APIVersions are added to the served versions.
	KubeVersion string   `json:"kubeVersion,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"`
	// Generate allows functions that generate a different value each time, and renders twice to
	// find these values. Lookups of Secrets find Known.
	Generate bool             `json:"generate,omitempty"`
	Known    []map[string]any `json:"known,omitempty"`
}

// File is a file of a chart, or the output of a template.
type File struct {
	// Name is the slash-separated path below the chart's folder.
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Answer is the rendered chart.
type Answer struct {
	// Name, Version and Dependencies are from Chart.yaml.
	Name    string `json:"name"`
	Version string `json:"version"`
	// KubeVersion is the range of Kubernetes versions in Chart.yaml.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// Definitions are the files of the folder crds. Manifests are the outputs of templates, by
	// name. Again are the outputs of the second rendering.
	Definitions []File `json:"definitions,omitempty"`
	Manifests   []File `json:"manifests,omitempty"`
	Again       []File `json:"again,omitempty"`
	// Notes is the output of the chart's NOTES.txt, without the notes of subcharts. It is empty if
	// two renderings differ.
	Notes    string   `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Error is the reason why the chart could not be rendered. Then only Unknown, OtherKubernetes
	// and KubeVersion may be set, too.
	Error string `json:"error,omitempty"`
	// Unknown is true if a fact about the cluster was unknown: a later rendering may succeed.
	Unknown bool `json:"unknown,omitempty"`
	// OtherKubernetes is true if the chart needs another version of Kubernetes.
	OtherKubernetes bool `json:"otherKubernetes,omitempty"`
}
