package replicas

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	typed "github.com/penstock-project/penstock/pkg/generated/clientset/versioned/typed/olm/v1alpha1"
)

const (
	// requestTimeout bounds a client's wait for an answer on an otherwise idle machine. Later
	// answers do not count.
	requestTimeout = 8 * time.Second
	// writePause is the default of the longest pause between two writes of a client.
	writePause = 200 * time.Millisecond
	// namespace is the namespace of all extensions' objects.
	namespace = "faults"
)

// client is a client of the API with its HTTP connections.
type client struct {
	typed.ClusterExtensionRevisionInterface
	connections *http.Client
}

// reconnect closes idle connections, so that the next request takes a new connection. The method of
// http.Client does not see through client-go's wrapped transports.
func (c client) reconnect() { utilnet.CloseIdleConnectionsFor(c.connections.Transport) }

// newClient returns a client with a timeout for each request, including watches. 0 means no
// timeout.
func newClient(t testing.TB, config *rest.Config, timeout time.Duration) client {
	t.Helper()
	config.Timeout = timeout
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	api, err := versioned.NewForConfigAndClient(config, connections)
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	return client{ClusterExtensionRevisionInterface: api.OlmV1alpha1().ClusterExtensionRevisions(), connections: connections}
}

// writer changes its own extensions one at a time, and records the changes in the journal. No other
// client changes these extensions.
type writer struct {
	client
	way     way
	journal *journal
	random  *rand.Rand
	// pause is the longest pause between two writes.
	pause  time.Duration
	chains []*writtenChain
	edits  int
}

// way is a client's way to the API.
type way string

const (
	throughHost way = "through the host"
	straightOn  way = "straight to the Service"
)

// writtenChain is an extension with its revisions, oldest first.
type writtenChain struct {
	name string
	last int64
	has  []string
}

// run writes until the context ends.
func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		c := w.chains[w.random.IntN(len(w.chains))]
		switch dice := w.random.IntN(20); {
		case len(c.has) == 0 || dice < 4:
			w.create(ctx, c)
		case dice < 6 && len(c.has) > 1:
			w.rollback(ctx, c)
		case dice < 7 && len(c.has) > 2:
			w.delete(ctx, c)
		default:
			w.edit(ctx, c)
		}
		pause(ctx, time.Duration(w.random.Int64N(int64(w.pause))))
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// unanswered records a failure that leaves the result of the request unknown. The next request
// takes a new connection.
func (w *writer) unanswered(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return // the writer itself ended the request
	}
	w.journal.unanswered(string(w.way)+", "+what, err)
	w.reconnect()
	pause(ctx, 100*time.Millisecond)
}

// kindOf describes a failure in one or two words.
func kindOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "no connection or no answer"
}

// create creates the next revision, and retries until it gets an answer. The client chooses the
// name, so a retry cannot create a second revision.
func (w *writer) create(ctx context.Context, c *writtenChain) {
	c.last++
	name, text := fmt.Sprintf("%s-%d", c.name, c.last), fmt.Sprint("created ", c.last)
	revision := newRevision(c.name, c.last, text)
	w.journal.creating(name, text)
	for attempt := 0; ctx.Err() == nil; attempt++ {
		created, err := w.Create(ctx, revision, metav1.CreateOptions{})
		switch {
		case err == nil:
			w.journal.created(name, created.ResourceVersion, digestOf(created))
		case apierrors.IsAlreadyExists(err) && attempt > 0:
			w.journal.created(name, "", "")
		case apierrors.IsAlreadyExists(err):
			// An unanswered rollback took the number.
			w.journal.count("number taken")
			return
		case apierrors.IsInvalid(err), apierrors.IsConflict(err), apierrors.IsBadRequest(err):
			w.journal.count("create refused")
			return
		default:
			w.unanswered(ctx, "create", err)
			continue
		}
		w.journal.count("created")
		w.journal.answered(w.way)
		c.has = append(c.has, name)
		return
	}
}

// edit changes the annotation of a revision, based on the version that it read.
func (w *writer) edit(ctx context.Context, c *writtenChain) {
	at := len(c.has) - 1 - w.random.IntN(min(2, len(c.has)))
	name := c.has[at]
	found, err := w.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// Retention deleted the revision, or it is lost: the journal will tell.
		c.has = slices.Delete(c.has, at, at+1)
		return
	}
	if err != nil {
		w.unanswered(ctx, "read", err)
		return
	}
	w.edits++
	text := fmt.Sprint("edit ", w.edits)
	metav1.SetMetaDataAnnotation(&found.ObjectMeta, journalAnnotation, text)
	w.journal.editing(name, text)
	switch edited, err := w.Update(ctx, found, metav1.UpdateOptions{}); {
	case err == nil:
		w.journal.edited(name, text, edited.ResourceVersion)
		w.journal.count("edited")
		w.journal.answered(w.way)
	case apierrors.IsConflict(err):
		w.journal.count("edit conflicted")
	case apierrors.IsNotFound(err):
		c.has = slices.Delete(c.has, at, at+1)
	default:
		w.unanswered(ctx, "edit", err)
	}
}

// rollback rolls back to an older revision, and retries until it gets an answer. The request names
// the replaced revision, so it takes effect only once.
func (w *writer) rollback(ctx context.Context, c *writtenChain) {
	newest, target := c.has[len(c.has)-1], c.has[len(c.has)-2]
	w.edits++
	cause := fmt.Sprintf("rollback %d of %s", w.edits, c.name)
	w.journal.rollingBack(cause)
	body := &olmv1alpha1.RevisionRollback{Spec: olmv1alpha1.RevisionRollbackSpec{Cause: cause, From: newest}}
	for ctx.Err() == nil {
		done, err := w.Rollback(ctx, target, body, metav1.CreateOptions{})
		switch {
		case err == nil:
			w.made(c, cause, done.Status.Revision)
		case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsAlreadyExists(err):
			w.lookForRollback(ctx, c, cause)
		default:
			w.unanswered(ctx, "rollback", err)
			continue
		}
		return
	}
}

// lookForRollback finds out whether an unanswered rollback took effect.
func (w *writer) lookForRollback(ctx context.Context, c *writtenChain, cause string) {
	list, err := w.List(ctx, metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + "=" + c.name})
	if err != nil {
		w.unanswered(ctx, "read", err)
		return
	}
	for _, revision := range list.Items {
		if revision.Annotations[olmv1alpha1.ChangeCauseAnnotation] == cause {
			w.made(c, cause, revision.Name)
			return
		}
	}
	w.journal.count("rollback refused")
}

// made records the revision of a rollback.
func (w *writer) made(c *writtenChain, cause, name string) {
	w.journal.rolledBack(cause, name)
	w.journal.count("rolled back")
	w.journal.answered(w.way)
	_, c.last = chainOf(name)
	c.has = append(c.has, name)
}

// delete deletes the oldest known revision, and retries until it gets an answer.
func (w *writer) delete(ctx context.Context, c *writtenChain) {
	name := c.has[0]
	c.has = c.has[1:]
	w.journal.deleting(name)
	for ctx.Err() == nil {
		err := w.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
		switch {
		case err == nil:
			w.journal.deleted(name)
			w.journal.count("deleted")
			w.journal.answered(w.way)
		case apierrors.IsNotFound(err):
			w.journal.count("gone already")
		default:
			w.unanswered(ctx, "delete", err)
			continue
		}
		return
	}
}

// newRevision returns a revision with a ConfigMap in each of two phases.
func newRevision(chain string, number int64, text string) *olmv1alpha1.ClusterExtensionRevision {
	phase := func(name string) olmv1alpha1.RevisionPhase {
		raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":"%s-%s"},"data":{"text":%q}}`, namespace, chain, name, text)
		object := &olmv1alpha1.Manifest{}
		object.Raw = []byte(raw)
		return olmv1alpha1.RevisionPhase{Name: name, Objects: []olmv1alpha1.RevisionObject{{Object: object}}}
	}
	revision := &olmv1alpha1.ClusterExtensionRevision{}
	revision.Name = fmt.Sprintf("%s-%d", chain, number)
	revision.Annotations = map[string]string{journalAnnotation: text}
	revision.Spec.Revision = number
	revision.Spec.Phases = []olmv1alpha1.RevisionPhase{phase("first"), phase("second")}
	return revision
}

// chainOf splits the name of a revision into chain and number.
func chainOf(name string) (string, int64) {
	i := strings.LastIndexByte(name, '-')
	// All names here end in a number.
	n, _ := strconv.ParseInt(name[i+1:], 10, 64)
	return name[:i], n
}
