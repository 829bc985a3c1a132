package etcdclient

import (
	"io"
	"strings"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// grpcWarnings is the verbosity at which warnings of gRPC are logged.
const grpcWarnings = 5

// LimitLog keeps warnings of gRPC out of this process's log, unless the log is verbose. They are
// about connections that gRPC itself restores; the code that waits for an etcd reports an outage.
// The API server library logs all of them: more than twenty lines if an embedded etcd ends first.
// LimitLog must be called before gRPC is used.
func LimitLog() {
	if klog.V(grpcWarnings).Enabled() {
		return
	}
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, errorLog{}))
}

// errorLog writes errors of gRPC to Penstock's log.
type errorLog struct{}

// Write implements io.Writer.
func (errorLog) Write(line []byte) (int, error) {
	klog.ErrorS(nil, "gRPC reports an error", "message", strings.TrimSpace(string(line)))
	return len(line), nil
}
