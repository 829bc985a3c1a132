package catalogpackage

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
)

// Watch sends the changes of packages that result from changes of catalogs. An event shows the
// installed version at that time; a change of the installed version alone sends no event.
func (r *REST) Watch(ctx context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	at, err := r.beginning(options)
	if err != nil {
		return nil, err
	}
	w := &watcher{rest: r, chosen: chosenBy(options), at: at, result: make(chan watch.Event)}
	var initial bool
	if options != nil {
		w.bookmarks = options.AllowWatchBookmarks
		initial = wantsInitial(options)
		w.endOfInitial = w.bookmarks && options.SendInitialEvents != nil && *options.SendInitialEvents
	}
	proxy := watch.NewProxyWatcher(w.result)
	w.stopped = proxy.StopChan()
	go w.run(ctx, initial)
	return proxy, nil
}

// beginning returns the snapshot at which a watch begins.
func (r *REST) beginning(options *metainternalversion.ListOptions) (*inventory.Snapshot, error) {
	current, err := r.known()
	if err != nil || options == nil || options.ResourceVersion == "" || options.ResourceVersion == "0" || wantsInitial(options) {
		return current, err
	}
	wanted, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	// A version newer than this process's snapshot is from another process. It has expired too,
	// because this process may never have the same snapshot.
	found := r.catalogs.At(wanted)
	if found == nil || !found.Complete() {
		return nil, gone(wanted, current)
	}
	return found, nil
}

// wantsInitial reports whether a watch begins with events for all packages.
func wantsInitial(options *metainternalversion.ListOptions) bool {
	if options.SendInitialEvents != nil {
		return *options.SendInitialEvents
	}
	return options.ResourceVersion == "" || options.ResourceVersion == "0"
}

type watcher struct {
	rest   *REST
	chosen *chosen
	// at is the snapshot that the client knows.
	at                      *inventory.Snapshot
	bookmarks, endOfInitial bool
	result                  chan watch.Event
	stopped                 <-chan struct{}
}

func (w *watcher) run(ctx context.Context, initial bool) {
	defer close(w.result)
	if initial && !w.sendInitial(ctx) {
		return
	}
	for {
		select {
		case <-w.at.Outdated():
		case <-w.stopped:
			return
		case <-ctx.Done():
			return
		}
		if !w.catchUp(ctx) {
			return
		}
	}
}

// sendInitial sends all selected packages. It returns false if the watch has ended.
func (w *watcher) sendInitial(ctx context.Context) bool {
	installed := w.rest.installedNow(ctx)
	for _, name := range w.chosen.names(w.at) {
		if found := w.chosen.packageOf(w.at, name, installed); found != nil && !w.send(ctx, watch.Added, found) {
			return false
		}
	}
	return !w.endOfInitial || w.bookmark(ctx, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// catchUp sends the changes since the last snapshot. It returns false if the watch has ended.
func (w *watcher) catchUp(ctx context.Context) bool {
	before := w.at
	w.at = w.rest.catalogs.Snapshot()
	installed := w.rest.installedNow(ctx)
	told := false
	for _, name := range inventory.Changed(before, w.at) {
		old, found := w.chosen.packageOf(before, name, installed), w.chosen.packageOf(w.at, name, installed)
		var kind watch.EventType
		switch {
		case old == nil && found == nil:
			continue
		case old == nil:
			kind = watch.Added
		case found == nil:
			kind, found = watch.Deleted, old
			found.ResourceVersion = w.at.Version().String()
		case same(old, found):
			continue
		default:
			kind = watch.Modified
		}
		if told = true; !w.send(ctx, kind, found) {
			return false
		}
	}
	// The last event has the newest version. Without events, a bookmark sends it.
	return told || !w.bookmarks || w.bookmark(ctx, nil)
}

// same reports whether two packages differ only in resourceVersion.
func same(old, found *v1alpha1.CatalogPackage) bool {
	comparable := *old
	comparable.ResourceVersion = found.ResourceVersion
	return apiequality.Semantic.DeepEqual(&comparable, found)
}

func (w *watcher) bookmark(ctx context.Context, annotations map[string]string) bool {
	return w.send(ctx, watch.Bookmark, &v1alpha1.CatalogPackage{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: w.at.Version().String(), Annotations: annotations},
	})
}

// send sends an event. It returns false if the watch has ended.
func (w *watcher) send(ctx context.Context, kind watch.EventType, object *v1alpha1.CatalogPackage) bool {
	select {
	case w.result <- watch.Event{Type: kind, Object: object}:
		return true
	case <-w.stopped:
		return false
	case <-ctx.Done():
		return false
	}
}
