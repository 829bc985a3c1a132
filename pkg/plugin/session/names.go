package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
)

// Found is the extension or revision with a name.
type Found struct {
	overview.Extension
	// Revision is the named revision, or nil.
	Revision *v1alpha1.ClusterExtensionRevision
	// Hidden is the error of reading the ClusterExtension. It is nil if the ClusterExtension was
	// read or does not exist.
	Hidden error
}

// Find returns the extension or the revision with a name, and all stored revisions of the
// extension. A name like argocd-2 may be both; then the revision is returned. Find sends one
// request.
func (c *Cluster) Find(ctx context.Context, name string) (*Found, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
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
	all := overview.Of(follow.Pointers(listed.Items))
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
	if len(all) > 0 {
		return nil, &unknownName{fmt.Sprintf("%s has no revision %s; it has %s", all[0].Name, name, Enumerate(namesOf(all[0].Revisions)))}
	}
	return nil, c.Unknown(ctx, name)
}

// Ask does the same as Find, and adds the state of the extension's ClusterExtension, even without
// revisions. It sends two requests.
func (c *Cluster) Ask(ctx context.Context, name string) (*Found, error) {
	found, err := c.Find(ctx, name)
	if err != nil && !IsUnknownName(err) || err == nil && found.Revision != nil {
		return found, err
	}
	object, refused := c.Host.Resource(extension.Resource).Get(ctx, name, metav1.GetOptions{})
	if refused == nil {
		var read *extension.Extension
		if read, refused = extension.From(object); refused == nil {
			asked := overview.Ask(read)
			if err != nil {
				found = &Found{Extension: overview.Extension{Name: name}}
			}
			found.Asked = &asked
			return found, nil
		}
	}
	if err == nil && !apierrors.IsNotFound(refused) {
		found.Hidden = fmt.Errorf("ClusterExtension %s is not shown: %w", name, refused)
	}
	return found, err
}

// Unknown returns the error about an unknown name, for all commands. It lists the existing names
// that the caller may see.
func (c *Cluster) Unknown(ctx context.Context, name string) error {
	said := fmt.Sprintf("there is no extension, revision or plan %q", name)
	if without := c.withoutRevisions(ctx, name); without != "" {
		return &unknownName{without}
	}
	var known []string
	is := func(noun, command string) error {
		return &unknownName{fmt.Sprintf("%s is %s: kubectl penstock %s %s", name, noun, command, name)}
	}
	if listed, err := c.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{}); err == nil {
		var extensions []string
		for _, extension := range overview.Of(follow.Pointers(listed.Items)) {
			if extension.Name == name {
				return is("an extension", "status")
			}
			extensions = append(extensions, extension.Name)
		}
		known = append(known, counted("extension", extensions)...)
	}
	if listed, err := c.HcoV1alpha1().ConfigurationPlans().List(ctx, metav1.ListOptions{}); err == nil {
		plans := namesOf(follow.Pointers(listed.Items))
		if slices.Contains(plans, name) {
			return is("a plan", "plan show")
		}
		known = append(known, counted("plan", plans)...)
	}
	if len(known) == 0 {
		return &unknownName{said + "; kubectl penstock status lists all"}
	}
	return &unknownName{said + "; the cluster has " + strings.Join(known, ", and ")}
}

// withoutRevisions describes a ClusterExtension without revisions, such as one with a denied
// request. It is empty if the ClusterExtension does not exist, or if the caller cannot read it.
func (c *Cluster) withoutRevisions(ctx context.Context, name string) string {
	object, err := c.Host.Resource(extension.Resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	read, err := extension.From(object)
	if err != nil {
		return ""
	}
	said := fmt.Sprintf("ClusterExtension %s has no revisions", name)
	ready := meta.FindStatusCondition(read.Status.Conditions, "Ready")
	if ready == nil || ready.ObservedGeneration != read.Generation {
		return said + " yet: Penstock has not looked at it"
	}
	return fmt.Sprintf("%s: %s: %s", said, ready.Reason, ready.Message)
}

// checkName returns an error for an invalid name. The error describes valid names.
func checkName(name string) error {
	if len(validation.IsDNS1123Subdomain(name)) == 0 && len(validation.IsValidLabelValue(name)) == 0 {
		return nil
	}
	return outcome.Errorf(outcome.Unknown, "%q is not the name of an extension or a revision, such as lighthouse or lighthouse-3; kubectl penstock status lists them", name)
}

// counted returns a list such as "extensions a and b"; empty for no names.
func counted(noun string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	if len(names) > 1 {
		noun += "s"
	}
	return []string{noun + " " + Enumerate(names)}
}

func namesOf[T metav1.Object](objects []T) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	return names
}

const maxNames = 8

// Enumerate lists names in a sentence, such as "a, b and c". It lists only the first of many.
func Enumerate(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > maxNames:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), n-maxNames)
	case n == 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// unknownName is the error for a name that does not exist. The exit code is No, because the answer
// is known.
type unknownName struct{ said string }

// Error implements error.
func (e *unknownName) Error() string { return e.said }

// Unwrap returns the exit code.
func (e *unknownName) Unwrap() error { return outcome.Quiet(outcome.No) }

// IsUnknownName reports whether an error of Find means that the name does not exist.
func IsUnknownName(err error) bool {
	return errors.As(err, new(*unknownName))
}

// Revisions returns a source that follows the selected revisions.
func (c *Cluster) Revisions(options metav1.ListOptions) follow.Source[*v1alpha1.ClusterExtensionRevision] {
	return follow.Revisions(c, options)
}

// Plans returns a source that follows the selected plans.
func (c *Cluster) Plans(options metav1.ListOptions) follow.Source[*hcov1alpha1.ConfigurationPlan] {
	return follow.Plans(c, options)
}

// OfExtension selects the revisions of an extension.
func OfExtension(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: v1alpha1.ChainLabel + "=" + name}
}

// Complete completes the first argument of a command with names.
func (s *Session) Complete(names func(context.Context, *Cluster) ([]string, error)) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.suggest(command.Context(), names), cobra.ShellCompDirectiveNoFileComp
	}
}

// suggestTime bounds the time that a shell waits for names.
const suggestTime = 2 * time.Second

// suggest returns names for shell completion; after a failure none.
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
