package app

import (
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// WithholdBodies keeps bodies of requests and answers out of the log of this process, at any
// verbosity. From --v=8 on, client-go logs bodies, also of Secrets: the manifests of revisions, the
// key of the certificate authority, kubeconfigs of targets. A transport cannot prevent this,
// because client-go logs a body before it is sent and after it was read.
//
// Call it once, before anything logs.
func WithholdBodies() { klog.SetLogFilter(bodyFilter{}) }

// bodyFilter replaces the confidential values that client-go logs: bodies, in rest/request.go, and
// warnings among the headers, in transport/round_trippers.go. Policies of the host quote written
// objects in warnings. All log lines with keys and values pass through the filter, also lines of
// loggers in contexts.
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
			// The slice may belong to a logger.
			keysAndValues, copied = append([]any(nil), keysAndValues...), true
		}
		keysAndValues[i+1] = shown
	}
	return message, keysAndValues
}

// withoutWarnings returns headers as log lines without warnings. It withholds values of an unknown
// type.
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
