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
	// ServerOnly is the server whose etcd is elsewhere.
	ServerOnly Role = iota
	// BesideStore is the server that runs the embedded etcd.
	BesideStore
	// Store is the embedded etcd.
	Store
)

const (
	// goPercent is the part of the container's memory that Go may count. The kernel counts more:
	// its own memory for the processes, and the pages of files in use.
	goPercent = 85
	// storePercent is the part of that for the embedded etcd. With 5,000 revisions it has a fifth
	// of the heap and stacks of both processes.
	storePercent = 20
)

// Limit has Go collect garbage in this process before both processes together reach the
// memory that they may have: the more often, the nearer they are. It returns what this
// process may have of it, in bytes, math.MaxInt64 where nothing is bounded.
//
// Their limit is GOMEMLIMIT, of both processes together, or else a part of the
// memory of their container, which is that of the control group and those above it
// (memory.max). GOMEMLIMIT=off is no limit, whatever the container has.
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

// ForBodies returns how much memory, in bytes, all request bodies may have at a time: the
// given amount, and at most a third of the limit of this process. Other memory of the
// process comes on top of it.
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
