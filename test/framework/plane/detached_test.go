//go:build integration

package plane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// up calls Up and fails the test on an error.
func up(t *testing.T, dir string) *Plane {
	t.Helper()
	p, err := Up(t.Context(), Options{Dir: dir, Tools: tools(t), Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatalf("Up: %v", err)
	}
	return p
}

// downAtEnd stops a plane when the test ends.
func downAtEnd(t *testing.T, dir string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := Down(ctx, dir); err != nil {
			t.Errorf("Down: %v", err)
		}
		if got := running(t, dir); len(got) != 0 {
			t.Errorf("after Down: %v still run", got)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after Down the folder is still there (%v)", err)
		}
	})
}

func TestUpIsIdempotent(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	downAtEnd(t, dir)

	first := up(t, dir)
	before := running(t, dir)
	if len(before) != len(programs(false)) {
		t.Errorf("after Up: got %v, want %v", before, programs(false))
	}
	second := up(t, dir)
	if diff := cmp.Diff(before, running(t, dir)); diff != "" {
		t.Errorf("a second Up changed the processes (-first +second):\n%s", diff)
	}
	if first.Kubeconfig() != second.Kubeconfig() || first.url() != second.url() {
		t.Errorf("a second Up returned %s %s, the first Up %s %s", second.Kubeconfig(), second.url(), first.Kubeconfig(), first.url())
	}

	// One program is killed: Up starts a new plane and removes the old processes.
	if err := syscall.Kill(before["kube-scheduler"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the scheduler to end", func() bool { return len(running(t, dir)) == len(programs(false))-1 })
	up(t, dir)
	after := running(t, dir)
	if len(after) != len(programs(false)) {
		t.Errorf("after Up on a broken plane: got %v, want %v", after, programs(false))
	}
	for program, pid := range after {
		if before[program] == pid {
			t.Errorf("%s of the broken plane (%d) still runs", program, pid)
		}
	}
}

func TestUpSurvivesStaleState(t *testing.T) {
	t.Parallel()
	// Each case is the folder after some kind of crash.
	for name, content := range map[string]map[string]string{
		"Rebooted":       {stateFile: `{"port":1,"tools":"/gone"}`, "kubeconfig": "", "etcd/member/wal/0.wal": "x"},
		"CorruptedState": {stateFile: `{"port":`, "pki/ca.crt": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			downAtEnd(t, dir)
			for file, text := range content {
				write(t, filepath.Join(dir, file), text)
			}
			up(t, dir)
			if got := running(t, dir); len(got) != len(programs(false)) {
				t.Errorf("after Up: got %v, want %v", got, programs(false))
			}
		})
	}
}

func TestDown(t *testing.T) {
	t.Parallel()
	t.Run("NothingThere", func(t *testing.T) {
		if err := Down(t.Context(), folder(t)); err != nil {
			t.Errorf("Down in an empty folder: %v", err)
		}
	})
	t.Run("ForeignFolder", func(t *testing.T) {
		dir := folder(t)
		file := filepath.Join(dir, "thesis.txt")
		write(t, file, "mine")
		var foreign *foreignError
		if err := Down(t.Context(), dir); !errors.As(err, &foreign) {
			t.Errorf("Down on a folder of another program: got %v, want a refusal", err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("Down on a folder of another program changed it: %v", err)
		}
	})
}

func TestBelongs(t *testing.T) {
	t.Parallel()
	const dir = "/home/me/penstock/.local/cluster"
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Etcd":         {reason: "the data folder is below", args: []string{"/cache/etcd", "--data-dir=" + dir + "/etcd"}, want: "etcd"},
		"LaterArg":     {reason: "any argument may name it", args: []string{"kwok", "--v=1", "--kubeconfig", dir + "/kwok.kubeconfig"}, want: "kwok"},
		"OtherPlane":   {reason: "a folder whose name begins alike is another one", args: []string{"/cache/etcd", "--data-dir=" + dir + "2/etcd"}},
		"Tail":         {reason: "somebody reads a log", args: []string{"tail", "-f", dir + "/etcd.log"}},
		"Kubectl":      {reason: "a client is not part of it", args: []string{"kubectl", "--kubeconfig=" + dir + "/kubeconfig", "get", "pods", "-w"}},
		"ProgramAlone": {reason: "another etcd of this machine", args: []string{"/usr/bin/etcd", "--data-dir=/var/lib/etcd"}},
		"NoArgs":       {reason: "nothing names the folder", args: []string{"etcd"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := belongs(tc.args, dir); got != tc.want {
				t.Errorf("%s: belongs(%q): got %q, want %q", tc.reason, tc.args, got, tc.want)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
