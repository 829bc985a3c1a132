package configurationprofiledefinition

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// Compiled returns the stored definitions, compiled. It caches a compiled definition while it is
// stored, because compiling takes too long for a request.
type Compiled struct {
	rest *REST

	mu   sync.Mutex
	kept map[string]kept
}

type kept struct {
	uid        string
	generation int64
	profile    *cel.Profile
}

// NewCompiled returns the definitions of a resource.
func NewCompiled(of *REST) *Compiled { return &Compiled{rest: of, kept: map[string]kept{}} }

// Get returns the profile of a definition, or nil if the definition does not exist.
func (c *Compiled) Get(ctx context.Context, name string) (*cel.Profile, error) {
	found, err := c.rest.Store.Get(ctx, name, &metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return c.Of(found.(*hco.ConfigurationProfileDefinition))
}

// Granted reports whether the identity of a definition has its rights. Without them, nothing can be
// read with that identity.
func Granted(definition *hco.ConfigurationProfileDefinition) bool {
	return meta.IsStatusConditionTrue(definition.Status.Conditions, v1alpha1.ConditionAccessGranted)
}

// List returns the profiles of all usable definitions, sorted by name.
func (c *Compiled) List(ctx context.Context) ([]*cel.Profile, error) {
	found, err := c.rest.List(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing definitions: %w", err)
	}
	list := found.(*hco.ConfigurationProfileDefinitionList)
	profiles := make([]*cel.Profile, 0, len(list.Items))
	for i := range list.Items {
		if one, err := c.Of(&list.Items[i]); err == nil && Granted(&list.Items[i]) {
			profiles = append(profiles, one)
		}
	}
	return profiles, nil
}

// Of returns the profile of a definition.
func (c *Compiled) Of(definition *hco.ConfigurationProfileDefinition) (*cel.Profile, error) {
	c.mu.Lock()
	known, found := c.kept[definition.Name]
	c.mu.Unlock()
	if found && known.uid == string(definition.UID) && known.generation == definition.Generation {
		return known.profile, nil
	}
	spec, err := External(&definition.Spec)
	if err != nil {
		return nil, err
	}
	made, err := cel.New(definition.Name, spec)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[definition.Name] = kept{uid: string(definition.UID), generation: definition.Generation, profile: made}
	return made, nil
}
