package store

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// IsFull reports whether a write failed because etcd has reached its quota. The write that reaches
// it may have been done all the same; later ones were not.
func IsFull(err error) bool {
	return errors.Is(err, rpctypes.ErrNoSpace)
}
