package etcdclient

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// TestLimitLog: the last line of the log is the reason why a process ends. It is not a warning
// about a connection to the etcd that the process has stopped.
func TestLimitLog(t *testing.T) {
	state := klog.CaptureState()
	defer state.Restore()
	var out bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&out)
	LimitLog()
	grpclog.Warning("connection refused")
	grpclog.Error("broken")
	klog.Flush()
	if got := out.String(); strings.Contains(got, "connection refused") || !strings.Contains(got, "broken") {
		t.Errorf("the log has %q", got)
	}
}
