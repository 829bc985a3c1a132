package revisionimport

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/archive"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// maxRecordBytes bounds the records of all revisions of a chain. They stay in memory until the end
// of the archive.
const maxRecordBytes = 64 << 20

// incoming is one chain that is being imported.
type incoming struct {
	*REST
	mode
	name string
	// present is the head that an import wrote, finished or not; nil for none.
	present *chain.Head
	// digest identifies the archive.
	digest string
	chain  archive.Chain
	// admitted are the revisions that are not stored yet, newest first.
	admitted []*olm.ClusterExtensionRevision
	// bytes is the size of the records.
	bytes int
	// owned is true if the chain has an owner that exists in this cluster.
	owned  bool
	owners owners
}

// findPresent reads the head of the chain. It returns an error if the store has the chain, except
// from an import.
func (in *incoming) findPresent(ctx context.Context) error {
	head, found, err := in.deps.Heads.Get(ctx, in.name)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if found && (head.Importing != "" || head.ImportedFrom != "") {
		// The head may be from this archive. The digest, known at the end of the archive, decides.
		in.present = &head
		return nil
	}
	if !found {
		revisions, err := in.deps.Revisions.Chain(ctx, in.name)
		if err != nil {
			return err
		}
		found = len(revisions) > 0
	}
	if found {
		return had(in.name)
	}
	return nil
}

// read reads the archive to its end and admits each revision.
func (in *incoming) read(ctx context.Context, body io.Reader) error {
	reader, err := archive.NewReader(body, limits())
	if err != nil {
		return badArchive(err)
	}
	defer reader.Close()
	for {
		item, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return badArchive(err)
		}
		if item.Chain != nil {
			in.chain = *item.Chain
			if in.chain.Name != in.name {
				return apierrors.NewBadRequest(fmt.Sprintf("the archive has extension %s, and %s was to be imported", in.chain.Name, in.name))
			}
			if err := in.mayBegin(ctx); err != nil {
				return err
			}
			continue
		}
		if err := in.admit(ctx, item); err != nil {
			return err
		}
	}
	in.digest = reader.Digest()
	if in.chain.Name == "" {
		return apierrors.NewBadRequest("the archive has no extension")
	}
	if in.present != nil && !in.finished() && in.present.Importing != in.importing(in.mode) {
		return in.unfinished(*in.present)
	}
	return nil
}

// admit admits a revision that is not stored yet.
func (in *incoming) admit(ctx context.Context, item archive.Item) error {
	if in.bytes += len(item.Revision.Spec); in.bytes > maxRecordBytes {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the revisions of %s take more than %d bytes without their manifests", in.name, maxRecordBytes))
	}
	if in.present != nil && in.present.Importing == "" {
		return nil
	}
	revision, past, err := in.revision(ctx, item)
	if err != nil {
		return err
	}
	if in.present != nil {
		switch _, err := in.deps.Revisions.Stored(ctx, revision.Name); {
		case err == nil:
			return nil // whether it is from this archive is checked when the digest is known
		case !apierrors.IsNotFound(err):
			return err
		}
	}
	admitted, err := in.deps.Importer.Admit(ctx, revision, past, in.admitted, in.check)
	if err != nil {
		return err
	}
	in.admitted = append(in.admitted, admitted)
	return nil
}

// write writes the head of the chain and its revisions.
func (in *incoming) write(ctx context.Context) error {
	head, err := in.deps.Heads.Import(ctx, in.head())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if head.Importing != in.importing(in.mode) {
		// Another import was faster, or has finished this import.
		return in.unfinished(head)
	}
	gone := map[int64]bool{}
	for _, row := range head.Rows {
		gone[row.Revision] = !row.DeletedAt.IsZero()
	}
	for _, revision := range in.admitted {
		if gone[revision.Spec.Revision] {
			continue // deleted in this cluster since an interruption
		}
		in.relate(revision)
		if err := in.deps.Importer.Write(ctx, revision, in.uid(revision.Spec.Revision)); err != nil {
			return err
		}
	}
	if err := in.deps.Heads.Imported(ctx, in.name, in.importing(in.mode), in.digest); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

// relate sets the uids of a revision's predecessors that are in the archive.
func (in *incoming) relate(revision *olm.ClusterExtensionRevision) {
	here := map[string]types.UID{}
	for _, number := range in.chain.Revisions {
		here[olm.RevisionName(in.name, number)] = in.uid(number)
	}
	for i := range revision.Spec.Previous {
		previous := &revision.Spec.Previous[i]
		previous.UID = here[previous.Name]
	}
}

// uid returns the uid of a revision of this archive. It is the same in every store, so a repeated
// import need not remember it.
func (in *incoming) uid(number int64) types.UID {
	sum := sha256.Sum256(fmt.Appendf(nil, "penstock import\n%s\n%s", in.digest, olm.RevisionName(in.name, number)))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80 // RFC 9562: version 8, a custom UUID,
	id[8] = id[8]&0x3f | 0x80 // and its variant
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
}

func had(name string) error {
	return conflict(name, "the store has this extension, or had it; only extensions that it never had can be imported")
}

func conflict(name, detail string) error {
	return apierrors.NewConflict(v1alpha1.Resource("revisionhistories"), name, errors.New(detail))
}

func badArchive(err error) error {
	if slow := (*apierrors.StatusError)(nil); errors.As(err, &slow) {
		return slow // the archive is not at fault
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return apierrors.NewTimeoutError("the import ended before all of its archive was read", 0)
	}
	return apierrors.NewBadRequest(err.Error())
}
