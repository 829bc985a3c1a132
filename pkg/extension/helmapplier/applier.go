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

// FieldManager is under which name Helm applies.
const FieldManager = "penstock-helm"

// maxHistory is the number of revisions of a release that are kept, as in operator-controller.
const maxHistory = 10

// Applier applies extensions by Helm. It is safe for concurrent use, for one extension at a
// time.
type Applier struct {
	cluster   *cluster
	secrets   corev1client.SecretInterface
	namespace string
	clock     clock.PassiveClock
}

// New returns an applier for the cluster of a config, which keeps releases in a namespace of it.
func New(config *rest.Config, namespace string, clock clock.PassiveClock) (*Applier, error) {
	// Helm takes the name of the program otherwise, which is that of a test in tests. It has no
	// option for it.
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

// Namespace has the Secrets of releases.
func (a *Applier) Namespace() string { return a.namespace }

// Revision is one revision of a release.
type Revision struct {
	Version int
	// Status is Helm's status of the revision.
	Status string
	// Description is Helm's description of it.
	Description string
	// Namespace is that of the release, and Labels are those that Wanted gave it.
	Namespace string
	Labels    map[string]string
	// Manifest is a stream of JSON objects, or of YAML.
	Manifest string
	// Deployed is the time of the deployment.
	Deployed time.Time
	// Owner is the uid of the extension whose release it is, empty for none.
	Owner types.UID
	// TakenOver is true when the engine has its objects.
	TakenOver bool
	// Err is the error of reading the release. With it, only Version and Status may be set.
	Err error
}

// Wanted is the desired state of an extension.
type Wanted struct {
	// Name of the extension, and of its release.
	Name string
	// Namespace of the release, which is in the marks of objects.
	Namespace string
	// Owner is the extension: with it the release goes and, unless Keep, the objects.
	Owner metav1.OwnerReference
	Keep  bool
	// Objects are JSON, without Helm's marks, in the order in which they are written.
	Objects [][]byte
	// Labels of the release. Nothing selects by them.
	Labels map[string]string
	// Take has objects that exist and are not of the release taken over.
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

// Apply makes the next revision of a release, and brings its objects about, in the order of
// Helm's own actions:
//
//  1. A revision that a crash left pending has failed.
//  2. The revision is stored, pending. Before that nothing is written.
//  3. The objects are applied, and those of the revision before that are in it no more are
//     deleted. Failures are written into the revision, and returned.
//  4. The revision before is superseded, and this one deployed.
//  5. Of the older revisions, the newest are kept.
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
		if err := become(ctx, store, one, releasecommon.StatusDeployed, releasecommon.StatusSuperseded, ""); err != nil {
			return err
		}
	}
	next.SetStatus(releasecommon.StatusDeployed, completed(next))
	if err := store.update(ctx, next); err != nil {
		return err
	}
	return prune(ctx, store, found)
}

// Record stores a revision that is deployed, of objects that are in the cluster already. No
// object is touched. Of two that are deployed, after a crash, the newer one counts.
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
		if err := become(ctx, store, one, releasecommon.StatusDeployed, releasecommon.StatusSuperseded, ""); err != nil {
			return 0, err
		}
	}
	return next.Version, prune(ctx, store, found)
}

// Relabel gives a revision other labels.
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

// Supersede labels the Secrets of a release that say what its revisions are: the extension has
// the objects without Helm.
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

// Delete removes all Secrets of a release, and no object.
func (a *Applier) Delete(ctx context.Context, name string) error {
	store := a.store(nil)
	found, err := store.list(ctx, name)
	// The newest one last: until then there is a release.
	for i := len(found) - 1; err == nil && i >= 0; i-- {
		err = store.delete(ctx, found[i].Index.Name)
	}
	return err
}

// settled returns the revisions of a release, newest first, after it has ended what a crash
// left.
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
			// Its last Secret was never written: nothing of it is in the cluster.
			if err := records.delete(ctx, one.Index.Name); err != nil {
				return nil, err
			}
			one.Index = nil
		default:
			if err := become(ctx, records, *one, pending, releasecommon.StatusFailed, "interrupted while "+pending.String()); err != nil {
				return nil, err
			}
			one.Status = releasecommon.StatusFailed.String()
		}
	}
	return slices.DeleteFunc(found, func(one stored) bool { return one.Index == nil }), nil
}

// base is the revision that a new one changes: the deployed one or, when there is none, the
// newest that can be read: its objects are in the cluster, at least some. Nil for none.
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

// next is the revision that follows those that were found, pending.
func (a *Applier) next(wanted Wanted, found []stored) *rspb.Release {
	now := a.clock.Now()
	next := &rspb.Release{
		Name: wanted.Name, Namespace: wanted.Namespace, Version: 1, Chart: chartOf(wanted), Labels: wanted.Labels,
		Manifest: string(bytes.Join(wanted.Objects, []byte("\n"))) + "\n",
		Info:     &rspb.Info{FirstDeployed: now, LastDeployed: now, Status: releasecommon.StatusPendingInstall, Description: "Initial install underway"},
		// Helm merges the objects of a release by itself when this says nothing else.
		ApplyMethod: string(rspb.ApplyMethodServerSideApply),
	}
	if len(found) > 0 {
		next.Version = found[0].Version + 1
		next.SetStatus(releasecommon.StatusPendingUpgrade, "Preparing upgrade")
	}
	return next
}

// completed returns Helm's description of a deployed revision.
func completed(next *rspb.Release) string {
	if next.Version == 1 {
		return "Install complete"
	}
	return "Upgrade complete"
}

// become gives a revision another status, if it has the one before and can be read.
func become(ctx context.Context, records store, one stored, before, after releasecommon.Status, description string) error {
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

// prune removes the oldest revisions; before are the revisions that are older than the
// newest one.
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

// chartOf is a chart that prints the objects, as operator-controller makes it: Helm's own
// actions can go on with the release.
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
