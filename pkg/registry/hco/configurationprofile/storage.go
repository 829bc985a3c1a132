package configurationprofile

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Surveyor compares profiles with the cluster. *survey.Surveyor implements it.
type Surveyor interface {
	// Names returns the names of all profiles, sorted.
	Names(ctx context.Context) ([]string, error)
	// Survey returns the selected profiles by name, and never nil. Unreadable facts of the cluster
	// are reported in their status, not as an error.
	Survey(ctx context.Context, selected func(name string) bool) ([]v1alpha1.ConfigurationProfile, error)
}

// REST serves profiles: get and list. They cannot be watched, because no event reports changes of
// the cluster. Garbage collection, quota, backups and GitOps tools ignore resources that cannot be
// created, deleted or watched.
type REST struct {
	surveyor Surveyor
	table
}

var (
	_ rest.Getter               = &REST{}
	_ rest.Lister               = &REST{}
	_ rest.Scoper               = &REST{}
	_ rest.SingularNameProvider = &REST{}
	_ rest.ShortNamesProvider   = &REST{}
)

// NewREST returns the resource.
func NewREST(surveyor Surveyor) *REST { return &REST{surveyor: surveyor} }

// New returns an empty profile.
func (*REST) New() runtime.Object { return &v1alpha1.ConfigurationProfile{} }

// NewList returns an empty list.
func (*REST) NewList() runtime.Object { return &v1alpha1.ConfigurationProfileList{} }

// Destroy does nothing.
func (*REST) Destroy() {}

// NamespaceScoped is false, as for plans.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName returns the singular name for kubectl.
func (*REST) GetSingularName() string { return "configurationprofile" }

// ShortNames returns the short names for kubectl, like configplan for plans.
func (*REST) ShortNames() []string { return []string{"configprofile", "cfgprofile"} }

// Get returns the profile with a name.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	found, err := r.surveyor.Survey(ctx, func(one string) bool { return one == name })
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		return &found[0], nil
	}
	names, err := r.surveyor.Names(ctx)
	if err != nil {
		return nil, err
	}
	missing := apierrors.NewNotFound(v1alpha1.Resource("configurationprofiles"), name)
	missing.ErrStatus.Message += "; there are " + strings.Join(names, ", ")
	return nil, missing
}

// List returns all selected profiles in one page, because there are few. A field selector can
// select them by name; they have no labels.
func (r *REST) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	found, err := r.surveyor.Survey(ctx, func(name string) bool { return selected(options, name) })
	if err != nil {
		return nil, err
	}
	return &v1alpha1.ConfigurationProfileList{Items: found}, nil
}

func selected(options *metainternalversion.ListOptions, name string) bool {
	if options == nil {
		return true
	}
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set{}) {
		return false
	}
	return options.FieldSelector == nil || options.FieldSelector.Matches(fields.Set{metav1.ObjectNameField: name})
}
