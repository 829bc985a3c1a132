package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/fairshare"
	"github.com/penstock-project/penstock/pkg/signer"
)

// The names in a store. The name of an image's folder contains the format. A folder of another
// format does not count, and is collected.
const (
	imagePrefix = "v1-"
	pullPrefix  = "pull-"
	treeDir     = "tree"
	recordFile  = "record.json"
	readersFile = "readers"
	// nowhere is a folder that does not exist, so that the library finds nothing there.
	nowhere = "none"
)

// Options apply to all images of a store.
type Options struct {
	Registries Registries
	Limits     Limits
	// Backoff sets the pauses after outages; Steps is the number of attempts.
	Backoff wait.Backoff
	Clock   clock.Clock
	// Timeout limits the time of a pull.
	Timeout time.Duration
	// LockWait is the longest wait for the lock of an image in the shared folder, while another
	// process holds it. Then the fetch fails. 0 means Timeout.
	LockWait time.Duration
	// Pulls limits the images of one user that are pulled at the same time, which limits memory and
	// disk. All users together can pull twice as many, and a user without a running pull can always
	// start one (package fairshare).
	Pulls int
}

// DefaultOptions require no signatures and use no mirrors.
func DefaultOptions() Options {
	return Options{
		Limits: DefaultLimits(), Clock: clock.RealClock{}, Timeout: 10 * time.Minute, Pulls: 2,
		Backoff: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 30 * time.Second},
	}
}

// Store is a folder of unpacked images, by digest. Several processes may share it. Only one of them
// pulls an image. An image is kept while a process reads it.
type Store struct {
	root    string
	options Options
	places  *fairshare.Pool

	mu sync.Mutex
	// busy has a channel for each digest or pull that is in use. It is closed when the use ends.
	busy map[string]chan struct{}
	// whole are the digests whose folder was compared with its record since the start.
	whole map[string]bool
}

// Request describes the image to fetch.
type Request struct {
	// Reference is registry/repository with a tag or a digest.
	Reference string
	// Auth is a file with credentials in the format of docker's config.json, or empty.
	Auth string
	// User is the user on whose behalf the image is pulled. Users share the places for pulls, and
	// do not wait for other users' registries.
	User string
	// Catalog is the ClusterCatalog that has or offers the image, or empty.
	Catalog string
}

// Image is an unpacked image. It stays on disk until it is closed.
type Image struct {
	// Reference has the requested repository, and the digest of the manifest or index as the
	// registry served it.
	Reference string
	Digest    string
	Kind      Kind
	// FS is the catalog's folder, or the root of any other image. No link in it leads out of it.
	FS fs.FS
	// Signed has the verified signers; nil without a policy.
	Signed *signer.Record

	close func() error
}

// Close allows the image to be collected. Do not read FS afterwards.
func (i *Image) Close() error { return i.close() }

// record describes an unpacked image. A crash may leave files empty or missing, so it has their
// number and total size.
type record struct {
	Digest string `json:"digest"`
	Kind   Kind   `json:"kind"`
	// Root is the folder of the image that FS exposes.
	Root string `json:"root"`
	// Checked are the repositories that had the image. With a policy, they are the allowed
	// references, each with the digest of that policy.
	Checked []string `json:"checked"`
	// Signed has the verified signers, by the entry of Checked.
	Signed map[string]*signer.Record `json:"signed,omitempty"`
	Files  int                       `json:"files"`
	Bytes  int64                     `json:"bytes"`
}

// allowed reports whether the image passed this check earlier. Without a policy, check is the name
// of the repository. With a policy, the record must also have the verified signers.
func (r *record) allowed(check string, named reference.Named) bool {
	return slices.Contains(r.Checked, check) && (check == named.Name() || r.Signed[check] != nil)
}

// check records a check of the image. It returns false if the check is recorded already.
func (r *record) check(check string, signed *signer.Record) bool {
	known := slices.Contains(r.Checked, check)
	if known && (signed == nil || r.Signed[check] != nil) {
		return false
	}
	if !known {
		r.Checked = append(r.Checked, check)
	}
	if signed != nil {
		if r.Signed == nil {
			r.Signed = map[string]*signer.Record{}
		}
		r.Signed[check] = signed
	}
	return true
}

// Open opens or creates a folder, and removes incomplete images that a crash left.
func Open(root string, options Options) (*Store, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("opening the folder of images: %w", err)
	}
	s := &Store{root: root, options: options, places: fairshare.NewPool(2 * int64(max(1, options.Pulls))), busy: map[string]chan struct{}{}, whole: map[string]bool{}}
	if err := s.collect(func(string, os.FileInfo) bool { return true }); err != nil {
		return nil, fmt.Errorf("removing a half-pulled image: %w", err)
	}
	return s, nil
}

func validDigest(text string) bool { return digest.Digest(text).Validate() == nil }

func (s *Store) folder(digest string) string {
	return filepath.Join(s.root, imagePrefix+strings.ReplaceAll(digest, ":", "-"))
}

// Fetch returns an image. A tag is resolved at its registry each time. A stored digest needs no
// registry if the same repository had it before. With a policy, the same policy must have allowed
// the same reference before. The error is a *Refused if the image or the configuration of
// registries has to change.
func (s *Store) Fetch(ctx context.Context, request Request) (*Image, error) {
	named, pinned, err := parse(request.Reference)
	if err != nil {
		return nil, err
	}
	if s.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.options.Timeout)
		defer cancel()
	}
	check, rules, err := s.check(named, request.Catalog)
	if err != nil {
		return nil, err
	}
	var p *pulling
	if pinned != "" {
		if p, err = s.lockPull(ctx, pinned.String(), check, request.User); err != nil {
			return nil, err
		}
		defer p.free()
		if found, err := s.open(ctx, pinned.String(), check, named); found != nil || err != nil {
			return found, err
		}
	}
	var o *session
	err = s.retried(ctx, func() error {
		o, err = s.connect(ctx, named, request.Auth)
		return err
	})
	if err != nil {
		return nil, told(err, request.Reference)
	}
	defer o.source.Close()
	o.rules = rules
	if pinned == "" {
		if p, err = s.lockPull(ctx, o.digest.String(), check, request.User); err != nil {
			return nil, err
		}
		defer p.free()
	}
	// Between check and open, another user's image may be collected. Then it is pulled in the
	// second iteration.
	for range 2 {
		found, err := s.ensure(ctx, o, p, named, request, check)
		if err != nil {
			return nil, told(err, request.Reference)
		}
		if found != nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("image %s was removed from disk while it was opened", named)
}

// open opens an image that is stored and was checked; otherwise it returns nil.
func (s *Store) open(ctx context.Context, digest, check string, named reference.Named) (*Image, error) {
	free, err := s.lock(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer free()
	if found := s.found(digest); found != nil && found.allowed(check, named) {
		return s.image(found, check, named)
	}
	return nil, nil
}

// ensure opens an image. It pulls an image that is not stored. It checks a stored image that was
// not checked for this request. It returns nil if the image was removed meanwhile.
func (s *Store) ensure(ctx context.Context, o *session, p *pulling, named reference.Named, request Request, check string) (*Image, error) {
	here, err := s.isStored(ctx, o.digest.String())
	if err != nil {
		return nil, err
	}
	if !here {
		return s.pull(ctx, o, p, named, request, check)
	}
	if found, err := s.open(ctx, o.digest.String(), check, named); found != nil || err != nil {
		return found, err
	}
	_, _, signed, err := s.describe(ctx, o)
	if err != nil {
		return nil, about(err, request.Reference, "")
	}
	free, err := s.lock(ctx, o.digest.String())
	if err != nil {
		return nil, err
	}
	defer free()
	found := s.found(o.digest.String())
	if found == nil {
		return nil, nil
	}
	return s.checked(found, check, signed, named)
}

func (s *Store) isStored(ctx context.Context, digest string) (bool, error) {
	free, err := s.lock(ctx, digest)
	if err != nil {
		return false, err
	}
	defer free()
	return s.found(digest) != nil, nil
}

// checked records a check of an image, and opens the image. The caller holds the lock of the
// digest.
func (s *Store) checked(found *record, check string, signed *signer.Record, named reference.Named) (*Image, error) {
	if found.check(check, signed) {
		if err := writeRecord(s.folder(found.Digest), found); err != nil {
			return nil, err
		}
	}
	return s.image(found, check, named)
}

// told adds the image to an error, and keeps the type Refused.
func told(err error, asked string) error {
	var refused *Refused
	if errors.As(err, &refused) {
		return about(err, asked, "")
	}
	return fmt.Errorf("pulling image %s: %w", asked, err)
}

// check returns the key of a check under the current policies, and the rules for Sigstore bundles.
// Without a policy, the key is the repository. With a policy, it contains the tag and the digests
// of the policies: a signature for one tag does not allow another tag.
func (s *Store) check(named reference.Named, catalog string) (string, Rules, error) {
	var policies string
	if file := s.options.Registries.Policy; file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", nil, fmt.Errorf("reading the signature policy: %w", err)
		}
		sum := sha256.Sum256(content)
		policies = " " + hex.EncodeToString(sum[:])
	}
	var rules Rules
	if find := s.options.Registries.Rules; find != nil {
		var err error
		if rules, err = find(named.String(), catalog); err != nil {
			return "", nil, err
		}
	}
	if rules != nil {
		policies += " " + rules.Digest()
	}
	if policies == "" {
		return named.Name(), nil, nil
	}
	return named.String() + policies, rules, nil
}

// found returns the record of a complete stored image, or nil. The caller holds the lock.
func (s *Store) found(digest string) *record {
	folder := s.folder(digest)
	content, err := os.ReadFile(filepath.Join(folder, recordFile))
	if err != nil {
		return nil
	}
	r := &record{}
	if json.Unmarshal(content, r) != nil || r.Digest != digest {
		return nil
	}
	s.mu.Lock()
	known := s.whole[digest]
	s.mu.Unlock()
	if !known {
		if files, bytes, err := measured(filepath.Join(folder, treeDir)); err != nil || files != r.Files || bytes != r.Bytes {
			return nil
		}
		s.mu.Lock()
		s.whole[digest] = true
		s.mu.Unlock()
	}
	return r
}

// measured returns the number and the total size of a folder's files.
func measured(tree string) (files int, bytes int64, err error) {
	err = filepath.WalkDir(tree, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			files++
			bytes += info.Size()
		}
		return err
	})
	return files, bytes, err
}

// keep renames a pulled image to its final name, and opens it. If another process has stored the
// same image meanwhile, keep opens the stored image.
func (s *Store) keep(ctx context.Context, folder string, r record, named reference.Named, asked, check string) (*Image, error) {
	free, err := s.lock(ctx, r.Digest)
	if err != nil {
		return nil, err
	}
	defer free()
	if found := s.found(r.Digest); found != nil {
		return s.checked(found, check, r.Signed[check], named)
	}
	if err := s.name(folder, r, asked); err != nil {
		return nil, err
	}
	return s.image(s.found(r.Digest), check, named)
}

func (s *Store) name(folder string, r record, asked string) error {
	var err error
	if found, statErr := os.Lstat(filepath.Join(folder, treeDir, filepath.FromSlash(r.Root))); statErr != nil || !found.IsDir() {
		return about(refuse(r.Root, "the label %s names it, and the image has no such folder", catalogLabel), asked, "")
	}
	if r.Files, r.Bytes, err = measured(filepath.Join(folder, treeDir)); err != nil {
		return fmt.Errorf("keeping image %s: %w", asked, err)
	}
	if err := writeRecord(folder, &r); err != nil {
		return fmt.Errorf("keeping image %s: %w", asked, err)
	}
	// An existing folder of this name is incomplete, or it would have been used.
	if err := os.RemoveAll(s.folder(r.Digest)); err != nil {
		return fmt.Errorf("keeping image %s: %w", asked, err)
	}
	return os.Rename(folder, s.folder(r.Digest))
}

// writeRecord replaces the record atomically.
func writeRecord(folder string, r *record) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	half := filepath.Join(folder, recordFile+".half")
	if err := os.WriteFile(half, content, 0o600); err != nil {
		return err
	}
	return os.Rename(half, filepath.Join(folder, recordFile))
}

// image opens a stored image. The caller holds the lock of the digest, so that the folder exists
// until its reader lock is taken.
func (s *Store) image(r *record, check string, named reference.Named) (*Image, error) {
	if r == nil {
		return nil, fmt.Errorf("image %s was removed from disk while it was opened", named)
	}
	folder := s.folder(r.Digest)
	reading, err := flocked(filepath.Join(folder, readersFile), os.O_RDWR|os.O_CREATE, syscall.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("opening image %s: %w", named, err)
	}
	// CollectUnused reads the time of the last use from the modification time.
	now := time.Now()
	_ = os.Chtimes(filepath.Join(folder, recordFile), now, now)
	root, err := os.OpenRoot(filepath.Join(folder, treeDir, filepath.FromSlash(r.Root)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening image %s: %w", named, err), reading.Close())
	}
	pinned, err := reference.WithDigest(reference.TrimNamed(named), digest.Digest(r.Digest))
	if err != nil {
		return nil, errors.Join(err, root.Close(), reading.Close())
	}
	closed := sync.OnceValue(func() error { return errors.Join(root.Close(), reading.Close()) })
	return &Image{Reference: pinned.String(), Digest: r.Digest, Kind: r.Kind, FS: root.FS(), Signed: r.Signed[check], close: closed}, nil
}
