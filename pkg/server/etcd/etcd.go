// Package etcd runs an etcd for a single replica, in a child process (Process) or inside this
// process (Server). Only the user of this process can reach it: clients use a unix socket in a
// private directory, and there is no peer listener.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// maxSocketPath is the length of sun_path of a unix socket address on Linux, in bytes, without
	// its final NUL.
	maxSocketPath = 107

	// snapshotCount and catchUpEntries bound the raft log. etcd keeps in memory the entries since
	// the last snapshot, and entries for slow followers. With its defaults that is tens of MB, for
	// followers that a single member does not have.
	snapshotCount  = 1000
	catchUpEntries = 200

	// progressNotify must be short: consistent reads from the watch cache and
	// WatchList wait for the next progress notification.
	progressNotify = 5 * time.Second

	// keptFiles is the number of obsolete write-ahead log files that etcd keeps, and of its raft
	// snapshots. The log files are the largest files on a small volume.
	keptFiles = 2

	readyTimeout = time.Minute

	// filesPatience is the time that a start waits for an orphaned etcd process to end, and
	// filesLook the interval of checks. Such a process usually ends within milliseconds.
	filesPatience = 5 * time.Second
	filesLook     = 20 * time.Millisecond

	// memberName is stored in the data: a member finds itself by its name.
	memberName = "penstock"
)

// Config configures an embedded etcd.
type Config struct {
	// DataDir is the directory of the data, created when absent. One process
	// at a time may use it.
	DataDir string
	// QuotaBytes is the size of the database at which etcd stops accepting
	// writes.
	QuotaBytes int64
	// Log receives etcd's warnings and errors.
	Log logr.Logger
	// Fleeting is for data that need not outlive this process, as in tests. Nothing is synced to
	// the disk. The member elects itself in 100 ms instead of a second, but wakes up more often.
	Fleeting bool
	// write receives etcd's entries instead of Log. locked is true if the caller has locked the
	// data directory. Both are for a child process.
	write  func(entry)
	locked bool
}

// Server is a running etcd.
type Server struct {
	endpoint string
	lock     *fileutil.LockedFile
	etcd     *embed.Etcd
	core     *logCore
	close    sync.Once
	// files is the lock on etcd's open files (see lockFiles).
	files *fileutil.LockedFile
}

// Start runs an etcd on a data directory and returns when it answers. If another process uses the
// directory, it returns an error at once.
func Start(ctx context.Context, config Config) (*Server, error) {
	dir, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("resolving data directory %s: %w", config.DataDir, err)
	}
	socket, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{endpoint: "unix://" + socket}
	if !config.locked {
		if s.lock, err = lockDir(dir); err != nil {
			return nil, err
		}
	}
	if config.write == nil {
		config.write = logTo(config.Log)
	}
	s.core = newLogCore(config.write)
	if err := s.start(ctx, dir, socket, config); err != nil {
		s.Close()
		return nil, fmt.Errorf("starting the embedded etcd in %s: %w", dir, err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, dir, socket string, config Config) error {
	if err := privateDir(filepath.Dir(socket)); err != nil {
		return err
	}
	var err error
	if s.files, err = lockFiles(ctx, filepath.Dir(socket)); err != nil {
		return err
	}
	if s.etcd, err = embed.StartEtcd(s.embedConfig(dir, config)); err != nil {
		return err
	}
	timeout := time.NewTimer(readyTimeout)
	defer timeout.Stop()
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err := <-s.etcd.Err():
		return err
	case <-timeout.C:
		return fmt.Errorf("it was not ready within %s", readyTimeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Server) embedConfig(dir string, config Config) *embed.Config {
	c := embed.NewConfig()
	c.Name = memberName
	c.Dir = dataDir(dir)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.core.logger())

	socket, _ := url.Parse(s.endpoint)
	c.ListenClientUrls = []url.URL{*socket}
	c.AdvertiseClientUrls = c.ListenClientUrls
	// A single member has no peers to listen for. A unix:// peer URL would not help: embed uses
	// only the host part of the URL. That part is empty, so embed would listen on an abstract
	// socket, which has no file permissions. The advertised peer URL only names the member.
	c.ListenPeerUrls = nil
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false

	if config.Fleeting {
		c.TickMs, c.ElectionMs, c.UnsafeNoFsync = 10, 100, true
	}
	c.QuotaBackendBytes = config.QuotaBytes
	c.SnapshotCount = snapshotCount
	c.SnapshotCatchUpEntries = catchUpEntries
	c.MaxWalFiles, c.MaxSnapFiles = keptFiles, keptFiles
	c.WatchProgressNotifyInterval = progressNotify
	return c
}

func dataDir(dir string) string { return filepath.Join(dir, "etcd") }

// Endpoint returns the address for clients.
func (s *Server) Endpoint() string {
	return s.endpoint
}

// Failed yields an error when etcd stops by itself. It is closed by Close.
func (s *Server) Failed() <-chan error {
	return s.etcd.Err()
}

// Close stops etcd and releases the data directory. Close clients first. It may be called more than
// once.
func (s *Server) Close() {
	s.close.Do(func() {
		s.core.closing.Store(true)
		if s.etcd != nil {
			s.etcd.Close()
		}
		for _, lock := range []*fileutil.LockedFile{s.files, s.lock} {
			if lock != nil {
				// The kernel releases the lock with the file, so an error changes nothing.
				_ = lock.Close()
			}
		}
	})
}

// socketPath returns the path of the client socket of a data directory.
func socketPath(dir string) (string, error) {
	socket := filepath.Join(dir, "run", "etcd.sock")
	if n := len(socket) - maxSocketPath; n > 0 {
		return "", fmt.Errorf("the path of data directory %s is %d bytes too long: Penstock creates a unix socket below it, and the path %s may have at most %d bytes",
			dir, n, socket, maxSocketPath)
	}
	return socket, nil
}

// privateDir creates a directory that only this user can enter. It also sets the mode of an
// existing directory, because volumes have their own modes.
func privateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("creating directory %s: %w", path, err)
	}
	if info, err := os.Lstat(path); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s must be a directory, and is %s", path, info.Mode())
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("making %s private: %w", path, err)
	}
	return nil
}

// lockDir locks the data directory against other processes. etcd itself would wait for the lock
// silently.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating data directory %s: %w", dir, err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, &inUseError{dir}
	}
	if err != nil {
		return nil, fmt.Errorf("locking data directory %s: %w", dir, err)
	}
	return lock, nil
}

// lockFiles checks that no other etcd has the files open. When a process is killed, its lock on the
// data directory ends before its etcd ends. A new etcd would take over the socket, and wait for the
// files silently.
func lockFiles(ctx context.Context, dir string) (*fileutil.LockedFile, error) {
	for deadline := time.Now().Add(filesPatience); ; {
		lock, err := lockDir(dir)
		var used *inUseError
		if !errors.As(err, &used) {
			return lock, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("an etcd whose parent process was killed still has the files open: wait until it ends, or end the process that has %s/lock open", dir)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(filesLook):
		}
	}
}

// InUse reports whether an error means that another process uses a data directory.
func InUse(err error) bool {
	var used *inUseError
	return errors.As(err, &used)
}

// EndpointOf returns the address of the etcd that another process runs on a data directory. Only
// the user of that process can connect.
func EndpointOf(dataDir string) (string, error) {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("resolving data directory %s: %w", dataDir, err)
	}
	socket, err := socketPath(dir)
	if err != nil {
		return "", err
	}
	return "unix://" + socket, nil
}

type inUseError struct{ dir string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("data directory %s is in use by another process (%s/lock is locked): stop it, or choose another directory", e.dir, e.dir)
}
