//go:build integration

package server_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/port"
)

// kept is a server whose store has a small volume or another fault. It must not end, and discovery
// must work.
type kept struct {
	*cluster.Cluster
	t *testing.T
	// whole is the test at whose end the program ends.
	whole *testing.T
	dir   string
	port  int
	// server is the running program.
	server *penstock.Server
}

func (k *kept) in(t *testing.T) *kept {
	of := *k
	of.Cluster, of.t = k.Cluster.In(t), t
	return &of
}

// starts runs the program on a port. It returns when its API is ready.
func (k *kept) starts() {
	k.t.Helper()
	if k.port == 0 {
		free, err := port.Free()
		if err != nil {
			k.t.Fatal(err)
		}
		k.port = free
	}
	k.server = penstock.Build(k.t).Serve(k.whole, k.Cluster.In(k.whole), k.dir, fmt.Sprint("--secure-port=", k.port))
}

// own returns a client configuration for the program's port.
func (k *kept) own() *rest.Config {
	config := k.Config()
	config.Host = fmt.Sprint("https://127.0.0.1:", k.port)
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true, CertData: config.CertData, KeyData: config.KeyData,
		CertFile: config.CertFile, KeyFile: config.KeyFile}
	return config
}

// serves waits until revisions can be read and written.
func (k *kept) serves(names ...string) {
	k.t.Helper()
	eventually(k.t, "the store", func() error {
		for _, name := range names {
			if out := k.Kubectl("get", "cer", name); out.ExitCode != 0 {
				return errors.New(out.String())
			}
		}
		if out := k.Kubectl("annotate", "cer", names[0], "--overwrite", "example.com/at="+time.Now().Format("150405.000000")); out.ExitCode != 0 {
			return errors.New(out.String())
		}
		return nil
	})
	k.lives("")
}

// refuses waits until revisions are refused with a reason. It checks that everything else works.
func (k *kept) refuses(reason string) {
	k.t.Helper()
	eventually(k.t, "the reason", func() error { return k.refusal(reason) })
	k.lives("store-identity&exclude=store-space")
	if body, code := get(k.t, k.own(), "/metrics"); code != http.StatusOK || !strings.Contains(body, "\npenstock_store_degraded 1\n") {
		k.t.Errorf("the metric does not report a degraded store: %d", code)
	}
}

// refusal returns nil if revisions are refused with a reason.
func (k *kept) refusal(reason string) error {
	out := k.Kubectl("get", "cer")
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "ServiceUnavailable") {
		return errors.New(out.String())
	}
	return missing(out.Stderr, []string{reason, "the embedded etcd does not run", "continues by itself"})
}

// lives checks that the process runs and that discovery works, so that a namespace can be deleted.
// The process is ready except for one check.
func (k *kept) lives(but string) {
	k.t.Helper()
	select {
	case <-k.server.Ended():
		k.t.Fatalf("the program has ended:\n%s", k.server.Complaints())
	default:
	}
	eventually(k.t, "discovery", func() error {
		out := k.Kubectl("get", "--raw", "/apis/olm.operatorframework.io/v1alpha1")
		if out.ExitCode != 0 {
			return errors.New(out.String())
		}
		return nil
	})
	for _, path := range []string{"/livez", "/readyz?exclude=" + but} {
		eventually(k.t, path, func() error {
			if body, code := get(k.t, k.own(), path); code != http.StatusOK {
				return errors.New(body)
			}
			return nil
		})
	}
}

// smallVolume mounts a volume with a size in MiB. It skips the test if that is not permitted.
func smallVolume(t *testing.T, mib int) string {
	t.Helper()
	dir := filepath.Dir(dataDir(t))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("a small volume cannot be mounted here, so nothing is seen of one that is full: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

// filler is a file that takes space.
type filler struct {
	t    *testing.T
	path string
}

// leave fills the volume until, of the space that is free now, only a number of bytes is left. It
// does not take space that becomes free meanwhile, such as the ballast.
func (f filler) leave(bytes uint64) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(f.path), &stat); err != nil {
		f.t.Fatal(err)
	}
	free := stat.Bavail * uint64(stat.Bsize)
	chunk := make([]byte, 64<<10)
	for free > bytes {
		written, err := file.Write(chunk[:min(uint64(len(chunk)), free-bytes)])
		free -= uint64(written)
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f filler) remove() {
	f.t.Helper()
	if err := os.Remove(f.path); err != nil {
		f.t.Fatal(err)
	}
}

// TestVolume: the store's volume becomes full.
func TestVolume(t *testing.T) {
	t.Parallel()
	// etcd alone takes 130 MiB: its log begins with two segments of 64 MiB.
	volume := smallVolume(t, 256)
	k := &kept{Cluster: cluster.Start(t, cluster.Workloads()), t: t, whole: t, dir: filepath.Join(volume, "data")}
	k.starts()
	for _, name := range []string{"argocd", "spare", "old", "gone"} {
		k.MustKubectlInput(distinct(name), "create", "-f", "-")
	}
	k.MustKubectl("wait", "cer", "--all", "--for=condition=Succeeded", poll.TimeoutFlag)
	ballast := filepath.Join(k.dir, "ballast")
	eventually(t, "the ballast", func() error { _, err := os.Stat(ballast); return err })

	fill := filler{t, filepath.Join(volume, "somebody-elses")}
	t.Run("Low", func(t *testing.T) { k.in(t).low(fill) })
	t.Run("Exhausted", func(t *testing.T) { k.in(t).exhausted(fill, ballast) })
	t.Run("Stopped", func(t *testing.T) { k.in(t).stopped(fill, ballast) })
}

// noRoom is the error with which etcd ends.
const noRoom = "no space left on device"

// distinct returns a revision whose objects belong to no other extension.
func distinct(extension string) string {
	return strings.NewReplacer("name: first", "name: first-"+extension, "name: second", "name: second-"+extension).Replace(revision(extension, 1))
}

// low: little space is left. A write that needs space is refused in time, a write that frees space
// is not.
func (k *kept) low(fill filler) {
	fill.leave(30 << 20)
	const room = "the volume of the store has too little room"
	tries := func(what, stdin string, args ...string) {
		k.t.Helper()
		out := k.KubectlInput(stdin, args...)
		if err := missing(out.Stderr, []string{"InsufficientStorage", room, "48Mi are needed", k.dir}); out.ExitCode == 0 || err != nil {
			k.t.Errorf("%s was not refused with the reason: %s", what, out)
		}
	}
	tries("a create", distinct("another"), "create", "-f", "-")
	tries("a create by patch", distinct("another"), "apply", "--server-side", "-f", "-")
	tries("an update", "", "annotate", "cer", "argocd-1", "--overwrite", "example.com/note=1")
	tries("a plan", "{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: p}, spec: {profile: LoadAwareRebalancing}}", "create", "-f", "-")
	k.MustKubectlInput(distinct("another"), "create", "-f", "-", "--dry-run=server")
	k.MustKubectl("patch", "cer", "old-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Archived"}}`)
	// An archived revision asks a question before its objects are deleted. The answer can be given.
	var command string
	eventually(k.t, "the question", func() error {
		message := k.MustKubectl("get", "cer", "old-1", "-o", `jsonpath={.status.conditions[?(@.type=="Stalled")].message}`)
		if _, command, _ = strings.Cut(message, ": kubectl "); command == "" {
			return errors.New(message)
		}
		return nil
	})
	k.MustKubectl(strings.Fields(command)...)
	k.MustKubectl("delete", "cer", "spare-1", poll.TimeoutFlag)
	eventually(k.t, "what goes", func() error {
		if out := k.MustKubectl("get", "configmaps", "-o", "name"); strings.Contains(out, "-spare") || strings.Contains(out, "-old") {
			return errors.New(out)
		}
		return nil
	})
	k.lives("store-space")
	if body, code := get(k.t, k.own(), "/readyz?verbose"); code == http.StatusOK || !strings.Contains(body, "[-]store-space failed") {
		k.t.Errorf("readyz: got %d:\n%s", code, body)
	}
	if body, _ := get(k.t, k.own(), "/metrics"); !strings.Contains(body, "\npenstock_store_volume_reserve_bytes 5.0331648e+07\n") || !strings.Contains(body, "\npenstock_store_volume_free_bytes ") {
		k.t.Error("the metrics do not report the free space")
	}
	fill.remove()
	k.serves("argocd-1")
}

// exhausted: another program fills the volume. Deletions still work because the ballast is given
// back. When that space is taken too, etcd ends, and later starts again.
func (k *kept) exhausted(fill filler, ballast string) {
	k.takesBallast(fill, ballast)
	eventually(k.t, "a deletion", func() error {
		if out := k.Kubectl("delete", "cer", "gone-1", "--timeout=30s", "--ignore-not-found"); out.ExitCode != 0 {
			return errors.New(out.String())
		}
		return nil
	})

	k.writesUntilItEnds(fill)
	k.MustKubectl("create", "namespace", "going")
	k.MustKubectl("delete", "namespace", "going", poll.TimeoutFlag)
	k.refusesFull(fill)
	fill.remove()
	k.serves("argocd-1", "old-1")
	eventually(k.t, "the ballast", func() error { _, err := os.Stat(ballast); return err })
}

// refusesFull checks that revisions are refused while the volume is full. If etcd has found space
// after all, it writes until none is left.
func (k *kept) refusesFull(fill filler) {
	k.t.Helper()
	eventually(k.t, "the end of etcd", func() error {
		err := k.refusal(noRoom)
		if err != nil {
			k.writesUntilItEnds(fill)
		}
		return err
	})
	k.refuses(noRoom)
}

// takesBallast fills the volume until the ballast is given back, so that etcd has space again.
func (k *kept) takesBallast(fill filler, ballast string) {
	k.t.Helper()
	fill.leave(0)
	eventually(k.t, "the ballast to be given back", func() error {
		if _, err := os.Lstat(ballast); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the ballast still exists: %v", err)
		}
		return nil
	})
}

// writesUntilItEnds writes to etcd until it has no space. An etcd that ends may free a segment of
// its log that it was making. The next one could run with this space, so the test takes it too.
func (k *kept) writesUntilItEnds(fill filler) {
	k.t.Helper()
	client := etcdAt(k.t, "unix://"+filepath.Join(k.dir, "run", "etcd.sock"))
	value := make([]byte, 1<<20)
	if _, err := rand.Read(value); err != nil {
		k.t.Fatal(err)
	}
	for i := range 200 {
		fill.leave(0)
		// If etcd has ended already, the write waits until the timeout. If etcd is only slow, the
		// loop continues.
		ctx, cancel := context.WithTimeout(k.t.Context(), 10*time.Second)
		_, err := client.Put(ctx, fmt.Sprint(fill.path, i), string(value))
		cancel()
		if err != nil && k.refusal(noRoom) == nil {
			fill.leave(0)
			return
		}
	}
	k.t.Fatal("etcd still writes to a full volume")
}

// stopped: a process ends on request even if etcd does not run. The next process starts on a full
// volume and serves discovery. It serves the rest when there is space.
func (k *kept) stopped(fill filler, ballast string) {
	k.takesBallast(fill, ballast)
	k.writesUntilItEnds(fill)
	k.refusesFull(fill)
	stuck := k.server.Pid()
	watch := time.AfterFunc(30*time.Second, func() { _ = syscall.Kill(stuck, syscall.SIGQUIT) })
	k.server.Stop(k.t)
	watch.Stop()

	k.starts()
	k.lives("store-identity&exclude=store-space")
	fill.remove()
	k.serves("argocd-1", "old-1")
	eventually(k.t, "the ballast", func() error { _, err := os.Stat(ballast); return err })
}
