package clusterextensionrevision

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	storeerr "k8s.io/apiserver/pkg/storage/errors"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
)

// Past holds the facts about an imported revision that no client can set: its history in the
// original store. It gives no rights: the importer is the requester in this cluster.
type Past struct {
	// CreatedAt is the time at which RequestedBy created the revision in the original cluster.
	CreatedAt   time.Time
	RequestedBy string
	// RollbackOf is the revision whose content this revision restored, or empty.
	RollbackOf string
	// SucceededAt is the time at which the rollout completed. If it is zero, this cluster
	// determines the result itself.
	SucceededAt time.Time
}

type pastKey struct{}

func pastFrom(ctx context.Context) *Past {
	past, _ := ctx.Value(pastKey{}).(*Past)
	return past
}

// restore writes the past into a new revision.
func (p *Past) restore(revision *olm.ClusterExtensionRevision) {
	if !p.CreatedAt.IsZero() && p.CreatedAt.Before(revision.CreationTimestamp.Time) {
		revision.CreationTimestamp = metav1.NewTime(p.CreatedAt)
	}
	setAnnotation(revision, v1alpha1.RequestedByAnnotation, p.RequestedBy)
	setAnnotation(revision, v1alpha1.RollbackOfAnnotation, p.RollbackOf)
	if !p.SucceededAt.IsZero() {
		revision.Status.Conditions = append(revision.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Imported",
			Message: "the rollout was complete once, in the store that the revision was imported from", LastTransitionTime: metav1.NewTime(p.SucceededAt),
		})
	}
}

// Importer writes revisions of another store, in two steps. It first checks all revisions of a
// chain. Only if all are valid, it writes the first.
type Importer struct {
	revisions *REST
	admitter  admitter
}

// NewImporter returns an importer of revisions. admit is the server's admission for creates of
// revisions; nil admits all.
func NewImporter(revisions *REST, scheme *runtime.Scheme, admit admission.Interface) *Importer {
	return &Importer{revisions: revisions, admitter: newAdmitter(admit, scheme)}
}

// Admit does everything that a create by the caller does, except writing the revision and taking
// its number. It returns the revision to write. The given revision has its manifests inline. With
// dryRun the manifests are not stored. Otherwise, a revision that is never written leaves an
// unreferenced pack. beside holds admitted, unwritten revisions of the chain.
func (i *Importer) Admit(ctx context.Context, revision *olm.ClusterExtensionRevision, past *Past, beside []*olm.ClusterExtensionRevision, dryRun bool) (*olm.ClusterExtensionRevision, error) {
	// Each revision has its own staged manifests, so that they are not all in memory together.
	held := newStaged()
	ctx = context.WithValue(context.WithValue(ctx, stagedKey{}, held), pastKey{}, past)
	ctx = admissionrequest.WithBeside(ctx, beside)
	if err := i.mayBring(ctx, revision); err != nil {
		return nil, err
	}
	inliner{digester: i.revisions.contents.digester}.rewriteRevision(revision, held)
	held.seal()
	options := &metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	admitted, err := i.admitter.admit(ctx, revision, options)
	if err != nil {
		return nil, err
	}
	validate := i.revisions.takeContents(admitted, packAnnotation+"-"+revision.Name, dryRun)
	// Write writes the record. Here the store only builds and checks it.
	out, err := i.revisions.Store.Create(ctx, revision, validate, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	return out.(*olm.ClusterExtensionRevision), nil
}

// mayBring checks the caller's rights to those Secrets of a revision that admission does not check
// fully (see compares). An imported revision shows their digests.
func (i *Importer) mayBring(ctx context.Context, revision *olm.ClusterExtensionRevision) error {
	var secrets []manifest.ID
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		if entry.Object == nil {
			return
		}
		if object, err := manifest.Parse(entry.Object.Raw); err == nil && compares("create", nil, object) {
			secrets = append(secrets, object.ID)
		}
	})
	if len(secrets) == 0 || i.revisions.authorizer == nil {
		return nil
	}
	return mayKnow(ctx, access.New(i.revisions.authorizer), revision.Name, secrets)
}

// Write stores an admitted revision under the uid in the chain's head. A revision that is already
// stored under that uid stays unchanged.
func (i *Importer) Write(ctx context.Context, admitted *olm.ClusterExtensionRevision, uid types.UID) error {
	revision := admitted.DeepCopy()
	revision.UID = uid
	key, err := i.revisions.KeyFunc(ctx, revision.Name)
	if err != nil {
		return err
	}
	// The revision was checked together with the other revisions of the import. Other creates in
	// the chain wait until all are written.
	chain, _, _ := olm.ChainOf(revision.Name)
	ctx = chainversion.Counting(ctx, chain)
	chainversion.From(ctx).Refers(rootOf(revision))
	err = i.revisions.Storage.Create(ctx, key, revision, &olm.ClusterExtensionRevision{}, 0, false)
	if err == nil {
		return nil
	}
	if wasCollected(err) {
		return changed(revision.Name, err)
	}
	err = storeerr.InterpretCreateError(err, v1alpha1.Resource(resource), revision.Name)
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing %s: %w", revision.Name, err)
	}
	present, err := i.revisions.Stored(ctx, revision.Name)
	if err != nil {
		return fmt.Errorf("reading %s, which exists: %w", revision.Name, err)
	}
	if present.UID != uid {
		return apierrors.NewAlreadyExists(v1alpha1.Resource(resource), revision.Name)
	}
	return nil
}
