package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Processes that share a folder synchronize with kernel locks (flock). The kernel releases the
// locks of a crashed process.
//
// A process that finds, adds or removes an image holds the lock of its digest exclusively. It never
// waits for a registry meanwhile, because a registry may answer very slowly. There are 256 lock
// files, by the first byte of the digest, so that none has to be removed.
//
// A process that pulls an image holds a lock for the digest, the repository and the user. Other
// pulls of the same wait for it. No process waits for the registry of another user. The lock file
// is removed after the pull.
//
// Each reader of an image holds a shared lock in the image's folder.
const (
	lockPrefix    = "lock-"
	pullingPrefix = "pulling-"
	// poll is the interval of checks whether another process has released the lock.
	poll = 50 * time.Millisecond
)

func (s *Store) lockFile(digest string) string {
	_, hash, _ := strings.Cut(digest, ":")
	return filepath.Join(s.root, lockPrefix+hash[:2])
}

// lock waits for the exclusive use of a digest, in this process and among processes.
func (s *Store) lock(ctx context.Context, digest string) (free func(), err error) {
	freeHere, err := s.lockHere(ctx, digest)
	if err != nil {
		return nil, err
	}
	file, err := s.lockThere(ctx, s.lockFile(digest))
	if err != nil {
		freeHere()
		return nil, err
	}
	return func() {
		_ = file.Close()
		freeHere()
	}, nil
}

// pulling is the lock of a running pull.
type pulling struct {
	// name is the name of the lock, and part of the folder's name.
	name string
	free func()
}

// lockPull waits for the exclusive right to pull a digest from a repository for a user.
func (s *Store) lockPull(ctx context.Context, digest, check, user string) (*pulling, error) {
	sum := sha256.Sum256([]byte(digest + "\n" + check + "\n" + user))
	p := &pulling{name: hex.EncodeToString(sum[:])}
	freeHere, err := s.lockHere(ctx, p.name)
	if err != nil {
		return nil, err
	}
	file, err := s.lockThere(ctx, filepath.Join(s.root, pullingPrefix+p.name))
	if err != nil {
		freeHere()
		return nil, err
	}
	p.free = func() {
		// A process that has already opened the file notices that it was removed (see flocked).
		_ = os.Remove(file.Name())
		_ = file.Close()
		freeHere()
	}
	return p, nil
}

func (s *Store) lockHere(ctx context.Context, digest string) (free func(), err error) {
	for {
		s.mu.Lock()
		other, busy := s.busy[digest]
		if !busy {
			mine := make(chan struct{})
			s.busy[digest] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.busy, digest)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lockThere waits for other processes, at most Options.LockWait, because a stopped process keeps
// its locks.
func (s *Store) lockThere(ctx context.Context, name string) (*os.File, error) {
	if s.options.LockWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.options.LockWait, fmt.Errorf("waited %s", s.options.LockWait))
		defer cancel()
	}
	for {
		file, err := tryLock(name)
		if err == nil {
			_ = file.Truncate(0)
			_, _ = file.WriteAt([]byte(holder()), 0)
			return file, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, fmt.Errorf("locking an image: %w", err)
		}
		timer := time.NewTimer(poll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			by, _ := os.ReadFile(name)
			return nil, fmt.Errorf("%s is at work on an image with the same lock, %s: %w", strings.TrimSpace(string(by)), name, context.Cause(ctx))
		}
	}
}

var errHeld = errors.New("another process holds it")

func tryLock(name string) (*os.File, error) {
	return flocked(name, os.O_RDWR|os.O_CREATE, syscall.LOCK_EX)
}

func flocked(name string, flags, how int) (*os.File, error) {
	file, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil && isAt(file, name) {
		return file, nil
	}
	_ = file.Close()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errHeld
	}
	return nil, err
}

// isAt reports whether an open file still has its name. The previous holder of a lock may have
// removed the file; then the lock protects nothing.
func isAt(file *os.File, name string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(name)
	return err == nil && os.SameFile(opened, now)
}

// holder describes this process, for the error of a process that waits too long for the lock.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}
