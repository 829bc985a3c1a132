package app

import (
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// WithholdBodies keeps bodies of requests and answers out of the log of this process,
// at any verbosity. Kubernetes' client logs them from --v=8 on, also those of Secrets:
// what is rolled out, the authority's key, kubeconfigs of targets. A transport cannot
// prevent it, because the client logs a body before it is sent and after it was read.
//
// It is called once, before anything logs.
func WithholdBodies() { klog.SetLogFilter(bodyFilter{}) }

// bodyFilter replaces what k8s.io/client-go logs of contents: the body, in
// rest/request.go, and of the headers, in transport/round_trippers.go, warnings, in
// which policies of the host quote what is written. All lines with keys and values pass
// through it, those of loggers in contexts too.
type bodyFilter struct{}

var _ klog.LogFilter = bodyFilter{}

const (
	bodyKey    = "body"
	headersKey = "headers"
	withheld   = "(withheld)"
)

// Filter implements klog.LogFilter.
func (bodyFilter) Filter(args []any) []any { return args }

// FilterF implements klog.LogFilter.
func (bodyFilter) FilterF(format string, args []any) (string, []any) { return format, args }

// FilterS implements klog.LogFilter.
func (bodyFilter) FilterS(message string, keysAndValues []any) (string, []any) {
	copied := false
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		shown := keysAndValues[i+1]
		switch keysAndValues[i] {
		case bodyKey:
			shown = withheld
		case headersKey:
			shown = withoutWarnings(shown)
		default:
			continue
		}
		if !copied {
			// The slice may be a logger's own.
			keysAndValues, copied = append([]any(nil), keysAndValues...), true
		}
		keysAndValues[i+1] = shown
	}
	return message, keysAndValues
}

// withoutWarnings returns headers as lines, as they are logged, or nothing of what is
// of a kind that is not known.
func withoutWarnings(value any) string {
	marshaler, ok := value.(logr.Marshaler)
	if !ok {
		return withheld
	}
	headers, ok := marshaler.MarshalLog().(map[string][]string)
	if !ok {
		return withheld
	}
	var lines strings.Builder
	// Writing to a builder does not fail.
	_ = http.Header(headers).WriteSubset(&lines, map[string]bool{"Warning": true})
	return strings.ReplaceAll(lines.String(), "\r\n", "\n")
}
