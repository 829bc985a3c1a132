package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	typed "github.com/penstock-project/penstock/pkg/generated/clientset/versioned/typed/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
)

const author = "author"

const writers = 16

// ours is Penstock with a user who creates revisions and waits until they have Succeeded.
type ours struct {
	w         *casePlane
	title     string
	flatten   bool
	server    *penstock.Server
	revisions typed.ClusterExtensionRevisionInterface

	mu sync.Mutex
	// known are the existing revisions; true if they have Succeeded.
	known    map[string]bool
	changed  chan struct{}
	numbers  map[string]int
	contents map[string]string
	// targets are the Secrets of the extensions' target clusters, by extension.
	targets map[string]string
}

// startOurs starts Penstock. With flatten all objects are in one phase.
func startOurs(w *casePlane, program *penstock.Program, title string, flatten bool, flags ...string) *ours {
	w.t.Helper()
	o := newOurs(w, title, flatten)
	o.start(program, penstock.DataDir(w.t), flags...)
	// The API is served before all its parts are registered, and registrations cause extra work.
	// That work is not part of an installation.
	o.server.Await(w.t, "The host cluster serves our API")
	w.quiet(o)
	return o
}

func newOurs(w *casePlane, title string, flatten bool) *ours {
	return &ours{w: w, title: title, flatten: flatten, known: map[string]bool{}, changed: make(chan struct{}), numbers: map[string]int{}, contents: map[string]string{}}
}

func (o *ours) start(program *penstock.Program, dataDir string, flags ...string) {
	o.w.t.Helper()
	o.server = program.Serve(o.w.t, o, dataDir, flags...)
	config := rest.CopyConfig(o.w.config)
	config.UserAgent = author
	client, err := versioned.NewForConfig(config)
	if err != nil {
		o.w.t.Fatal(err)
	}
	o.revisions = client.OlmV1alpha1().ClusterExtensionRevisions()
	o.follow()
}

// Kubeconfig returns the kubeconfig for Penstock.
func (o *ours) Kubeconfig() string { return o.w.kubeconfig }

func (o *ours) follow() {
	o.w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	changes, err := o.revisions.Watch(ctx, metav1.ListOptions{})
	// Requests may fail for a moment after the APIService is Available.
	for deadline := time.Now().Add(patience); apierrors.IsServiceUnavailable(err) && time.Now().Before(deadline); {
		<-time.After(settling)
		changes, err = o.revisions.Watch(ctx, metav1.ListOptions{})
	}
	if err != nil {
		cancel()
		o.w.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		// kube-apiserver ends a watch after half an hour or later.
		for version := ""; ctx.Err() == nil; {
			for change := range changes.ResultChan() {
				if revision, ok := change.Object.(*olmv1alpha1.ClusterExtensionRevision); ok {
					version = revision.ResourceVersion
					o.note(change.Type, revision)
				}
			}
			for changes, err = o.revisions.Watch(ctx, metav1.ListOptions{ResourceVersion: version}); err != nil; {
				select {
				case <-ctx.Done():
					return
				case <-o.server.Ended():
					return
				case <-time.After(settling):
				}
				changes, err = o.revisions.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
			}
		}
	})
	o.w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (o *ours) note(change watch.EventType, revision *olmv1alpha1.ClusterExtensionRevision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if change == watch.Deleted {
		delete(o.known, revision.Name)
	} else {
		o.known[revision.Name] = meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded)
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *ours) until(ctx context.Context, what string, is func(known map[string]bool) bool) error {
	for {
		o.mu.Lock()
		done, changed := is(o.known), o.changed
		o.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-o.server.Ended():
			return errors.New("penstock has ended: " + o.server.Log())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}

func (o *ours) succeeded(ctx context.Context, names []string) error {
	return o.until(ctx, "revisions to succeed", func(known map[string]bool) bool {
		for _, name := range names {
			if !known[name] {
				return false
			}
		}
		return true
	})
}

func (o *ours) name() string { return o.title }

// apply writes a revision for each release; equal content is written to the same revision.
func (o *ours) apply(ctx context.Context, releases []release) (time.Duration, error) {
	names, bodies := make([]string, len(releases)), make([][]byte, len(releases))
	for i, r := range releases {
		names[i], bodies[i] = o.revision(r)
	}
	began := time.Now()
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, name := range names {
		group.Go(func() error {
			_, err := o.revisions.Patch(writing, name, types.ApplyPatchType, bodies[i], metav1.PatchOptions{FieldManager: author, Force: ptr.To(true)})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("writing revisions: %w", err)
	}
	err := o.succeeded(ctx, names)
	return time.Since(began), err
}

func (o *ours) revision(r release) (name string, body []byte) {
	if o.flatten {
		r = r.flat()
	}
	var phases []any
	for _, p := range r.phases {
		var objects []any
		for _, object := range p.objects {
			objects = append(objects, map[string]any{"object": object})
		}
		phases = append(phases, map[string]any{"name": p.name, "objects": objects})
	}
	content := string(encoded(map[string]any{"phases": phases}))
	if o.contents[r.name] != content {
		o.contents[r.name] = content
		o.numbers[r.name]++
	}
	number := o.numbers[r.name]
	name = fmt.Sprintf("%s-%d", r.name, number)
	spec := map[string]any{"revision": number, "phases": phases}
	if target := o.targets[r.name]; target != "" {
		spec["targetRef"] = map[string]any{"name": target}
	}
	return name, encoded(map[string]any{
		"apiVersion": olmv1alpha1.SchemeGroupVersion.String(), "kind": "ClusterExtensionRevision", "metadata": map[string]any{"name": name},
		"spec": spec,
	})
}

// rollback requests the content of the previous revision.
func (o *ours) rollback(ctx context.Context, releases []release) (time.Duration, error) {
	began := time.Now()
	var names []string
	for _, r := range releases {
		back := &olmv1alpha1.RevisionRollback{}
		back.APIVersion, back.Kind = olmv1alpha1.SchemeGroupVersion.String(), "RevisionRollback"
		body, err := json.Marshal(back)
		if err != nil {
			return 0, err
		}
		var done olmv1alpha1.RevisionRollback
		raw, err := o.raw().Post().AbsPath("/apis/"+olmv1alpha1.SchemeGroupVersion.String(), "clusterextensionrevisions",
			fmt.Sprintf("%s-%d", r.name, o.numbers[r.name]-1), "rollback").SetHeader("Content-Type", "application/json").Body(body).DoRaw(ctx)
		if err != nil {
			return 0, fmt.Errorf("rolling back %s: %w: %s", r.name, err, raw)
		}
		if err := json.Unmarshal(raw, &done); err != nil {
			return 0, err
		}
		o.numbers[r.name]++
		delete(o.contents, r.name)
		names = append(names, done.Status.Revision)
	}
	err := o.succeeded(ctx, names)
	return time.Since(began), err
}

func (o *ours) raw() rest.Interface {
	config := rest.CopyConfig(o.w.config)
	config.UserAgent = author
	client, err := versioned.NewForConfig(config)
	if err != nil {
		o.w.t.Fatal(err)
	}
	return client.OlmV1alpha1().RESTClient()
}

// repair only waits, because Penstock repairs without a request.
func (o *ours) repair(ctx context.Context, releases []release) (time.Duration, error) {
	began := time.Now()
	for _, r := range releases {
		if err := o.w.repaired(ctx, r); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// remove deletes all revisions of the releases, and waits until they are deleted, which includes
// their objects.
func (o *ours) remove(ctx context.Context, releases []release) (time.Duration, error) {
	began := time.Now()
	if err := o.deleteOf(ctx, releases); err != nil {
		return 0, err
	}
	gone := map[string]bool{}
	for _, r := range releases {
		gone[r.name] = true
	}
	err := o.until(ctx, "revisions to be gone", func(known map[string]bool) bool {
		for name := range known {
			if gone[name[:strings.LastIndexByte(name, '-')]] {
				return false
			}
		}
		return true
	})
	return time.Since(began), err
}

func (o *ours) deleteOf(ctx context.Context, releases []release) error {
	var chains []string
	for _, r := range releases {
		chains = append(chains, r.name)
	}
	selector := metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + " in (" + strings.Join(chains, ",") + ")"}
	if err := o.revisions.DeleteCollection(ctx, metav1.DeleteOptions{}, selector); err != nil {
		return fmt.Errorf("deleting revisions: %w", err)
	}
	return nil
}

func (o *ours) usage() (usage, error) { return usageOf(o.server.Pid()) }
func (o *ours) rest() error           { return forgetPeak(o.server.Pid()) }

// sends matches Penstock's and the author's requests. The author's count because Helm and kubectl
// send theirs themselves.
func (o *ours) sends(r plane.Request) bool {
	return r.UserAgent == author || strings.HasPrefix(r.UserAgent, "penstock/")
}
