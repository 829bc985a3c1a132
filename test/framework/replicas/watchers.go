package replicas

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// watchSeconds is the requested duration of a watch. watchTimeout ends the watch in the client,
// because nothing else ends the watch of a frozen process.
const (
	watchSeconds = 15
	watchTimeout = (watchSeconds + 5) * time.Second
)

// watcher lists once, and then watches from the last version that it saw, also after a broken
// connection. It lists again only if a replica answers that the version is too old.
type watcher struct {
	client
	journal *journal
	seen
}

func newWatcher(name string, c client, j *journal) *watcher {
	return &watcher{client: c, journal: j, seen: seen{
		name: name, versions: map[ack]bool{}, names: map[string]bool{}, gone: map[string]bool{}, present: map[string]bool{},
	}}
}

// run watches until the context ends.
func (w *watcher) run(ctx context.Context) {
	version := ""
	for ctx.Err() == nil {
		if version == "" {
			version = w.list(ctx)
		}
		if version != "" {
			version = w.follow(ctx, version)
		}
		w.reconnect()
	}
}

// list lists again. It returns the version from which to watch, or "" after an error.
func (w *watcher) list(ctx context.Context) string {
	asking, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := w.List(asking, metav1.ListOptions{})
	if err != nil {
		pause(ctx, writePause)
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.newest > 0 {
		w.relists++
	}
	at := number(list.ResourceVersion)
	w.gaps = append(w.gaps, gap{after: w.newest, to: at})
	w.newest, w.present = at, map[string]bool{}
	for _, revision := range list.Items {
		w.present[revision.Name] = true
	}
	return list.ResourceVersion
}

// follow watches from a version. It returns the version from which to continue, or "" if the
// watcher must list again.
func (w *watcher) follow(ctx context.Context, version string) string {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	events, err := w.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: ptr.To(int64(watchSeconds))})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	if err != nil {
		pause(ctx, writePause)
		return version
	}
	defer events.Stop()
	w.mu.Lock()
	w.resumed++
	w.mu.Unlock()
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Error:
			if err := apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return ""
			}
			return version
		case watch.Bookmark:
			version = event.Object.(*olmv1alpha1.ClusterExtensionRevision).ResourceVersion
		default:
			revision := event.Object.(*olmv1alpha1.ClusterExtensionRevision)
			version = revision.ResourceVersion
			w.event(w.journal, revision, event.Type == watch.Deleted)
		}
	}
	return version
}

// reached returns an error until the watcher has reached a version.
func (w *watcher) reached(version uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.newest < version {
		return fmt.Errorf("%s is at version %d, not at %d", w.name, w.newest, version)
	}
	return nil
}
