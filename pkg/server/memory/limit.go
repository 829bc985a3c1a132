package memory

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Role is the relation of a process to the other one of the same container.
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
	// storePercent is the share of the embedded etcd in that. With 5,000 revisions etcd has a fifth
	// of both processes' heap and stacks.
	storePercent = 20
)

// Limit sets the memory limit of the Go runtime for this process, and returns it in bytes;
// math.MaxInt64 means no limit. Near its limit Go collects garbage more often.
//
// The limits of both processes together are GOMEMLIMIT, or else a part of the container's memory:
// the least memory.max of the control group and its parents. GOMEMLIMIT=off means no limit.
func Limit(role Role) (int64, error) {
	total, err := available(os.Getenv("GOMEMLIMIT"), debug.SetMemoryLimit(-1), memlimit.FromCgroup)
	if err != nil {
		return math.MaxInt64, err
	}
	part := role.of(total)
	debug.SetMemoryLimit(part)
	return part, nil
}

// bodiesPart is which part of the limit of this process request bodies may have.
const bodiesPart = 3

// ForBodies returns the memory for all concurrent request bodies, in bytes: the given amount, but
// at most a third of the limit of this process.
func ForBodies(most int64) int64 { return min(most, debug.SetMemoryLimit(-1)/bodiesPart) }

// available returns the memory, as Go counts it, that all processes of the container may have. The
// limit that the environment sets has been parsed by the Go runtime.
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
		return math.MaxInt64, nil // version 1 has a large number for none
	}
	return int64(bytes) / 100 * goPercent, nil
}

// of is the part of a process in what all may have.
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
