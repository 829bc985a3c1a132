package memory

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Role is the relation of a process to the other process of the same container.
type Role int

const (
	// ServerOnly is a server with an external etcd.
	ServerOnly Role = iota
	// BesideStore is the server that runs the embedded etcd.
	BesideStore
	// Store is the embedded etcd.
	Store
)

const (
	// goPercent is the share of the container's memory limit for memory that Go counts. The kernel
	// also counts its own memory for the processes, and pages of files in use.
	goPercent = 85
	// storePercent is the embedded etcd's share of that memory. With 5,000 revisions, etcd has a
	// fifth of both processes' heap and stacks.
	storePercent = 20
)

// Limit sets the memory limit of the Go runtime for this process, and returns it in bytes;
// math.MaxInt64 means no limit. Near its limit, Go collects garbage more often.
//
// GOMEMLIMIT is the limit of both processes together. Without it, the limit is a part of the
// container's memory: the least memory.max of the control group and its parents. GOMEMLIMIT=off
// means no limit.
func Limit(role Role) (int64, error) {
	total, err := available(os.Getenv("GOMEMLIMIT"), debug.SetMemoryLimit(-1), memlimit.FromCgroup)
	if err != nil {
		return math.MaxInt64, err
	}
	part := role.of(total)
	debug.SetMemoryLimit(part)
	return part, nil
}

// bodiesPart is the divisor for the part of this process's limit that request bodies may use.
const bodiesPart = 3

// ForBodies returns the memory for all concurrent request bodies, in bytes: the given amount, but
// at most a third of the limit of this process.
func ForBodies(most int64) int64 { return min(most, debug.SetMemoryLimit(-1)/bodiesPart) }

// available returns the memory for the Go runtimes of all processes of the container together. It
// is the limit from the environment, or else goPercent of the container's limit. set is the limit
// that the Go runtime has parsed from the environment.
func available(environment string, set int64, container memlimit.Provider) (int64, error) {
	if environment != "" {
		return set, nil
	}
	bytes, err := container()
	switch {
	case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
		return math.MaxInt64, nil
	case err != nil:
		return 0, fmt.Errorf("reading the memory limit of this container: %w", err)
	case bytes > math.MaxInt64/2:
		return math.MaxInt64, nil // cgroup version 1 has a large number instead of no limit
	}
	return int64(bytes) / 100 * goPercent, nil
}

func (r Role) of(total int64) int64 {
	if total == math.MaxInt64 {
		return total
	}
	store := total / 100 * storePercent
	switch r {
	case Store:
		return store
	case BesideStore:
		return total - store
	default:
		return total
	}
}
