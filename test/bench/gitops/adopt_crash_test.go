package gitops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/adopt"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// fuse lets some writes of a program pass and then fails all requests, as if the program was killed
// right before or right after a write.
type fuse struct {
	mu sync.Mutex
	// left is the number of writes until then; a negative number means no limit. Lands is true if
	// the last write still reaches the server.
	left  int
	lands bool
	dead  bool
}

var errKilled = errors.New("killed")

func (f *fuse) burn(request *http.Request) (sent, heard bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reads := request.Method == http.MethodGet || strings.Contains(request.URL.RawQuery, "dryRun=")
	switch {
	case f.dead:
		return false, false
	case reads || f.left < 0:
		return true, true
	}
	if f.left--; f.left > 0 {
		return true, true
	}
	f.dead = true
	return f.lands, false
}

func (f *fuse) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		sent, heard := f.burn(request)
		if !sent {
			return nil, errKilled
		}
		response, err := next.RoundTrip(request)
		if err == nil && !heard {
			_ = response.Body.Close()
			return nil, errKilled
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (s *site) adopter(f *fuse) *adopt.Adopter {
	s.t.Helper()
	config := rest.CopyConfig(s.Config())
	config.QPS = -1
	config.Wrap(f.wrap)
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	adopter, err := adopt.New(config, clients)
	if err != nil {
		s.t.Fatal(err)
	}
	return adopter
}

func (s *site) request() adopt.Request {
	return adopt.Request{Namespace: s.namespace, Release: s.release, Extension: s.release}
}

func (s *site) take(ctx context.Context, f *fuse) error {
	adopter := s.adopter(f)
	plan, err := adopter.Plan(ctx, s.request())
	if err != nil {
		return err
	}
	if obstacles := plan.Obstacles(); len(obstacles) > 0 {
		return errors.New(strings.Join(obstacles, "; "))
	}
	outcome, err := adopter.Adopt(ctx, plan)
	if err != nil {
		return err
	}
	return adopter.Await(ctx, outcome.Revision)
}

func (s *site) giveBack(ctx context.Context, f *fuse) error {
	adopter := s.adopter(f)
	back, err := adopter.PlanUndo(ctx, s.request(), "helm")
	if err != nil {
		return err
	}
	_, err = adopter.Undo(ctx, back)
	return err
}

// crashes: after the command is killed at any write, the same command finishes the work. FULL=1
// kills it right before and right after each write.
func crashes(s *site) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*patience)
	defer cancel()
	if err := s.helm(1, s.version(1)[:2]...); err != nil {
		s.t.Fatal(err)
	}
	before, notes := s.objects(), s.secrets()
	pods := s.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods")
	died := true
	for k := 1; died; k++ {
		died = false
		ways := []bool{k%2 == 0}
		if os.Getenv("FULL") == "1" {
			ways = []bool{false, true}
		}
		for _, lands := range ways {
			for _, step := range []struct {
				name string
				do   func(context.Context, *fuse) error
			}{{"adopt", s.take}, {"undo", s.giveBack}} {
				f := &fuse{left: k, lands: lands}
				err := step.do(ctx, f)
				died = died || f.dead
				if f.dead != (err != nil) {
					s.t.Fatalf("%s, killed at write %d: %t, error %v", step.name, k, f.dead, err)
				}
				if err != nil {
					err = step.do(ctx, &fuse{left: -1})
				}
				if err != nil && step.name == "undo" && strings.Contains(err.Error(), "was not adopted") {
					err = nil // everything was done, only the answer was lost
				}
				if err != nil {
					s.t.Fatalf("%s, again after it was killed at write %d (which landed: %t): %v", step.name, k, lands, err)
				}
			}
			if s.t.Failed() {
				return
			}
			s.returned(s.Audit().Mark(), before, pods, notes)
		}
	}
}

// killed: Penstock is killed while it adopts the objects.
func killed(s *site) {
	s.helms(1, 2)
	before := s.objects()
	done := make(chan string)
	go func() {
		out := s.adopt()
		done <- out.String()
	}()
	s.MustKubectl("wait", "-n", s.namespace, poll.TimeoutFlag, "--for=jsonpath={.metadata.labels.penstock\\.dev/chain}="+s.release, "configmap/settings")
	s.server.Kill(s.t)
	s.server = s.program.Serve(s.t, s.Cluster, s.dataDir)
	s.t.Log(<-done)
	s.mustAdopt()
	after := s.objects()
	for name, was := range before {
		if now := after[name]; now.UID != was.UID || now.Content != was.Content || now.Generation > was.Generation+1 {
			s.t.Errorf("%s was %+v, and is %+v", name, was, now)
		}
	}
}

// meanwhile: another client writes to the objects all the time.
func meanwhile(s *site) {
	s.helms(1, 2)
	s.whileOthersWrite(func() { s.says(s.mustAdopt(), s.namespace+"-2 has succeeded") })
}

// whileOthersWrite annotates and scales objects during their adoption, and checks that these
// changes stay.
func (s *site) whileOthersWrite(adopt func()) {
	s.t.Helper()
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				stopped <- n
				return
			default:
			}
			s.Kubectl("annotate", "--overwrite", "-n", s.namespace, "deployment/web", "configmap/settings", fmt.Sprintf("note=%d", n))
			s.Kubectl("scale", "-n", s.namespace, "deployment/web", fmt.Sprintf("--replicas=%d", 3+n%3))
		}
	}()
	uid, template := s.read(".metadata.uid", "deployment/web"), s.read(".spec.template", "deployment/web")
	var n int
	func() {
		// Deferred, so that no client writes after the test, even if the adoption fails.
		defer func() {
			close(stop)
			n = <-stopped - 1
		}()
		adopt()
	}()
	if s.read(".metadata.uid", "deployment/web") != uid || s.read(".spec.template", "deployment/web") != template {
		s.t.Error("the Deployment is another one")
	}
	if note := s.read(".metadata.annotations.note", "configmap/settings"); note != fmt.Sprint(n) {
		s.t.Errorf("the note is %q, want %d", note, n)
	}
	if replicas := s.read(".spec.replicas", "deployment/web"); replicas != fmt.Sprint(3+n%3) {
		s.t.Errorf("it has %s replicas, want %d", replicas, 3+n%3)
	}
}

// many adopts many releases at the same time; 200 with FULL=1.
func many(s *site) {
	count := 12
	if os.Getenv("FULL") == "1" {
		count = 200
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	sites := make([]*site, count)
	var group errgroup.Group
	group.SetLimit(8)
	for i := range sites {
		one := *s
		one.release = fmt.Sprintf("%s-r%d", s.namespace, i)
		sites[i] = &one
		group.Go(func() error {
			return one.helm(1, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n", one.release))
		})
	}
	if err := group.Wait(); err != nil {
		s.t.Fatal(err)
	}
	began := time.Now()
	var all errgroup.Group
	for _, one := range sites {
		all.Go(func() error { return one.take(ctx, &fuse{left: -1}) })
	}
	if err := all.Wait(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%d releases are adopted in %s", count, time.Since(began).Round(time.Millisecond))
	if got := strings.Count(s.MustKubectl("get", "configmaps", "-n", s.namespace, "-l", "penstock.dev/chain", "-o", "name"), "\n"); got != count {
		s.t.Errorf("%d objects are adopted, want %d", got, count)
	}
}
