package helmapplier

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	rspb "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

// FieldManager is Helm's field manager.
const FieldManager = "penstock-helm"

// maxHistory is the number of kept revisions of a release, as in operator-controller.
const maxHistory = 10

// Applier applies extensions with Helm. It is safe for concurrent use, but only one call per
// extension at a time.
type Applier struct {
	cluster   *cluster
	secrets   corev1client.SecretInterface
	namespace string
	clock     clock.PassiveClock
}

// New returns an applier for a cluster. It stores releases in this namespace.
func New(config *rest.Config, namespace string, clock clock.PassiveClock) (*Applier, error) {
	// By default Helm uses the name of the program, which differs in tests. It has no other option
	// for it.
	kube.ManagedFieldsManager = FieldManager
	leads, err := newCluster(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster for releases of Helm: %w", err)
	}
	return &Applier{cluster: leads, secrets: client.CoreV1().Secrets(namespace), namespace: namespace, clock: clock}, nil
}

// Namespace returns the namespace with the Secrets of releases.
func (a *Applier) Namespace() string { return a.namespace }

// Revision is one revision of a release.
type Revision struct {
	Version int
	// Status is Helm's status of the revision.
	Status string
	// Description is Helm's description of the revision.
	Description string
	// Namespace is the namespace of the release. Labels are the labels of Wanted.
	Namespace string
	Labels    map[string]string
	// Manifest is a stream of JSON or YAML objects.
	Manifest string
	// Deployed is the time of the deployment.
	Deployed time.Time
	// Owner is the uid of the extension that owns the release; empty for none.
	Owner types.UID
	// TakenOver is true when the engine has taken over its objects.
	TakenOver bool
	// Err is the error of reading the release. If it is set, only Version and Status may be set.
	Err error
}

// Wanted is the desired state of an extension.
type Wanted struct {
	// Name of the extension and of its release.
	Name string
	// Namespace of the release. Helm's annotations on objects name it.
	Namespace string
	// Owner is the extension. When it is deleted, the release is deleted and, without Keep, its
	// objects.
	Owner metav1.OwnerReference
	Keep  bool
	// Objects are JSON without Helm's marks, in the order of the writes.
	Objects [][]byte
	// Labels of the release. No selector uses them.
	Labels map[string]string
	// Take takes over existing objects that do not belong to the release.
	Take bool
}

// History returns the revisions of a release, newest first, including unreadable ones.
func (a *Applier) History(ctx context.Context, name string) ([]Revision, error) {
	found, err := a.store(nil).list(ctx, name)
	if err != nil {
		return nil, err
	}
	var out []Revision
	for _, one := range found {
		revision := Revision{Version: one.Version, Status: one.Status, TakenOver: takenOver(one.Index), Err: one.err}
		if owner := metav1.GetControllerOf(one.Index); owner != nil {
			revision.Owner = owner.UID
		}
		if decoded := one.release; decoded != nil {
			revision.Description, revision.Namespace, revision.Labels = decoded.Info.Description, decoded.Namespace, decoded.Labels
			revision.Manifest, revision.Deployed = decoded.Manifest, decoded.Info.LastDeployed
		}
		out = append(out, revision)
	}
	return out, nil
}

// Apply makes the next revision of a release and applies its objects, in the order of Helm's own
// actions:
//
//  1. A revision that a crash left pending is marked as failed.
//  2. The new revision is stored as pending, before any object is written.
//  3. The objects are applied. Objects that only the previous revision has are deleted. A failure
//     is recorded in the revision, and returned.
//  4. The previous revision becomes superseded, and the new revision deployed.
//  5. The oldest revisions are deleted.
func (a *Applier) Apply(ctx context.Context, wanted Wanted) error {
	store := a.store(&wanted.Owner)
	found, err := a.settled(ctx, store, wanted.Name)
	if err != nil {
		return err
	}
	next, before := a.next(wanted, found), base(found)
	upgrade, err := a.cluster.prepare(ctx, wanted, before, next)
	if err != nil {
		return fmt.Errorf("applying release %s by Helm: %w", wanted.Name, err)
	}
	if err := store.create(ctx, next); err != nil {
		return err
	}
	if err := upgrade.run(); err != nil {
		err = fmt.Errorf("applying release %s by Helm: %w", wanted.Name, err)
		next.SetStatus(releasecommon.StatusFailed, err.Error())
		return errors.Join(err, store.update(ctx, next))
	}
	for _, one := range found {
		if err := changeStatus(ctx, store, one, releasecommon.StatusDeployed, releasecommon.StatusSuperseded, ""); err != nil {
			return err
		}
	}
	next.SetStatus(releasecommon.StatusDeployed, completed(next))
	if err := store.update(ctx, next); err != nil {
		return err
	}
	return prune(ctx, store, found)
}

// Record stores a deployed revision for objects that are already in the cluster. It changes no
// object. If a crash leaves two deployed revisions, the newer one counts.
func (a *Applier) Record(ctx context.Context, wanted Wanted, description string) (version int, err error) {
	store := a.store(&wanted.Owner)
	found, err := a.settled(ctx, store, wanted.Name)
	if err != nil {
		return 0, err
	}
	next := a.next(wanted, found)
	next.SetStatus(releasecommon.StatusDeployed, description)
	if err := store.create(ctx, next); err != nil {
		return 0, err
	}
	for _, one := range found {
		if err := changeStatus(ctx, store, one, releasecommon.StatusDeployed, releasecommon.StatusSuperseded, ""); err != nil {
			return 0, err
		}
	}
	return next.Version, prune(ctx, store, found)
}

// Relabel replaces the labels of a revision.
func (a *Applier) Relabel(ctx context.Context, name string, version int, labels map[string]string) error {
	store := a.store(nil)
	index, err := a.secrets.Get(ctx, chunked.Key(name, version), metav1.GetOptions{})
	if err != nil {
		return err
	}
	found, err := store.read(ctx, index)
	if err = errors.Join(err, found.err); err != nil {
		return err
	}
	found.release.Labels = labels
	return store.update(ctx, found.release)
}

// Supersede labels the index Secrets of a release: the engine has taken over the objects from Helm.
func (a *Applier) Supersede(ctx context.Context, name string) error {
	list, err := a.secrets.List(ctx, metav1.ListOptions{LabelSelector: chunked.Selector(name)})
	if err != nil {
		return fmt.Errorf("reading Helm release %s: %w", name, err)
	}
	for i := range list.Items {
		one := &list.Items[i]
		if one.Type != chunked.IndexType || one.Labels[olmv1alpha1.SupersededByLabel] == name {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": one.UID, "labels": map[string]string{olmv1alpha1.SupersededByLabel: name}}})
		if err != nil {
			return err
		}
		_, err = a.secrets.Patch(ctx, one.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("labelling Secret %s/%s of a Helm release: %w", a.namespace, one.Name, err)
		}
	}
	return nil
}

// Delete deletes all Secrets of a release. It deletes no object of the release.
func (a *Applier) Delete(ctx context.Context, name string) error {
	store := a.store(nil)
	found, err := store.list(ctx, name)
	// The newest revision is deleted last, so that the release exists until then.
	for i := len(found) - 1; err == nil && i >= 0; i-- {
		err = store.delete(ctx, found[i].Index.Name)
	}
	return err
}

// settled returns the revisions of a release, newest first. It first ends revisions that a crash
// left pending.
func (a *Applier) settled(ctx context.Context, records store, name string) ([]stored, error) {
	found, err := records.list(ctx, name)
	if err != nil {
		return nil, err
	}
	for i := range found {
		one := &found[i]
		pending := releasecommon.Status(one.Status)
		switch {
		case !pending.IsPending():
		case one.err != nil:
			// The last Secret was never written, so the revision applied no object.
			if err := records.delete(ctx, one.Index.Name); err != nil {
				return nil, err
			}
			one.Index = nil
		default:
			if err := changeStatus(ctx, records, *one, pending, releasecommon.StatusFailed, "interrupted while "+pending.String()); err != nil {
				return nil, err
			}
			one.Status = releasecommon.StatusFailed.String()
		}
	}
	return slices.DeleteFunc(found, func(one stored) bool { return one.Index == nil }), nil
}

// base returns the revision that the next revision changes: the deployed revision, or else the
// newest readable one, of which at least some objects may be in the cluster. It returns nil for
// none.
func base(found []stored) *rspb.Release {
	var newest *rspb.Release
	for _, one := range found {
		decoded := one.release
		if decoded == nil {
			continue
		}
		if decoded.Info.Status == releasecommon.StatusDeployed {
			return decoded
		}
		if newest == nil {
			newest = decoded
		}
	}
	return newest
}

func (a *Applier) next(wanted Wanted, found []stored) *rspb.Release {
	now := a.clock.Now()
	next := &rspb.Release{
		Name: wanted.Name, Namespace: wanted.Namespace, Version: 1, Chart: chartOf(wanted), Labels: wanted.Labels,
		Manifest: string(bytes.Join(wanted.Objects, []byte("\n"))) + "\n",
		Info:     &rspb.Info{FirstDeployed: now, LastDeployed: now, Status: releasecommon.StatusPendingInstall, Description: "Initial install underway"},
		// Without this field, Helm merges the objects of a release itself.
		ApplyMethod: string(rspb.ApplyMethodServerSideApply),
	}
	if len(found) > 0 {
		next.Version = found[0].Version + 1
		next.SetStatus(releasecommon.StatusPendingUpgrade, "Preparing upgrade")
	}
	return next
}

func completed(next *rspb.Release) string {
	if next.Version == 1 {
		return "Install complete"
	}
	return "Upgrade complete"
}

// changeStatus changes the status of a revision if it has the status before and can be read.
func changeStatus(ctx context.Context, records store, one stored, before, after releasecommon.Status, description string) error {
	if one.Status != before.String() || one.err != nil {
		return nil
	}
	decoded := one.release
	if description == "" {
		description = decoded.Info.Description
	}
	decoded.SetStatus(after, description)
	return records.update(ctx, decoded)
}

// prune deletes the oldest revisions. Before are the revisions before the newest one.
func prune(ctx context.Context, records store, before []stored) error {
	for _, one := range before[min(len(before), maxHistory-1):] {
		if err := records.delete(ctx, one.Index.Name); err != nil {
			return err
		}
	}
	return nil
}

func (a *Applier) store(owner *metav1.OwnerReference) store {
	return store{secrets: a.secrets, namespace: a.namespace, owner: owner, clock: a.clock}
}

// chartOf returns a chart that prints the objects, like operator-controller's chart. With it,
// Helm's own actions work on the release.
func chartOf(wanted Wanted) *chart.Chart {
	out := &chart.Chart{Metadata: &chart.Metadata{}}
	for _, object := range wanted.Objects {
		sum := sha256.Sum256(object)
		name := fmt.Sprintf("object-%s.json", hex.EncodeToString(sum[:8]))
		out.Files = append(out.Files, &common.File{Name: name, Data: object})
		out.Templates = append(out.Templates, &common.File{Name: name, Data: fmt.Appendf(nil, "{{.Files.Get %q}}", name)})
	}
	return out
}
