package pack

import (
	"errors"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
)

// CorruptError reports a pack whose bytes do not match their digests. The bytes are not returned.
type CorruptError struct {
	// Root names the pack.
	Root string
	// Digest is the digest of the damaged manifest; empty for the pack as a whole.
	Digest manifest.Digest
	// Base is the base of this delta, if the bytes of the base are wrong.
	Base string
	// Err is the underlying error.
	Err error
}

func (e *CorruptError) Error() string {
	if e.Base != "" {
		return fmt.Sprintf("pack %s cannot be read because its base, pack %s, is damaged: %v", e.Root, e.Base, e.Err)
	}
	if e.Digest != "" {
		return fmt.Sprintf("pack %s is corrupt: manifest %s: %v", e.Root, e.Digest, e.Err)
	}
	return fmt.Sprintf("pack %s is corrupt: %v", e.Root, e.Err)
}

// Unwrap returns the underlying error.
func (e *CorruptError) Unwrap() error { return e.Err }

// MissingError reports that a pack, or a part of it, is not in the store. The revision of the pack
// may exist.
type MissingError struct {
	// Root names the pack.
	Root string
	// Key is the key of the missing part; empty for the whole pack.
	Key string
	// Base is the base of this delta, if the base is missing.
	Base string
}

func (e *MissingError) Error() string {
	if e.Base != "" {
		return fmt.Sprintf("pack %s cannot be read because its base is missing: the store has no pack %s", e.Root, e.Base)
	}
	if e.Key != "" {
		return fmt.Sprintf("pack %s is incomplete: the store has no %s", e.Root, e.Key)
	}
	return fmt.Sprintf("the store has no pack %s", e.Root)
}

// TooLargeError reports that objects do not fit into a pack.
type TooLargeError struct {
	// What names the part that is too large: "manifests", "identities" or "compressed
	// manifests".
	What string
	// Bytes and Max are the found and the allowed number of bytes.
	Bytes, Max int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the %s of one revision have %d bytes, %d are allowed", e.What, e.Bytes, e.Max)
}

// corrupt returns a *CorruptError, or err itself for a newer format.
func corrupt(root string, err error) error {
	var newer *store.FormatError
	if errors.As(err, &newer) {
		return err
	}
	return &CorruptError{Root: root, Err: err}
}
