package memory

import (
	"errors"
	"math"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestAvailable(t *testing.T) {
	const mebi = 1 << 20
	broken := errors.New("broken")
	fails := func(err error) memlimit.Provider { return func() (uint64, error) { return 0, err } }
	for name, tc := range map[string]struct {
		reason      string
		environment string
		set         int64
		container   memlimit.Provider
		want        int64
		err         error
	}{
		"Container":   {"a part is the kernel's", "", math.MaxInt64, memlimit.Limit(100 * mebi), 85 * mebi, nil},
		"Environment": {"who sets it means it", "64MiB", 64 * mebi, memlimit.Limit(100 * mebi), 64 * mebi, nil},
		"Off":         {"the way out", "off", math.MaxInt64, memlimit.Limit(100 * mebi), math.MaxInt64, nil},
		"NoLimit":     {"the group has none", "", math.MaxInt64, fails(memlimit.ErrNoLimit), math.MaxInt64, nil},
		"NoGroup":     {"a machine without", "", math.MaxInt64, fails(memlimit.ErrNoCgroup), math.MaxInt64, nil},
		"OtherSystem": {"not Linux", "", math.MaxInt64, fails(memlimit.ErrCgroupsNotSupported), math.MaxInt64, nil},
		"Version1":    {"its number for no limit", "", math.MaxInt64, memlimit.Limit(9223372036854771712), math.MaxInt64, nil},
		"Broken":      {"it is told", "", math.MaxInt64, fails(broken), 0, broken},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := available(tc.environment, tc.set, tc.container)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s: %d bytes, %v; want %d, %v", tc.reason, got, err, tc.want, tc.err)
			}
		})
	}
}

// TestRoles: the limits of both processes together never exceed the memory.
func TestRoles(t *testing.T) {
	for _, total := range []int64{1, 99, 64 << 20, 96 << 20, 1 << 40} {
		if server, store := BesideStore.of(total), Store.of(total); server+store != total || server < store {
			t.Errorf("of %d bytes %d are the server's and %d the embedded etcd's", total, server, store)
		}
		if ServerOnly.of(total) != total {
			t.Errorf("a server alone has %d of %d bytes", ServerOnly.of(total), total)
		}
	}
	for _, role := range []Role{ServerOnly, BesideStore, Store} {
		if got := role.of(math.MaxInt64); got != math.MaxInt64 {
			t.Errorf("no limit became one of %d bytes", got)
		}
	}
}

// TestForBodies: the memory for bodies shrinks with the limit.
func TestForBodies(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for limit, want := range map[int64]int64{math.MaxInt64: 256 << 20, 1 << 30: 256 << 20, 96 << 20: 32 << 20} {
		debug.SetMemoryLimit(limit)
		if got := ForBodies(256 << 20); got != want {
			t.Errorf("with a limit of %d bytes bodies have %d, want %d", limit, got, want)
		}
	}
}

// TestLimit: Limit sets the limit of the Go runtime.
func TestLimit(t *testing.T) {
	before := debug.SetMemoryLimit(1 << 40)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "1TiB")
	part, err := Limit(Store)
	if err != nil {
		t.Fatal(err)
	}
	if set := debug.SetMemoryLimit(-1); set != part || part != Store.of(1<<40) {
		t.Errorf("%d bytes are set and %d told, want %d", set, part, Store.of(1<<40))
	}
}
