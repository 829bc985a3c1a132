package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// pageSize is how many objects are read in one request: MachineConfigs are large.
const pageSize = 100

// reading is what one requirement turned out to be.
type reading struct {
	definition profile.Definition
	objects    []*unstructured.Unstructured
	err        error
}

// facts reads what profiles look at. What could not be read is not in the facts; the
// reason is in unread, by the name of the definition.
func (s *Surveyor) facts(ctx context.Context, requirements []profile.Requirement) (facts profile.Facts, unread map[string]error) {
	facts = profile.Facts{Definitions: map[string]profile.Definition{}, Objects: map[schema.GroupKind][]*unstructured.Unstructured{}}
	unread = map[string]error{}
	readings := make([]reading, len(requirements))
	var group errgroup.Group
	for i, requirement := range requirements {
		group.Go(func() error {
			readings[i] = s.read(ctx, requirement)
			return nil
		})
	}
	_ = group.Wait() // errors are in the readings: each stands for itself
	for i, requirement := range requirements {
		switch found := readings[i]; {
		case found.err != nil:
			unread[requirement.Definition] = found.err
		case len(found.definition.Versions) > 0:
			facts.Definitions[requirement.Definition] = found.definition
			facts.Objects[requirement.Kind] = found.objects
		}
	}
	return facts, unread
}

// read is one definition and, where it is served, its objects in the order of their
// names. One that is not served has no versions.
func (s *Surveyor) read(ctx context.Context, requirement profile.Requirement) reading {
	definitions := s.Client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd, err := definitions.Get(ctx, requirement.Definition, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return reading{}
	}
	if err != nil {
		return reading{err: explain(ctx, "reading CustomResourceDefinition "+requirement.Definition, err)}
	}
	definition, served := profile.DefinitionOf(crd)
	if !served || !requirement.Objects {
		return reading{definition: definition}
	}
	// The name of a definition is plural and group, by rule.
	plural, group, _ := strings.Cut(requirement.Definition, ".")
	objects, err := s.list(ctx, schema.GroupVersionResource{Group: group, Version: definition.Preferred().Name, Resource: plural})
	if err != nil {
		return reading{err: explain(ctx, "listing "+requirement.Definition, err)}
	}
	return reading{definition: definition, objects: objects}
}

// list reads all objects of a resource, page by page.
func (s *Surveyor) list(ctx context.Context, resource schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := s.Client.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			objects = append(objects, &page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return objects, nil
}

// explain is an error in words for whoever reads the profile.
func explain(ctx context.Context, doing string, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: the cluster did not answer in time", doing)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
