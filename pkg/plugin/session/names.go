package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
)

// Found is what a name stands for: an extension, or one revision of it.
type Found struct {
	overview.Extension
	// Revision is the one that was named, or nil.
	Revision *v1alpha1.ClusterExtensionRevision
}

// Find returns the extension or the revision of a name, with all stored revisions of the
// extension. A name can be both, since argocd-2 may be an extension too: then it is the
// revision. It costs one request.
func (c *Cluster) Find(ctx context.Context, name string) (*Found, error) {
	chains := name
	if chain, _, ok := olm.ChainOf(name); ok {
		chains += "," + chain
	}
	listed, err := c.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{
		LabelSelector: fmt.Sprintf("%s in (%s)", v1alpha1.ChainLabel, chains),
	})
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", name, Uninstalled(err))
	}
	all := overview.Of(Pointers(listed.Items))
	for _, extension := range all {
		for _, revision := range extension.Revisions {
			if revision.Name == name {
				return &Found{Extension: extension, Revision: revision}, nil
			}
		}
	}
	for _, extension := range all {
		if extension.Name == name {
			return &Found{Extension: extension}, nil
		}
	}
	return nil, UnknownName(name)
}

// UnknownName is the error about a name that nothing has: the same of all commands.
func UnknownName(name string) error { return &unknownName{name} }

// unknownName is a name that nothing has.
type unknownName struct{ name string }

// Error implements error.
func (e *unknownName) Error() string {
	return fmt.Sprintf("there is no extension, revision or plan %q; kubectl penstock status lists them", e.name)
}

// IsUnknownName tells whether Find found nothing of a name.
func IsUnknownName(err error) bool {
	return errors.As(err, new(*unknownName))
}

// Pointers are those to the elements of a slice.
func Pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// Revisions follows revisions that a selector picks.
func (c *Cluster) Revisions(options metav1.ListOptions) follow.Source[*v1alpha1.ClusterExtensionRevision] {
	api := c.OlmV1alpha1().ClusterExtensionRevisions()
	return follow.Source[*v1alpha1.ClusterExtensionRevision]{
		Options: options,
		List: func(ctx context.Context, options metav1.ListOptions) ([]*v1alpha1.ClusterExtensionRevision, string, error) {
			listed, err := api.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return Pointers(listed.Items), listed.ResourceVersion, nil
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, options)
		},
	}
}

// OfExtension selects the revisions of an extension.
func OfExtension(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: v1alpha1.ChainLabel + "=" + name}
}

// Complete completes the first argument of a command by names.
func (s *Session) Complete(names func(context.Context, *Cluster) ([]string, error)) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.suggest(command.Context(), names), cobra.ShellCompDirectiveNoFileComp
	}
}

// suggestTime bounds how long a shell waits for names.
const suggestTime = 2 * time.Second

// suggest are names for the completion of a shell: a failure is no name.
func (s *Session) suggest(ctx context.Context, names func(context.Context, *Cluster) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(ctx, suggestTime)
	defer cancel()
	cluster, err := s.Connect()
	if err != nil {
		return nil
	}
	found, err := names(ctx, cluster)
	if err != nil {
		return nil
	}
	return found
}
