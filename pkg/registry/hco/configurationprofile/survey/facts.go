package survey

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

// pageSize is the number of objects per list request, because MachineConfigs are large.
const pageSize = 100

// factsOf reads the facts of a profile. For a user-defined profile, it uses the identity of its
// definition.
func (s *Surveyor) factsOf(ctx context.Context, p profile.Profile) (profile.Facts, map[string]error) {
	client := s.Client
	if _, own := p.(*cel.Profile); own && s.ClientOf != nil {
		var err error
		if client, err = s.ClientOf(string(p.Name())); err != nil {
			unread := map[string]error{}
			for _, requirement := range p.Requires() {
				unread[requirement.Definition] = err
			}
			return profile.NewFacts(), unread
		}
	}
	return Facts(ctx, client, p.Requires())
}

// Facts reads the required objects. The result lacks unreadable definitions; unread holds the
// errors by the name of the definition.
func Facts(ctx context.Context, client dynamic.Interface, requirements []profile.Requirement) (facts profile.Facts, unread map[string]error) {
	facts, unread = profile.NewFacts(), map[string]error{}
	findings, errs := make([]profile.Finding, len(requirements)), make([]error, len(requirements))
	var reading sync.WaitGroup
	for i, requirement := range requirements {
		reading.Go(func() { findings[i], errs[i] = profile.Find(ctx, requested{client}, requirement) })
	}
	reading.Wait()
	for i, requirement := range requirements {
		if errs[i] != nil {
			unread[requirement.Definition] = errs[i]
			continue
		}
		facts.Add(requirement, findings[i])
	}
	return facts, unread
}

// requested reads facts with requests to the cluster.
type requested struct{ dynamic.Interface }

var _ profile.Source = requested{}

// Definition implements profile.Source.
func (r requested) Definition(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	crd, err := r.Resource(profile.Definitions()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, explain(ctx, "reading CustomResourceDefinition "+name, err)
	}
	return crd, nil
}

// Objects implements profile.Source, page by page.
func (r requested) Objects(ctx context.Context, definition string, resource schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := r.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, explain(ctx, "listing "+definition, err)
		}
		for i := range page.Items {
			objects = append(objects, &page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return objects, nil
		}
	}
}

// explain describes an error to the user who reads the profile.
func explain(ctx context.Context, doing string, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: the cluster did not answer in time", doing)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
