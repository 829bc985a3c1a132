package storehealth

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/server/filters"
)

const (
	// unreachableAfter is the number of consecutive failed status requests after which this replica
	// counts as cut off from an external etcd. That is 1 to 7 s after the outage begins.
	unreachableAfter = 2
	// reachLook is the interval of checks while a request waits for etcd.
	reachLook = 200 * time.Millisecond
	// retrySeconds is the value of Retry-After for refused requests: another replica may reach
	// etcd.
	retrySeconds = 1
)

// reach records whether an external etcd answers this replica. An embedded etcd always counts as
// reachable: when it is slow, so is this whole machine.
type reach struct {
	missed int
	gone   atomic.Bool
}

// answered records whether etcd answered, and reports whether that changed anything.
func (r *reach) answered(err error) (changed bool) {
	if err == nil {
		r.missed = 0
	} else {
		r.missed++
	}
	unreachable := r.missed >= unreachableAfter
	return r.gone.Swap(unreachable) != unreachable
}

func (r *reach) unreachable() bool { return r.gone.Load() }

// WithReachable answers requests of the groups with 503 while this replica is cut off from etcd,
// and closes the connection. Otherwise requests would wait for etcd until they time out.
// kube-apiserver sends all requests over one connection, so closing it moves them to a replica that
// works. The requests were not executed, so clients may repeat them. Watches, and reads from the
// cache, continue.
func WithReachable(next http.Handler, unreachable func() bool, groups sets.Set[string], codecs runtime.NegotiatedSerializer) http.Handler {
	refusing := filters.WithRefusal(next, groups, codecs, func(info *request.RequestInfo, r *http.Request) error {
		if info.Verb == "watch" || r.URL.Query().Get("resourceVersion") == "0" {
			return nil
		}
		return cutOff()
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !unreachable() {
			next.ServeHTTP(w, r)
			return
		}
		// Over HTTP/2 this sends a GOAWAY. Pending requests on the connection are finished.
		w.Header().Set("Connection", "close")
		refusing.ServeHTTP(w, r)
	})
}

// cutOff is the answer while this replica is cut off from etcd.
func cutOff() error {
	err := apierrors.NewServiceUnavailable("etcd does not answer this replica of Penstock; another replica may answer the next request")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retrySeconds}
	return err
}

// WhileReachable calls run while etcd answers, repeatedly until ctx ends. A replica that cannot
// read the store must not lead.
func WhileReachable(ctx context.Context, unreachable func() bool, run func(context.Context)) {
	ticker := time.NewTicker(reachLook)
	defer ticker.Stop()
	until := func(ctx context.Context, want bool) {
		for ctx.Err() == nil && unreachable() != want {
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}
	for until(ctx, false); ctx.Err() == nil; until(ctx, false) {
		reaching, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			run(reaching)
		}()
		until(reaching, true)
		stop()
		<-ended
	}
}
