//go:build integration

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	typed "github.com/penstock-project/penstock/pkg/generated/clientset/versioned/typed/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/rule"
)

// author writes revisions. It does not retry a refused write: the server may be down, or another
// writer may have been faster.
type author struct {
	soakPlane *soakPlane
	revisions typed.ClusterExtensionRevisionInterface
	histories typed.RevisionHistoryInterface

	mu sync.Mutex
	// named are all objects that any revision has named, recorded before the revision is written.
	named map[string]bool
}

// write changes every n-th chain at random until the context ends.
func (w *soakPlane) write(ctx context.Context, random *rand.Rand, first, n int) {
	for ctx.Err() == nil {
		c := w.chains[first+n*random.IntN(len(w.chains)/n)]
		switch dice := random.IntN(10); {
		case dice < 5:
			w.author.upgrade(random, c)
		case dice < 7:
			w.author.set(c, olmv1alpha1.LifecycleStatePaused)
		case dice < 8:
			w.author.set(c, olmv1alpha1.LifecycleStateActive)
		case dice < 9:
			w.author.set(c, olmv1alpha1.LifecycleStateArchived)
		case random.IntN(3) == 0:
			w.author.delete(c)
		}
		pause(ctx, time.Duration(random.IntN(300))*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (a *author) of(c *chain) []olmv1alpha1.ClusterExtensionRevision {
	list, err := a.revisions.List(context.Background(), metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + "=" + c.name})
	if err != nil {
		return nil
	}
	slices.SortFunc(list.Items, func(x, y olmv1alpha1.ClusterExtensionRevision) int { return int(x.Spec.Revision - y.Spec.Revision) })
	return list.Items
}

func (a *author) upgrade(random *rand.Rand, c *chain) {
	phases := c.phases(random)
	a.note(phases)
	number := a.last(c) + 1
	name := fmt.Sprintf("%s-%d", c.name, number)
	revision := map[string]any{"apiVersion": olmv1alpha1.SchemeGroupVersion.String(), "kind": "ClusterExtensionRevision",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"revision": number, "phases": phases}}
	raw, err := json.Marshal(revision)
	if err != nil {
		a.soakPlane.t.Errorf("encoding %s: %v", name, err)
		return
	}
	_, err = a.revisions.Patch(context.Background(), name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "author", Force: ptr.To(true)})
	a.did("upgraded", err)
}

// last returns the highest number that a chain ever had, if it can be read.
func (a *author) last(c *chain) int64 {
	history, err := a.histories.Get(context.Background(), c.name, metav1.GetOptions{})
	if err != nil || len(history.Revisions) == 0 {
		return 0
	}
	return history.Revisions[len(history.Revisions)-1].Revision
}

// set sets the lifecycle state of the newest revision that is not archived.
func (a *author) set(c *chain, state olmv1alpha1.LifecycleState) {
	for _, revision := range slices.Backward(a.of(c)) {
		if revision.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived || revision.DeletionTimestamp != nil {
			continue
		}
		if revision.Spec.LifecycleState == state {
			return
		}
		patch := fmt.Sprintf(`{"spec":{"lifecycleState":%q}}`, state)
		_, err := a.revisions.Patch(context.Background(), revision.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "author"})
		a.did("made "+string(state), err)
		return
	}
}

// answer matches the command in status that acknowledges deletions above the budget.
var answer = regexp.MustCompile(regexp.QuoteMeta(olmv1alpha1.AcknowledgeDeletionAnnotation) + `=(\S+)`)

func (a *author) acknowledge(c *chain) {
	for _, revision := range a.of(c) {
		stalled := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionStalled)
		if stalled == nil || stalled.Status != metav1.ConditionTrue {
			continue
		}
		found := answer.FindStringSubmatch(stalled.Message)
		if found == nil || revision.Annotations[olmv1alpha1.AcknowledgeDeletionAnnotation] == found[1] {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, olmv1alpha1.AcknowledgeDeletionAnnotation, found[1])
		_, err := a.revisions.Patch(context.Background(), revision.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "author"})
		a.did("acknowledged", err)
	}
}

func (a *author) delete(c *chain) {
	err := a.revisions.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + "=" + c.name})
	a.did("deleted", err)
}

// did counts an action, and reports errors that only the server can have caused.
func (a *author) did(what string, err error) {
	if err == nil {
		a.soakPlane.tally.count(what)
		return
	}
	a.soakPlane.tally.count("not " + what)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		a.soakPlane.tally.count(fmt.Sprintf("(refused: %.80s)", err))
	}
}

func (a *author) note(phases []any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range phases {
		for _, e := range p.(map[string]any)["objects"].([]any) {
			o := e.(map[string]any)["object"].(map[string]any)
			metadata := o["metadata"].(map[string]any)
			namespace, _ := metadata["namespace"].(string)
			a.named[rule.Key(resource(fmt.Sprint(o["kind"])).Resource, namespace, fmt.Sprint(metadata["name"]))] = true
		}
	}
}

// meddle changes and deletes objects of extensions until the context ends.
func (w *soakPlane) meddle(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		c := w.chains[random.IntN(len(w.chains))]
		switch dice := random.IntN(20); {
		case dice == 0:
			w.removeDefinition(w.chains[random.IntN(1+(len(w.chains)-1)/definitionShare)*definitionShare])
		case dice < 5:
			w.meddled("deleted an object", w.meddler.Resource(resource("ConfigMap")).Namespace(c.namespace).
				Delete(context.Background(), w.some(random, c), metav1.DeleteOptions{}))
		case dice < 8:
			w.edit(c, "ConfigMap", w.some(random, c), "robbed of its label", `{"metadata":{"labels":{"penstock.dev/chain":null}}}`)
		case dice < 10:
			w.edit(c, "ConfigMap", w.some(random, c), "wiped managedFields", `{"metadata":{"managedFields":[{}]}}`)
		case dice < 12:
			w.edit(c, "Secret", c.name+"-secret", "edited a Secret", `{"stringData":{"password":"other"}}`)
		case dice < 14:
			w.edit(c, "ConfigMap", w.some(random, c), "added a field", `{"metadata":{"annotations":{"example.com/mine":"1"}}}`)
		default:
			w.edit(c, "ConfigMap", w.some(random, c), "edited", `{"data":{"value":"other"}}`)
		}
		pause(ctx, time.Duration(random.IntN(200))*time.Millisecond)
	}
}

// some returns the name of a ConfigMap that the extension may have.
func (w *soakPlane) some(random *rand.Rand, c *chain) string {
	if random.IntN(2) == 0 {
		return c.name + "-always"
	}
	return fmt.Sprint(c.name, "-", random.IntN(4))
}

func (w *soakPlane) edit(c *chain, kind, name, what, patch string) {
	_, err := w.meddler.Resource(resource(kind)).Namespace(c.namespace).
		Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "meddler"})
	w.meddled(what, err)
}

// removeDefinition deletes a definition with all its instances.
func (w *soakPlane) removeDefinition(c *chain) {
	w.meddled("deleted a definition", w.meddler.Resource(resource("CustomResourceDefinition")).
		Delete(context.Background(), "things."+c.group(), metav1.DeleteOptions{}))
}

func (w *soakPlane) meddled(what string, err error) {
	if err == nil {
		w.tally.count(what)
	}
}
