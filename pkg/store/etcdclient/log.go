package etcdclient

import (
	"io"
	"strings"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// grpcWarnings is the verbosity at which warnings of gRPC are logged.
const grpcWarnings = 5

// LimitLog keeps warnings of gRPC out of the log of this process, unless it is verbose. They are
// about connections that gRPC makes anew by itself; the code that waits for an etcd reports an
// outage. The library of the API server logs all of them, more than twenty when an embedded etcd
// ends first. It must be called before gRPC is used.
func LimitLog() {
	if klog.V(grpcWarnings).Enabled() {
		return
	}
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, errorLog{}))
}

// errorLog writes errors of gRPC to our log.
type errorLog struct{}

// Write implements io.Writer.
func (errorLog) Write(line []byte) (int, error) {
	klog.ErrorS(nil, "gRPC reports an error", "message", strings.TrimSpace(string(line)))
	return len(line), nil
}
