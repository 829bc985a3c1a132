package clusterextensionrevision

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
)

const (
	// ShareOfUser and ShareOfChain name the share that a revision exceeds.
	ShareOfUser  = "user"
	ShareOfChain = "chain"

	// recordBytes and entryBytes estimate the stored size of a revision's record, and of each
	// object in it, without annotations.
	recordBytes = 1 << 10
	entryBytes  = 128
)

// Shares prevents one user or one chain from filling the store. After a create, neither may use
// more than remains free for other users, as in package fairshare. The rule cannot be broken until
// half of the quota is used, so nothing is checked before. Shares is safe for concurrent use.
type Shares struct {
	// Room returns the free bytes below the quota. scarce is false without a quota, and while at
	// least half of the quota is free.
	Room func() (free int64, scarce bool)
	// Size returns the stored bytes of the pack with a root.
	Size func(ctx context.Context, root string) (int64, error)

	mu sync.Mutex
	// known holds the sizes of revisions. Their manifests never change.
	known    map[types.UID]stored
	refusals map[string]int
}

type stored struct {
	root         string
	pack, record int64
}

// Refusals returns the number of refused creates, by the exceeded share.
func (s *Shares) Refusals() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{ShareOfUser: 0, ShareOfChain: 0}
	maps.Copy(out, s.refusals)
	return out
}

// add adds a revision to the space of a holder. A pack that several revisions list counts once.
func (s *Shares) add(ctx context.Context, revision *olm.ClusterExtensionRevision, packs map[string]int64, records *int64) error {
	known, found := s.known[revision.UID]
	if !found {
		revision.Unpack()
		known = stored{root: rootOf(revision), record: recordOf(revision)}
		var err error
		if known.pack, err = s.Size(ctx, known.root); err != nil {
			return err
		}
		if s.known == nil {
			s.known = map[types.UID]stored{}
		}
		s.known[revision.UID] = known
	}
	packs[known.root] = known.pack
	*records += known.record
	return nil
}

// recordOf returns the approximate stored size of a revision's record.
func recordOf(revision *olm.ClusterExtensionRevision) int64 {
	total := int64(recordBytes)
	eachObject(revision, func(_, _ int, entry *olm.RevisionObject) {
		total += entryBytes + int64(len(entry.Name)+len(entry.Namespace))
	})
	for key, value := range revision.Annotations {
		total += int64(len(key) + len(value))
	}
	return total
}

// used returns the stored bytes of all revisions of a user and of a chain.
func (s *Shares) used(ctx context.Context, chains map[string][]olm.ClusterExtensionRevision, user, chain string) (byUser, byChain int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var recordsOfUser, recordsOfChain int64
	ofUser, ofChain, there := map[string]int64{}, map[string]int64{}, map[types.UID]stored{}
	for name, revisions := range chains {
		for i := range revisions {
			one := &revisions[i]
			if by := one.Status.RequestedBy; by != nil && by.Username == user {
				if err := s.add(ctx, one, ofUser, &recordsOfUser); err != nil {
					return 0, 0, err
				}
			}
			if name == chain {
				if err := s.add(ctx, one, ofChain, &recordsOfChain); err != nil {
					return 0, 0, err
				}
			}
			if known, found := s.known[one.UID]; found {
				there[one.UID] = known
			}
		}
	}
	s.known = there // without deleted revisions
	return total(ofUser) + recordsOfUser, total(ofChain) + recordsOfChain, nil
}

func total(packs map[string]int64) int64 {
	sum := int64(0)
	for _, bytes := range packs {
		sum += bytes
	}
	return sum
}

// exceeds returns the holder whose share a create would exceed, or "", and the space that it uses.
// A holder without revisions always gets its first bytes while any are free.
func exceeds(free, adds, byUser, byChain int64) (whose string, used int64) {
	switch {
	case byUser > 0 && byUser+adds > free-adds:
		return ShareOfUser, byUser
	case byChain > 0 && byChain+adds > free-adds:
		return ShareOfChain, byChain
	}
	return "", 0
}

// withinShare refuses a create that exceeds the share of its user or chain, as ResourceQuota does.
// It never refuses Penstock itself, or rollbacks, which store no manifests. It never refuses users
// who may bypass the privilege check for all extensions, such as administrators.
func (r *REST) withinShare(ctx context.Context, revision *olm.ClusterExtensionRevision, objects []manifest.Object) error {
	free, scarce := r.shares.Room()
	who, known := request.UserFrom(ctx)
	if !scarce || !known || admissionrequest.IsInternal(ctx, who) || revision.Annotations[v1alpha1.RollbackOfAnnotation] != "" {
		return nil
	}
	chain, _, _ := olm.ChainOf(revision.Name)
	chains, err := r.All(ctx)
	if err != nil {
		return err
	}
	byUser, byChain, err := r.shares.used(ctx, chains, who.GetName(), chain)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("finding out what user %s and extension %s have in the store: %w", who.GetName(), chain, err))
	}
	adds := recordOf(revision)
	for _, object := range objects {
		adds += int64(len(object.JSON))
	}
	whose, used := exceeds(free, adds, byUser, byChain)
	if whose == "" {
		return nil
	}
	if r.authorizer != nil {
		exempt, err := access.New(r.authorizer).MayHaveAnything(ctx, "", "")
		if err != nil || exempt {
			return err
		}
	}
	r.shares.mu.Lock()
	if r.shares.refusals == nil {
		r.shares.refusals = map[string]int{}
	}
	r.shares.refusals[whose]++
	r.shares.mu.Unlock()
	return exceeded(revision.Name, whose, map[string]string{ShareOfUser: who.GetName(), ShareOfChain: chain}[whose], used, free)
}

// exceeded returns the error for a create that exceeds a share. It omits the size of the create,
// which could reveal the size of a borrowed Secret.
func exceeded(name, whose, holder string, used, free int64) error {
	size := func(bytes int64) string {
		return quantity.NewQuantity(max(0, bytes)>>20<<20, quantity.BinarySI).String()
	}
	kind := map[string]string{ShareOfUser: "user", ShareOfChain: "extension"}[whose]
	return apierrors.NewForbidden(v1alpha1.Resource(resource), name, fmt.Errorf(
		"exceeded quota: share of the store, used by %s %s: %s, limited to the remaining free space: %s. Delete revisions that nobody needs, which frees their room within two minutes; "+
			"an administrator can give the store a larger quota (--data-quota)", kind, holder, size(used), size(free)))
}
