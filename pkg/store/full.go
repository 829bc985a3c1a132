package store

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// IsFull reports whether a write failed because etcd has reached its quota. The write that reaches
// the quota may have been executed; later ones were not.
func IsFull(err error) bool {
	return errors.Is(err, rpctypes.ErrNoSpace)
}
