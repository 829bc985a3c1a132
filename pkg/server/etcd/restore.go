package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	restore "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
)

// revisionBump is added to the etcd revision of a restored database. It must exceed the writes
// after the snapshot. Otherwise a client that watches from a later revision would wait for that
// revision, or take new events for old events. The number is from etcd's documentation on disaster
// recovery.
const revisionBump = 1_000_000_000

// stagingDir is the directory in which a restore is prepared until it is complete.
const stagingDir = "restoring"

// Restore creates the database of a data directory from a snapshot that Save wrote. The directory
// must not have a database. Restore runs the new etcd and passes its endpoint to prepare before the
// database is final. After an error or a crash, there is no database. A damaged file, or a file
// that is no snapshot, is an error.
//
// The database has a higher revision than the snapshot, and all earlier revisions are marked
// compacted. So clients that know later revisions start over.
func Restore(ctx context.Context, file string, config Config, prepare func(ctx context.Context, endpoint string) error) error {
	dir, err := filepath.Abs(config.DataDir)
	if err != nil {
		return fmt.Errorf("resolving data directory %s: %w", config.DataDir, err)
	}
	if info, err := os.Stat(file); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", file)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	// The kernel releases the lock with the file, so an error changes nothing.
	defer func() { _ = lock.Close() }()
	switch _, err := os.Lstat(dataDir(dir)); {
	case err == nil:
		return fmt.Errorf("data directory %s already has a store (%s): choose another directory, or move the store away", dir, dataDir(dir))
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	staging := filepath.Join(dir, stagingDir)
	// A crashed restore may have left files.
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	defer func() {
		// The next restore removes the rest.
		_ = os.RemoveAll(staging)
	}()
	if err := checkSum(file); err != nil {
		return fmt.Errorf("restoring snapshot %s: %w", file, err)
	}
	if err := restoreFiles(file, staging, config); err != nil {
		return fmt.Errorf("restoring snapshot %s: %w", file, err)
	}
	config.DataDir = staging
	if err := prepared(ctx, config, prepare); err != nil {
		return fmt.Errorf("restoring snapshot %s: %w", file, err)
	}
	if err := os.Rename(dataDir(staging), dataDir(dir)); err != nil {
		return err
	}
	return syncDir(dir)
}

// blockBytes divides the size of any database. A snapshot ends with its checksum, so its size is
// not a multiple.
const blockBytes = 512

// checkSum returns an error for a file that is not a complete snapshot. The library's own message
// names a flag of its tool.
func checkSum(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	database := info.Size() - sha256.Size
	if database <= 0 || database%blockBytes != 0 {
		return fmt.Errorf("it has %d bytes, with no checksum at the end: it is not a snapshot, or not a complete one; take another snapshot, or copy the file again", info.Size())
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, database); err != nil {
		return err
	}
	want, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return errors.New("it is damaged: its content does not match the checksum at its end; take another snapshot, or copy the file again")
	}
	return nil
}

func restoreFiles(file, dir string, config Config) error {
	if err := privateDir(dir); err != nil {
		return err
	}
	defaults := embed.NewConfig()
	return restore.NewV3(newLogCore(logTo(config.Log)).logger()).Restore(restore.RestoreConfig{
		SnapshotPath:        file,
		Name:                memberName,
		OutputDataDir:       dataDir(dir),
		PeerURLs:            []string{defaults.AdvertisePeerUrls[0].String()},
		InitialCluster:      defaults.InitialClusterFromName(memberName),
		InitialClusterToken: defaults.InitialClusterToken,
		RevisionBump:        revisionBump,
		MarkCompacted:       true,
	})
}

// prepared runs the restored database while prepare changes it.
func prepared(ctx context.Context, config Config, prepare func(ctx context.Context, endpoint string) error) error {
	running, err := Start(ctx, config)
	if err != nil {
		return err
	}
	defer running.Close()
	return prepare(ctx, running.Endpoint())
}

// syncDir makes renames in a directory survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
