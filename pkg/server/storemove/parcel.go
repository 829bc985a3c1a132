// Package storemove moves the store of a process outside of the cluster into an installation in the
// cluster. Move puts a snapshot into Secrets, removes the registration, and makes the witness of
// the store expect the copy. Arrive restores the copy when the installation starts with an empty
// store. From then on the witness refuses the old store.
package storemove

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/penstock-project/penstock/pkg/server/managedobject"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

const (
	// secretPrefix begins the names of the Secrets. The number of the part follows, from 0.
	secretPrefix = "penstock-moved-store-"
	partKey      = "part"
	// partBytes is the size of a part: a Secret holds 1 MiB.
	partBytes = 1 << 20
	// maxParts bounds the data that one move puts into the cluster's own store.
	maxParts = 64

	storeAnnotation  = "penstock.dev/moved-store"
	epochAnnotation  = "penstock.dev/moved-epoch"
	partsAnnotation  = "penstock.dev/moved-parts"
	digestAnnotation = "penstock.dev/moved-digest"
)

// parcel is a compressed snapshot in Secrets. Each Secret has all fields of the parcel as
// annotations.
type parcel struct {
	// StoreID identifies the store. Epoch is the epoch that begins with the restore of the
	// snapshot.
	StoreID string
	Epoch   int
	Parts   int
	// Digest is the digest of the compressed snapshot.
	Digest string
}

type secrets struct {
	api       typedcorev1.SecretInterface
	partBytes int
}

func (p parcel) annotations() map[string]string {
	return map[string]string{
		storeAnnotation: p.StoreID, epochAnnotation: strconv.Itoa(p.Epoch), partsAnnotation: strconv.Itoa(p.Parts), digestAnnotation: p.Digest,
	}
}

func parcelOf(secret *corev1.Secret) (parcel, error) {
	annotations := secret.Annotations
	epoch, wrong := strconv.Atoi(annotations[epochAnnotation])
	parts, alsoWrong := strconv.Atoi(annotations[partsAnnotation])
	if err := errors.Join(wrong, alsoWrong); err != nil || parts < 1 || parts > maxParts {
		return parcel{}, fmt.Errorf("secret %s: the annotations %s and %s are %q and %q, want an epoch and 1 to %d parts",
			secret.Name, epochAnnotation, partsAnnotation, annotations[epochAnnotation], annotations[partsAnnotation], maxParts)
	}
	return parcel{StoreID: annotations[storeAnnotation], Epoch: epoch, Parts: parts, Digest: annotations[digestAnnotation]}, nil
}

// isExpected reports whether the witness expects this parcel. The witness vouches for the content:
// any user who may write Secrets could have written the parcel.
func (p parcel) isExpected(mark *identity.Mark) bool {
	return mark.Moved != "" && p.StoreID == mark.StoreID && p.Epoch == mark.Epoch && p.Digest == mark.Moved
}

func secretName(part int) string { return secretPrefix + strconv.Itoa(part) }

// put compresses a file into Secrets, and replaces the Secrets of an earlier move. It writes the
// first part last.
func (s secrets) put(ctx context.Context, path, storeID string, epoch int) (parcel, error) {
	packed := path + ".zst"
	// A crash leaves this file. The next run overwrites it.
	defer func() { _ = os.Remove(packed) }()
	size, digest, err := compress(path, packed)
	if err != nil {
		return parcel{}, err
	}
	made := parcel{StoreID: storeID, Epoch: epoch, Parts: int((size + int64(s.partBytes) - 1) / int64(s.partBytes)), Digest: digest}
	if made.Parts > maxParts {
		return parcel{}, fmt.Errorf("the store has %d bytes when it is compressed, and at most %d can be moved: delete archived revisions, or use penstock export and penstock import",
			size, int64(maxParts)*int64(s.partBytes))
	}
	if err := s.remove(ctx); err != nil {
		return parcel{}, err
	}
	file, err := os.Open(packed)
	if err != nil {
		return parcel{}, err
	}
	defer file.Close()
	for part := made.Parts - 1; part >= 0; part-- {
		offset := int64(part) * int64(s.partBytes)
		content := make([]byte, min(int64(s.partBytes), size-offset))
		if _, err := file.ReadAt(content, offset); err != nil {
			return parcel{}, err
		}
		_, err := s.api.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: secretName(part), Annotations: made.annotations()},
			Data:       map[string][]byte{partKey: content},
		}, metav1.CreateOptions{FieldManager: managedobject.FieldManager})
		if err != nil {
			return parcel{}, fmt.Errorf("creating secret %s: %w", secretName(part), err)
		}
	}
	return made, nil
}

// compress compresses a file, and returns the size and the digest of the result.
func compress(from, to string) (int64, string, error) {
	source, err := os.Open(from)
	if err != nil {
		return 0, "", err
	}
	defer source.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	sum := sha256.New()
	compressor, err := zstd.NewWriter(io.MultiWriter(file, sum), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 0, "", err
	}
	_, err = io.Copy(compressor, source)
	if err := errors.Join(err, compressor.Close()); err != nil {
		return 0, "", fmt.Errorf("compressing %s: %w", from, err)
	}
	info, err := file.Stat()
	if err != nil {
		return 0, "", err
	}
	return info.Size(), hex.EncodeToString(sum.Sum(nil)), file.Close()
}

// find returns the parcel in the Secrets, or false without a parcel.
func (s secrets) find(ctx context.Context) (parcel, bool, error) {
	first, err := s.api.Get(ctx, secretName(0), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return parcel{}, false, nil
	}
	if err != nil {
		return parcel{}, false, fmt.Errorf("reading secret %s: %w", secretName(0), err)
	}
	found, err := parcelOf(first)
	return found, err == nil, err
}

func (s secrets) take(ctx context.Context, p parcel, path string) error {
	packed := path + ".zst"
	// A crash leaves this file. The next run overwrites it.
	defer func() { _ = os.Remove(packed) }()
	if err := s.join(ctx, p, packed); err != nil {
		return err
	}
	source, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer source.Close()
	decompressor, err := zstd.NewReader(source, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer decompressor.Close()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(file, decompressor); err != nil {
		return fmt.Errorf("decompressing %s: %w", packed, err)
	}
	return file.Close()
}

func (s secrets) join(ctx context.Context, p parcel, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	for part := range p.Parts {
		found, err := s.api.Get(ctx, secretName(part), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading secret %s: %w", secretName(part), err)
		}
		switch of, err := parcelOf(found); {
		case err != nil:
			return err
		case of != p:
			return fmt.Errorf("secret %s belongs to another move: run penstock move again", found.Name)
		}
		if _, err := io.MultiWriter(file, sum).Write(found.Data[partKey]); err != nil {
			return err
		}
	}
	if digest := hex.EncodeToString(sum.Sum(nil)); digest != p.Digest {
		return fmt.Errorf("the parts in the Secrets %s0 to %d have the digest %s together, want %s", secretPrefix, p.Parts-1, digest, p.Digest)
	}
	return file.Close()
}

// remove deletes the Secrets of all moves. It deletes the first part last, so that an interrupted
// removal can be found and repeated.
func (s secrets) remove(ctx context.Context) error {
	for part := maxParts - 1; part >= 0; part-- {
		err := s.api.Delete(ctx, secretName(part), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting secret %s: %w", secretName(part), err)
		}
	}
	return nil
}
