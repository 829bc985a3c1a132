package volume

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReserve(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                 string
		size, reserve, ballast uint64
	}{
		"Small":  {"etcd needs as much on a small volume", 180 * mib, 48 * mib, 16 * mib},
		"Middle": {"a part of the volume", 2000 * mib, 100 * mib, 50 * mib},
		"Large":  {"a part of a large one would be a waste", 1 << 40, 256 * mib, 64 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			usage := Usage{Size: tc.size}
			if usage.Reserve() != tc.reserve || usage.ballast() != tc.ballast {
				t.Errorf("%s: reserve %d, ballast %d, want %d and %d", tc.reason, usage.Reserve(), usage.ballast(), tc.reserve, tc.ballast)
			}
		})
	}
}

// TestBalance: the ballast is removed when the volume is nearly full, and created again when there
// is room. It never takes space of the reserve.
func TestBalance(t *testing.T) {
	v := Of(t.TempDir())
	path := filepath.Join(v.Dir(), "ballast")
	usage := Usage{Size: 200 * mib}
	for _, step := range []struct {
		reason string
		free   uint64
		want   Step
		size   int64
	}{
		{"no room for it", 70 * mib, Kept, 0},
		{"enough", 80 * mib, Restored, 16 * mib},
		{"it is there", 80 * mib, Kept, 16 * mib},
		{"writes are refused, and etcd has what it needs", 30 * mib, Kept, 16 * mib},
		{"hardly anything is left", 20 * mib, Released, 0},
		{"it is gone", 1 * mib, Kept, 0},
		{"not enough again: the reserve comes first", 60 * mib, Kept, 0},
		{"enough again", 100 * mib, Restored, 16 * mib},
	} {
		usage.Free = step.free
		got, err := v.Balance(usage)
		if err != nil || got != step.want {
			t.Errorf("%s: %q (%v), want %q", step.reason, got, err, step.want)
		}
		size := int64(0)
		if info, err := os.Stat(path); err == nil {
			size = info.Size()
		}
		if size != step.size {
			t.Errorf("%s: the ballast has %d bytes, want %d", step.reason, size, step.size)
		}
	}
}

// TestBallastIsWhole: a process was killed while it created the ballast. Its leftovers are removed,
// with or without space for a ballast.
func TestBallastIsWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		free uint64
		want Step
	}{
		"Room":   {100 * mib, Restored},
		"NoRoom": {50 * mib, Kept},
	} {
		t.Run(name, func(t *testing.T) {
			v := Of(t.TempDir())
			left := filepath.Join(v.Dir(), "ballast.new")
			if err := os.WriteFile(left, make([]byte, mib), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := v.Balance(Usage{Size: 200 * mib, Free: tc.free}); err != nil || got != tc.want {
				t.Errorf("%q (%v), want %q", got, err, tc.want)
			}
			if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("what was left behind is there: %v", err)
			}
		})
	}
}

// TestFill: if blocks cannot be allocated, bytes are written.
func TestFill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ballast")
	const size = 5*mib + 1
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fill(file, size), file.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || len(content) != size {
		t.Fatalf("%d bytes, %v", len(content), err)
	}
	if bytes.Contains(content, make([]byte, 4096)) {
		t.Error("it has pages of zeros, for which a file system that compresses takes no room")
	}
}

func TestUsage(t *testing.T) {
	usage, err := Of(t.TempDir()).Look()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system does not say")
	}
	if err != nil || usage.Size == 0 || usage.Free > usage.Size {
		t.Errorf("got %+v, %v", usage, err)
	}
	if _, err := Of(filepath.Join(t.TempDir(), "gone")).Look(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a directory that is not there: %v", err)
	}
}
