// Package extensions has the commands for packages of catalogs and for the ClusterExtensions that
// install them. Each command has its own file.
package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/install"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func getExtension(ctx context.Context, cluster *session.Cluster, name string) (*extension.Extension, error) {
	object, err := cluster.Host.Resource(extension.Resource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, outcome.Errorf(outcome.No, "there is no ClusterExtension %q; kubectl get clusterextensions lists them", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterExtension %s: %w", name, err)
	}
	return extension.From(object)
}

// askForVersion changes the version range of a ClusterExtension, unless its spec has changed since
// it was read. Changes of status do not matter.
func askForVersion(ctx context.Context, cluster *session.Cluster, read *extension.Extension, version string, dryRun bool) error {
	patch, err := install.VersionPatch(read.UID, read.Generation, version)
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, err = cluster.Host.Resource(extension.Resource).Patch(ctx, read.Name, types.JSONPatchType, patch, options); err == nil {
		return nil
	}
	if now, again := getExtension(ctx, cluster, read.Name); again == nil && (now.UID != read.UID || now.Generation != read.Generation) {
		return outcome.Errorf(outcome.Conflict, "ClusterExtension %s was changed meanwhile: run the command again", read.Name)
	}
	return fmt.Errorf("changing ClusterExtension %s: %w", read.Name, err)
}

// takeOver writes an unchanged extension in the name of the user who runs the command.
func takeOver(ctx context.Context, cluster *session.Cluster, read *extension.Extension) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": read.UID, "annotations": map[string]string{extension.AuthorAnnotation: author.Renew}}})
	if err != nil {
		return fmt.Errorf("encoding a change of ClusterExtension %s: %w", read.Name, err)
	}
	if _, err := cluster.Host.Resource(extension.Resource).Patch(ctx, read.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("changing ClusterExtension %s: %w", read.Name, err)
	}
	return nil
}

// extensionAndRevisions is an extension with its revisions, newest last.
type extensionAndRevisions = follow.Pair[[]*unstructured.Unstructured, []*v1alpha1.ClusterExtensionRevision]

type followed struct {
	extension *extension.Extension
	revisions []*v1alpha1.ClusterExtensionRevision
}

func readFollowed(all extensionAndRevisions) (followed, error) {
	if len(all.First) == 0 {
		return followed{revisions: all.Second}, nil
	}
	read, err := extension.From(all.First[0])
	return followed{extension: read, revisions: all.Second}, err
}

func (f followed) newest() *v1alpha1.ClusterExtensionRevision {
	var newest *v1alpha1.ClusterExtensionRevision
	for _, one := range f.revisions {
		if newest == nil || one.Spec.Revision > newest.Spec.Revision {
			newest = one
		}
	}
	return newest
}

// condition returns a condition of the extension if it is about the current spec.
func (f followed) condition(kind string) *metav1.Condition {
	if f.extension == nil {
		return nil
	}
	found := meta.FindStatusCondition(f.extension.Status.Conditions, kind)
	if found == nil || found.ObservedGeneration != f.extension.Generation {
		return nil
	}
	return found
}

// lines returns a picture: the progress of its newest revision, or the extension's condition if no
// revision was created from its spec.
func (f followed) lines(name string) []screen.Line {
	newest := f.newest()
	if newest != nil && f.isMadeFrom(newest) {
		return progress.RevisionLines(newest)
	}
	line := screen.Line{Glyph: screen.Waiting, Style: screen.Cyan, Text: name + ": waiting for Penstock to process it", Keep: true}
	if f.extension == nil || f.condition(status.Ready) == nil {
		return []screen.Line{line}
	}
	asked := overview.Ask(f.extension)
	given := advice.Extension(overview.Extension{Name: name, Asked: &asked})[0]
	line.Glyph, line.Style = progress.Mark(given.Signal)
	line.Text = fmt.Sprintf("%s: %s", name, given.State())
	// The final error has the message, because it may be long.
	if given.Signal != advice.NeedsAttention && given.Because != "" {
		line.Text += ": " + given.Because
	}
	return []screen.Line{line}
}

// isMadeFrom reports whether a revision has the content of the current spec: it was created from the
// spec, or has the same content. Revisions of an earlier extension of the same name do not count,
// although their generations may match.
func (f followed) isMadeFrom(revision *v1alpha1.ClusterExtensionRevision) bool {
	if f.extension == nil {
		return false
	}
	owner := metav1.GetControllerOf(revision)
	return owner != nil && owner.UID == f.extension.UID &&
		revision.Annotations[extension.GenerationAnnotation] == strconv.FormatInt(f.extension.Generation, 10)
}

// ended reports whether an extension matches its spec, or waits for approval. If a user has to act,
// the error is the reason.
func (f followed) ended(name string) (bool, error) {
	if f.extension == nil {
		return true, outcome.Errorf(outcome.No, "%s is not installed: %w", name, review.ErrGone)
	}
	if f.extension.DeletionTimestamp != nil {
		return true, outcome.Errorf(outcome.No, "%s is not installed: it is being deleted", name)
	}
	newest := f.newest()
	if newest != nil && f.isMadeFrom(newest) {
		if proposed(newest) {
			return true, nil
		}
		switch verdict, reason := overview.RevisionVerdict(newest); verdict {
		case overview.Done:
			return true, nil
		case overview.Stopped:
			return true, outcome.Errorf(outcome.No, "%s is not rolled out: %s\nkubectl penstock why %s says what to do", newest.Name, reason, newest.Name)
		case overview.Going:
			return false, nil
		}
	}
	if stalled := f.condition(status.Stalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		return true, outcome.Errorf(outcome.No, "%s: %s: %s", name, stalled.Reason, stalled.Message)
	}
	return false, nil
}

// proposed reports whether a revision waits for an approval. Archiving such a revision declines it.
func proposed(revision *v1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[v1alpha1.ProposedAnnotation] == "true" && revision.Spec.LifecycleState == v1alpha1.LifecycleStatePaused && revision.DeletionTimestamp == nil
}

// followExtension shows an extension until it matches its spec, or waits for approval. In the
// latter case it returns the proposal.
func followExtension(ctx context.Context, s *session.Session, cluster *session.Cluster, name string) (*v1alpha1.ClusterExtensionRevision, error) {
	var last followed
	var broken error
	read := func(all extensionAndRevisions) followed {
		last, broken = readFollowed(all)
		return last
	}
	err := progress.Following[extensionAndRevisions]{
		Each: follow.Both(extensionSource(cluster, name).Follow, cluster.Revisions(session.OfExtension(name)).Follow), Screen: s.Err, Clock: s.Clock,
		Picture: func(all extensionAndRevisions) []screen.Line {
			shown, err := readFollowed(all)
			if err != nil {
				return []screen.Line{{Text: err.Error()}}
			}
			return shown.lines(name)
		},
		Ended: func(all extensionAndRevisions) (bool, error) {
			if done, err := read(all).ended(name); broken == nil {
				return done, err
			}
			return true, broken
		},
	}.Run(ctx)
	if err != nil {
		return nil, err
	}
	if newest := last.newest(); newest != nil && proposed(newest) {
		return newest, nil
	}
	return nil, nil
}

func extensionSource(cluster *session.Cluster, name string) follow.Source[*unstructured.Unstructured] {
	return Source(cluster, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
}

// Source returns a source that follows the ClusterExtensions selected by options.
func Source(cluster *session.Cluster, options metav1.ListOptions) follow.Source[*unstructured.Unstructured] {
	extensions := cluster.Host.Resource(extension.Resource)
	return follow.Source[*unstructured.Unstructured]{
		Options: options,
		List: func(ctx context.Context, options metav1.ListOptions) ([]*unstructured.Unstructured, string, error) {
			listed, err := extensions.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return follow.Pointers(listed.Items), listed.GetResourceVersion(), nil
		},
		Watch: extensions.Watch,
	}
}

func extensionObjects(s *session.Session) func(context.Context, *session.Cluster) ([]string, error) {
	return func(ctx context.Context, cluster *session.Cluster) ([]string, error) {
		listed, err := cluster.Host.Resource(extension.Resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range listed.Items {
			names = append(names, listed.Items[i].GetName())
		}
		return names, nil
	}
}
