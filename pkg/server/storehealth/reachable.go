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
	// unreachableAfter is the number of consecutive questions without an answer after which this
	// replica counts as cut off from an external etcd: 1 to 7 s after the loss.
	unreachableAfter = 2
	// reachLook is the interval of checks by requests that wait for etcd.
	reachLook = 200 * time.Millisecond
	// retrySeconds is the value of Retry-After for requests that this replica cannot answer: other
	// replicas may reach etcd.
	retrySeconds = 1
)

// reach knows whether an etcd elsewhere answers this replica. An embedded one always
// does: when it is slow, so is everything here.
type reach struct {
	missed int
	gone   atomic.Bool
}

// answered notes an answer of etcd, or that there was none, and tells whether that
// changed anything.
func (r *reach) answered(err error) (changed bool) {
	if err == nil {
		r.missed = 0
	} else {
		r.missed++
	}
	unreachable := r.missed >= unreachableAfter
	return r.gone.Swap(unreachable) != unreachable
}

// unreachable is true while this replica is cut off.
func (r *reach) unreachable() bool { return r.gone.Load() }

// WithReachable answers requests of the groups with 503 while this replica is cut off from
// etcd, and asks the client to connect anew. Requests would wait for etcd until their
// time is over; and kube-apiserver sends all of its requests over one connection, which
// would keep it from the replicas that are well. Nothing was done for the request, so
// it may be sent again. Watches go on, and so does what is read from the cache.
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
		// Over HTTP/2 this is a GOAWAY: what is under way on the connection is finished.
		w.Header().Set("Connection", "close")
		refusing.ServeHTTP(w, r)
	})
}

// cutOff is the answer while this replica is cut off from etcd.
func cutOff() error {
	err := apierrors.NewServiceUnavailable("etcd does not answer this replica of Penstock; others may be reached by trying again")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retrySeconds}
	return err
}

// WhileReachable runs something as long as etcd answers, again and again until ctx ends:
// a replica that cannot read what there is to do must not lead.
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
