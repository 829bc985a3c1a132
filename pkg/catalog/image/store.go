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

// The folders of a store. The format is in the name of an image's folder: one of another
// format is none, and is collected.
const (
	imagePrefix = "v1-"
	pullPrefix  = "pull-"
	treeDir     = "tree"
	recordFile  = "record.json"
	// readersFile is locked by all who read the image.
	readersFile = "readers"
	// nowhere is a folder that does not exist: what is looked for there is not found.
	nowhere = "none"
)

// Options are the same for all images of a store.
type Options struct {
	Registries Registries
	Limits     Limits
	// Backoff are the pauses after outages; Steps is the number of attempts.
	Backoff wait.Backoff
	Clock   clock.Clock
	// Timeout limits the time of a pull.
	Timeout time.Duration
	// LockWait limits the time for which another process may hold the lock of an image in the shared
	// folder. After it, the fetch fails. 0 means Timeout.
	LockWait time.Duration
	// Pulls is the number of images of one user that are unpacked at a time, which bounds memory and
	// disk. Users share twice as many, and a user without any always gets one (package fairshare).
	Pulls int
}

// DefaultOptions require no signatures and use no mirrors.
func DefaultOptions() Options {
	return Options{
		Limits: DefaultLimits(), Clock: clock.RealClock{}, Timeout: 10 * time.Minute, Pulls: 2,
		Backoff: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 30 * time.Second},
	}
}

// Store is a folder with unpacked images, by digest. Several processes may share it: one of them pulls
// an image, and an image is kept while a process reads it.
type Store struct {
	root    string
	options Options
	places  *fairshare.Pool

	mu sync.Mutex
	// busy has a channel for each digest that somebody looks at, and for each pull, closed when they
	// are done.
	busy map[string]chan struct{}
	// whole are the digests whose folder was compared with its record since the start.
	whole map[string]bool
}

// Request requests one image.
type Request struct {
	// Reference is registry/repository with a tag or a digest.
	Reference string
	// Auth is a file with credentials in the format of docker's config.json, or empty.
	Auth string
	// User is for whom it is: users share the places for pulls, and do not wait for the registries
	// of others.
	User string
	// Catalog is the ClusterCatalog that has or offers the image, or empty.
	Catalog string
}

// Image is an unpacked image. It stays on disk until it is closed.
type Image struct {
	// Reference has the repository that was asked for, and the digest of the manifest or
	// index as the registry served it.
	Reference string
	Digest    string
	Kind      Kind
	// FS is the catalog's folder, or the root of any other image. No link in it leads out.
	FS fs.FS
	// Signed says what the signature policy verified, and is nil without a policy.
	Signed *signer.Record

	close func() error
}

// Close lets the image be collected; FS must not be read afterwards.
func (i *Image) Close() error { return i.close() }

// record has the facts of an unpacked image. A crash may leave files without content behind: their
// number and size tell.
type record struct {
	Digest string `json:"digest"`
	Kind   Kind   `json:"kind"`
	// Root is the folder of the image that is read.
	Root string `json:"root"`
	// Checked are the repositories that had the image, or the references that a policy
	// allowed, each with the digest of that policy.
	Checked []string `json:"checked"`
	// Signed has what a policy verified, by the entry of Checked.
	Signed map[string]*signer.Record `json:"signed,omitempty"`
	Files  int                       `json:"files"`
	Bytes  int64                     `json:"bytes"`
}

// allowed reports whether the image passed this check earlier. Without a policy, check is the name of the
// repository. With a policy, the record must also have what the policy verified.
func (r *record) allowed(check string, named reference.Named) bool {
	return slices.Contains(r.Checked, check) && (check == named.Name() || r.Signed[check] != nil)
}

// check notes that an image was checked, and is false when that is known.
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

// Fetch gives an image. A tag is resolved at its registry each time; a digest that is here
// needs no registry, when the same repository had it before; with a policy, when the same
// policy allowed the same reference before. Errors are
// *Refused when the image, or what is allowed here, has to change.
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
	// Another user's image may be collected between the two: then it is not checked but pulled.
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

// open opens an image that is here and was checked, and returns nil for any other.
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

// ensure opens an image: it pulls one that is not here, and checks one that is, but not from there. It
// returns nil when the image was removed meanwhile.
func (s *Store) ensure(ctx context.Context, o *session, p *pulling, named reference.Named, request Request, check string) (*Image, error) {
	here, err := s.isHere(ctx, o.digest.String())
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

// isHere reports whether an image is here, whole.
func (s *Store) isHere(ctx context.Context, digest string) (bool, error) {
	free, err := s.lock(ctx, digest)
	if err != nil {
		return false, err
	}
	defer free()
	return s.found(digest) != nil, nil
}

// checked notes that an image was checked, and opens it. The caller has the lock of the digest.
func (s *Store) checked(found *record, check string, signed *signer.Record, named reference.Named) (*Image, error) {
	if found.check(check, signed) {
		if err := writeRecord(s.folder(found.Digest), found); err != nil {
			return nil, err
		}
	}
	return s.image(found, check, named)
}

// told adds the image to an error, and keeps its type.
func told(err error, asked string) error {
	var refused *Refused
	if errors.As(err, &refused) {
		return about(err, asked, "")
	}
	return fmt.Errorf("pulling image %s: %w", asked, err)
}

// check names what was asked for under the policies that are in force. Without a policy that is
// the repository. A policy judges tags: a signature for one tag allows no other one. It returns the
// rules for Sigstore bundles, too.
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

// found is the record of an image that is here, whole. The caller has the lock.
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

// measured counts the files of a folder, and their bytes.
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

// keep gives a pulled image its name, and opens it. When somebody else has pulled the same meanwhile,
// it opens theirs.
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
	// An existing entry of this name is incomplete, or it would have been used.
	if err := os.RemoveAll(s.folder(r.Digest)); err != nil {
		return fmt.Errorf("keeping image %s: %w", asked, err)
	}
	return os.Rename(folder, s.folder(r.Digest))
}

// writeRecord replaces a record.
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

// image opens what is here. The caller has the lock of the digest, so that the folder stays
// until its own is taken.
func (s *Store) image(r *record, check string, named reference.Named) (*Image, error) {
	if r == nil {
		return nil, fmt.Errorf("image %s was removed from disk while it was opened", named)
	}
	folder := s.folder(r.Digest)
	reading, err := flocked(filepath.Join(folder, readersFile), os.O_RDWR|os.O_CREATE, syscall.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("opening image %s: %w", named, err)
	}
	// When it was read last decides what CollectUnused removes.
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
