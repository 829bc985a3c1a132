package etcd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2/ktesting"
)

// saved starts an etcd, writes to it, and returns a snapshot and the revision of the snapshot.
func saved(t *testing.T) (file string, revision int64) {
	t.Helper()
	log, ctx := ktesting.NewTestContext(t)
	s, err := Start(ctx, Config{DataDir: t.TempDir(), QuotaBytes: 64 << 20, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := newClient(t, s)
	for _, value := range []string{"1", "2", "3"} {
		put, err := client.Put(ctx, "a", value)
		if err != nil {
			t.Fatal(err)
		}
		revision = put.Header.Revision
	}
	file = filepath.Join(t.TempDir(), "snapshot.db")
	if err := s.Save(ctx, file); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(ctx, "a", "later"); err != nil {
		t.Fatal(err)
	}
	return file, revision
}

// TestRestore: a restore has the saved content and no later content. Clients that know later
// revisions must start over.
func TestRestore(t *testing.T) {
	log, ctx := ktesting.NewTestContext(t)
	file, before := saved(t)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the snapshot has the mode %v, error %v: it holds Secrets", info.Mode(), err)
	}
	if left, err := filepath.Glob(file + "*"); err != nil || len(left) != 1 {
		t.Errorf("beside the snapshot there is %v, error %v", left, err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	config := Config{DataDir: dir, QuotaBytes: 64 << 20, Log: log}
	// A failed restore leaves no database that could be started.
	broken := errors.New("broken")
	if err := Restore(ctx, file, config, func(context.Context, string) error { return broken }); !errors.Is(err, broken) {
		t.Fatalf("error %v, want %v", err, broken)
	}
	if _, err := os.Stat(dataDir(dir)); !os.IsNotExist(err) {
		t.Fatalf("a restore that failed left a database (error %v)", err)
	}
	// A crash leaves more files behind.
	if err := os.MkdirAll(filepath.Join(dir, stagingDir, "etcd", "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := Restore(ctx, file, config, func(ctx context.Context, endpoint string) error {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: readyTimeout})
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.Put(ctx, "prepared", "yes")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, stagingDir)); !os.IsNotExist(err) {
		t.Errorf("%s is left (error %v)", stagingDir, err)
	}
	// The data directory works like any other, also at a second start.
	for range 2 {
		s, err := Start(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		client := newClient(t, s)
		if got, err := client.Get(ctx, "prepared"); err != nil || len(got.Kvs) != 1 {
			t.Errorf("what was prepared is %v, error %v", got, err)
		}
		got, err := client.Get(ctx, "a")
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "3" {
			t.Errorf("restored: %v, error %v", got, err)
		}
		if now := got.Header.Revision; now < before+revisionBump {
			t.Errorf("the restored database is at revision %d, the snapshot was at %d", now, before)
		}
		watching, cancel := context.WithCancel(ctx)
		answer := <-client.Watch(watching, "a", clientv3.WithRev(before+1))
		cancel()
		if !errors.Is(answer.Err(), rpctypes.ErrCompacted) {
			t.Errorf("a watch from a revision after the snapshot: %v, want %v", answer.Err(), rpctypes.ErrCompacted)
		}
		_ = client.Close()
		s.Close()
	}
}

func TestRestoreRefuses(t *testing.T) {
	file, _ := saved(t)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		file   func(path string) error
		dir    func(path string) error
		want   string
	}{
		"Missing": {
			reason: "no such file",
			file:   func(string) error { return nil },
			want:   "no such file",
		},
		"Folder": {
			reason: "not a file",
			file:   func(path string) error { return os.Mkdir(path, 0o700) },
			want:   "is not a file",
		},
		"Empty": {
			reason: "nothing in it",
			file:   func(path string) error { return os.WriteFile(path, nil, 0o600) },
			want:   "it is not a snapshot",
		},
		"Cut": {
			reason: "a copy that ran out of space",
			file:   func(path string) error { return os.WriteFile(path, content[:len(content)/2], 0o600) },
			want:   "it is not a snapshot, or not a complete one",
		},
		"Damaged": {
			reason: "one bit is another",
			file: func(path string) error {
				damaged := append([]byte(nil), content...)
				damaged[len(damaged)/2] ^= 1
				return os.WriteFile(path, damaged, 0o600)
			},
			want: "it is damaged",
		},
		"InUse": {
			reason: "there is a store already",
			file:   func(path string) error { return os.WriteFile(path, content, 0o600) },
			dir:    func(path string) error { return os.MkdirAll(filepath.Join(path, "etcd"), 0o700) },
			want:   "has a store",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, ctx := ktesting.NewTestContext(t)
			path, dir := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "data")
			if err := tc.file(path); err != nil {
				t.Fatal(err)
			}
			if tc.dir != nil {
				if err := tc.dir(dir); err != nil {
					t.Fatal(err)
				}
			}
			err := Restore(ctx, path, Config{DataDir: dir, QuotaBytes: 64 << 20, Log: log}, func(context.Context, string) error { return nil })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			if _, err := os.Stat(dataDir(dir)); tc.dir == nil && !os.IsNotExist(err) {
				t.Errorf("%s: a database is left (error %v)", tc.reason, err)
			}
		})
	}
}
