package pack

import (
	"errors"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store"
)

// CorruptError says that a pack has bytes that do not match their digests. They
// are not returned, and nothing is put in their place.
type CorruptError struct {
	// Root names the pack.
	Root string
	// Digest of the manifest whose bytes are wrong; empty when it is the pack
	// as a whole.
	Digest manifest.Digest
	// Base names the base of this delta, when the bytes of the base are wrong.
	Base string
	// Err says what was found.
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

// Unwrap returns what was found.
func (e *CorruptError) Unwrap() error { return e.Err }

// MissingError says that a pack, or a part of it, is not in the store. It says
// nothing about the revision that names the pack.
type MissingError struct {
	// Root names the pack.
	Root string
	// Key of the part that is missing; empty when it is the whole pack.
	Key string
	// Base names the pack that this one is a delta against, when it is that one
	// that is missing.
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

// TooLargeError says that objects do not fit into a pack.
type TooLargeError struct {
	// What names the part that is too large: "manifests", "identities" or "compressed
	// manifests".
	What string
	// Bytes found and allowed.
	Bytes, Max int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the %s of one revision have %d bytes, %d are allowed", e.What, e.Bytes, e.Max)
}

// corrupt is for bytes that cannot be what was written. A newer format is not
// among them, and a limit of ours may be.
func corrupt(root string, err error) error {
	var newer *store.FormatError
	if errors.As(err, &newer) {
		return err
	}
	return &CorruptError{Root: root, Err: err}
}
