package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Chain holds the data of a chain beyond its revisions.
type Chain struct {
	// Name is the name of the chain.
	Name string `json:"name"`
	// Revisions are the numbers of the following revisions, highest first.
	Revisions []int64 `json:"revisions,omitempty"`
	// Highest is the highest number that was ever used.
	Highest int64 `json:"highest"`
	// Hold prevents the chain's owner from creating revisions; nil for no hold.
	Hold *Hold `json:"hold,omitempty"`
	// History has a row for each revision that ever existed, lowest number first.
	History []Row `json:"history,omitempty"`
}

// Hold is the hold of a rollback.
type Hold struct {
	// Revision is the number of the revision that the rollback created.
	Revision int64 `json:"revision"`
	// OwnerGeneration is the generation of the chain's owner at the time of the hold; 0 if unknown.
	OwnerGeneration int64 `json:"ownerGeneration,omitempty"`
}

// Row is one revision in a chain's history. Times are in UTC, to the second.
type Row struct {
	Revision    int64     `json:"revision"`
	Version     string    `json:"version,omitempty"`
	Result      string    `json:"result,omitempty"`
	CreatedAt   time.Time `json:"createdAt,omitzero"`
	CompletedAt time.Time `json:"completedAt,omitzero"`
	DeletedAt   time.Time `json:"deletedAt,omitzero"`
	RequestedBy string    `json:"requestedBy,omitempty"`
	RollbackOf  int64     `json:"rollbackOf,omitempty"`
	Cause       string    `json:"cause,omitempty"`
	Counts      *Counts   `json:"counts,omitempty"`
}

// Counts are the object counts of a revision.
type Counts struct {
	Objects int `json:"objects"`
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

// Revision is one revision without server-generated values such as the uid.
type Revision struct {
	// Number is the number of the revision in its chain.
	Number int64 `json:"number"`
	// Labels and Annotations are the metadata of the revision.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Owners are the owners of the revision, with their original uids.
	Owners []Owner `json:"owners,omitempty"`
	// CreatedAt is the creation time in UTC, to the second.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// Succeeded is true if its rollout ever completed.
	Succeeded bool `json:"succeeded,omitempty"`
	// CompletedAt is the time at which the rollout first completed.
	CompletedAt time.Time `json:"completedAt,omitzero"`
	// RequestedBy is the name of the user who created the revision.
	RequestedBy string `json:"requestedBy,omitempty"`
	// Spec is JSON in the form of the API, with objects by identity and digest. This package does
	// not interpret it.
	Spec json.RawMessage `json:"spec"`
}

// Owner is a reference to an object of the cluster.
type Owner struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Controller bool      `json:"controller,omitempty"`
}

// validate returns the errors in a chain.
func (c Chain) validate(limits Limits) error {
	if problems := validation.IsDNS1123Subdomain(c.Name); len(problems) > 0 {
		return fmt.Errorf("the name of extension %.80q: %s", c.Name, strings.Join(problems, "; "))
	}
	if len(c.Name) > maxNameLength {
		return fmt.Errorf("the name of extension %.80q has %d characters, %d are allowed", c.Name, len(c.Name), maxNameLength)
	}
	if len(c.Revisions) > limits.Revisions {
		return fmt.Errorf("extension %s has %d revisions, %d are allowed", c.Name, len(c.Revisions), limits.Revisions)
	}
	above := int64(math.MaxInt64)
	for _, number := range c.Revisions {
		if number < 1 || number > c.Highest || number >= above {
			return fmt.Errorf("extension %s: revision number %d: numbers must be from 1 to the highest one (%d), and fall", c.Name, number, c.Highest)
		}
		above = number
	}
	return c.validateHistory(limits)
}

func (c Chain) validateHistory(limits Limits) error {
	if len(c.History) > limits.Rows {
		return fmt.Errorf("the history of extension %s has %d rows, %d are allowed", c.Name, len(c.History), limits.Rows)
	}
	below := int64(0)
	for _, row := range c.History {
		if row.Revision <= below || row.Revision > c.Highest {
			return fmt.Errorf("the history of extension %s: revision number %d: numbers must be from 1 to the highest one (%d), and rise", c.Name, row.Revision, c.Highest)
		}
		below = row.Revision
		if row.DeletedAt.IsZero() != slices.Contains(c.Revisions, row.Revision) {
			return fmt.Errorf("the history of extension %s: revision %d must either be deleted or in the archive", c.Name, row.Revision)
		}
	}
	if c.Highest < 1 {
		return fmt.Errorf("extension %s has never used a number", c.Name)
	}
	if c.Hold != nil && (c.Hold.Revision < 1 || c.Hold.Revision > c.Highest) {
		return fmt.Errorf("extension %s is held because of revision %d, which it never had", c.Name, c.Hold.Revision)
	}
	return nil
}

func (r Revision) validate() error {
	trimmed := bytes.TrimSpace(r.Spec)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("it has no spec")
	}
	return nil
}

type line struct {
	Digest   manifest.Digest `json:"digest"`
	Manifest json.RawMessage `json:"manifest"`
}

// check compares a manifest with the identity and digest of its line. The digest of a Secret is
// keyed by its store: check only validates its format, and the checksums protect the content.
func (l line) check() (manifest.Object, error) {
	if err := l.Digest.Validate(); err != nil {
		return manifest.Object{}, err
	}
	if values(l.Manifest) > maxValues {
		return manifest.Object{}, fmt.Errorf("the manifest with digest %s has more than the %d values that are allowed", l.Digest, maxValues)
	}
	object, err := manifest.Parse(l.Manifest)
	if err != nil {
		return manifest.Object{}, err
	}
	if !bytes.Equal(object.JSON, l.Manifest) {
		return manifest.Object{}, fmt.Errorf("%s is not in canonical form", object.ID)
	}
	object.Digest = l.Digest
	if object.IsSecret() != l.Digest.Keyed() {
		return manifest.Object{}, fmt.Errorf("%s: digest %s: only digests of Secrets are keyed", object.ID, l.Digest)
	}
	if object.IsSecret() {
		return object, nil
	}
	return object, manifest.Digester{}.Check(object.Ref, object.JSON)
}

// values returns an upper bound of the number of values in a JSON text. Every value except the
// first follows one of these characters.
func values(text []byte) int {
	n := 0
	for _, c := range text {
		switch c {
		case '{', '[', ',', ':':
			n++
		}
	}
	return n
}
