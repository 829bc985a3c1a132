// Package records reads stored records of the API without a server, and returns the packs that they
// refer to.
package records

import (
	"encoding/json"
	"fmt"
	"strings"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/references"
	"github.com/penstock-project/penstock/pkg/store/run"
)

// Decoders returns the decoders of all records that refer to packs.
func Decoders() references.Decoders {
	return references.Decoders{"clusterextensionrevisions": ofRevision, "configurationplans": ofPlan, "runs": ofRuns}
}

func ofRevision(key string, record []byte) ([]string, error) {
	found := &olmv1alpha1.ClusterExtensionRevision{}
	if err := decode(key, record, found); err != nil {
		return nil, err
	}
	if err := named(key, found.Name); err != nil {
		return nil, err
	}
	return []string{revision.PackRoot(found)}, nil
}

func ofPlan(key string, record []byte) ([]string, error) {
	found := &hcov1alpha1.ConfigurationPlan{}
	if err := decode(key, record, found); err != nil {
		return nil, err
	}
	if err := named(key, found.Name); err != nil {
		return nil, err
	}
	roots := []string{found.Status.Manifests, found.Status.Captured}
	if definition := found.Status.Definition; definition != nil {
		roots = append(roots, definition.Manifest)
	}
	return roots, nil
}

func ofRuns(key string, record []byte) ([]string, error) {
	rows, err := run.Decode(key, record)
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, row := range rows {
		did := &hcov1alpha1.PlanRun{}
		if err := json.Unmarshal(row.Body, did); err != nil {
			return nil, run.Damaged(key, fmt.Errorf("run %d: %w", row.Number, err))
		}
		roots = append(roots, did.Manifests, did.Captured)
	}
	return roots, nil
}

// named returns an error if an object's name differs from its key. Such a record would give the
// references of another object.
func named(key, name string) error {
	if key[strings.LastIndexByte(key, '/')+1:] != name {
		return store.DamagedObject(key, fmt.Errorf("it is the record of %q", name))
	}
	return nil
}

// decode decodes a stored object of the API.
func decode(key string, record []byte, into any) error {
	plain, err := store.OpenObject(key, record)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(plain, into); err != nil {
		return store.DamagedObject(key, err)
	}
	return nil
}
