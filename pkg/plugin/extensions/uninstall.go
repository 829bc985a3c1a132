package extensions

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/text"
)

// Values of the flag --cascade.
const (
	cascadeBackground = "background"
	cascadeOrphan     = "orphan"
)

type uninstallOptions struct {
	cascade     string
	yes, dryRun bool
	timeout     time.Duration
}

// NewUninstall returns the command that deletes a ClusterExtension.
func NewUninstall(s *session.Session) *cobra.Command {
	var options uninstallOptions
	command := &cobra.Command{
		Use:   "uninstall EXTENSION",
		Short: "Delete a ClusterExtension and everything that it has installed",
		Long: "Show what will be deleted, ask, delete the ClusterExtension, and follow until its revisions and their objects are gone.\n" +
			"Nothing else is ever deleted. After --timeout, the command says what is left, and why; the deletion continues by\n" +
			"itself. With --cascade=orphan only the ClusterExtension is deleted. Its revisions stay, without an owner, and keep\n" +
			"their objects as they are.",
		Example:           "  kubectl penstock uninstall lighthouse --dry-run\n  kubectl penstock uninstall lighthouse --yes --timeout 5m",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.Complete(extensionObjects(s)),
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case options.cascade != cascadeBackground && options.cascade != cascadeOrphan:
				return outcome.Errorf(outcome.Unknown, "--cascade %q: want %s or %s", options.cascade, cascadeBackground, cascadeOrphan)
			case !options.yes && !options.dryRun && !s.Person():
				return outcome.Errorf(outcome.Unknown, "there is no terminal to ask on: --yes uninstalls without asking, --dry-run only shows what would be deleted")
			}
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			return uninstall(command.Context(), s, cluster, args[0], options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.cascade, "cascade", cascadeBackground, "Policy for the revisions and their objects: background deletes them, orphan leaves them.")
	flags.BoolVar(&options.yes, "yes", false, "Do not ask.")
	flags.BoolVar(&options.dryRun, "dry-run", false, "Only show what would be deleted.")
	flags.DurationVar(&options.timeout, "timeout", review.Patience, "Stop following after this time, with exit code 124; the deletion continues. 0 is no limit.")
	return command
}

func uninstall(ctx context.Context, s *session.Session, cluster *session.Cluster, name string, options uninstallOptions) error {
	read, err := getExtension(ctx, cluster, name)
	if err != nil {
		return err
	}
	listed, err := cluster.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, session.OfExtension(name))
	if err != nil {
		return fmt.Errorf("looking for what %s has installed: %w", name, session.Uninstalled(err))
	}
	owned := ownedBy(read.UID, follow.Pointers(listed.Items))
	showLeaving(s, name, owned, options.cascade)
	if options.dryRun {
		return nil
	}
	if !options.yes {
		agreed, err := s.Confirm(ctx, "Uninstall "+name+"?")
		if err != nil || !agreed {
			s.Err.Para(screen.Dim, screen.Waiting, "nothing was deleted")
			if err == nil {
				err = outcome.Quiet(outcome.No)
			}
			return err
		}
	}
	propagation := metav1.DeletePropagationBackground
	if options.cascade == cascadeOrphan {
		propagation = metav1.DeletePropagationOrphan
	}
	err = cluster.Host.Resource(extension.Resource).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &read.UID}, PropagationPolicy: &propagation})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting ClusterExtension %s: %w", name, err)
	}
	return followLeaving(ctx, s, cluster, read, len(owned), options)
}

func ownedBy(uid types.UID, all []*v1alpha1.ClusterExtensionRevision) []*v1alpha1.ClusterExtensionRevision {
	var owned []*v1alpha1.ClusterExtensionRevision
	for _, one := range all {
		if owner := metav1.GetControllerOf(one); owner != nil && owner.UID == uid {
			owned = append(owned, one)
		}
	}
	return owned
}

// showLeaving prints which objects are deleted, and which stay.
func showLeaving(s *session.Session, name string, owned []*v1alpha1.ClusterExtensionRevision, cascade string) {
	objects := int32(0)
	keeps := false
	for _, one := range owned {
		if one.Spec.LifecycleState == v1alpha1.LifecycleStateActive {
			_, all := overview.Objects(one)
			objects = max(objects, int32(all))
			keeps = keeps || one.Spec.TeardownPolicy == v1alpha1.TeardownPolicyOrphan
		}
	}
	what := fmt.Sprintf("%s and %s", text.Count(len(owned), "revision"), text.Count(int(objects), "object"))
	switch {
	case cascade == cascadeOrphan:
		s.Out.Para(screen.Bold, "", fmt.Sprintf("ClusterExtension %s will be deleted; %s stay as they are", name, what))
	case keeps:
		s.Out.Para(screen.Bold, "", fmt.Sprintf("ClusterExtension %s and %s will be deleted; its %s stay, since its revisions have teardownPolicy Orphan", name, text.Count(len(owned), "revision"), text.Count(int(objects), "object")))
	default:
		s.Out.Para(screen.Bold, "", fmt.Sprintf("ClusterExtension %s will be deleted, with %s", name, what))
	}
}

// followLeaving shows the remaining objects until none are left. With orphans, this number of
// revisions is kept.
func followLeaving(ctx context.Context, s *session.Session, cluster *session.Cluster, read *extension.Extension, kept int, options uninstallOptions) error {
	var left []*v1alpha1.ClusterExtensionRevision
	orphans := options.cascade == cascadeOrphan
	state := func(all extensionAndRevisions) (there bool, owned []*v1alpha1.ClusterExtensionRevision) {
		for _, one := range all.First {
			there = there || one.GetUID() == read.UID
		}
		return there, ownedBy(read.UID, all.Second)
	}
	following, cancel := session.Within(ctx, options.timeout)
	defer cancel()
	err := progress.Following[extensionAndRevisions]{
		Each: follow.Both(extensionSource(cluster, read.Name).Follow, cluster.Revisions(session.OfExtension(read.Name)).Follow), Screen: s.Err, Clock: s.Clock,
		Picture: func(all extensionAndRevisions) []screen.Line {
			there, owned := state(all)
			lines := []screen.Line{leaving(read.Name, there, len(owned), orphans)}
			for _, one := range owned {
				lines = append(lines, progress.RevisionLines(one)[0])
			}
			return lines
		},
		Ended: func(all extensionAndRevisions) (bool, error) {
			there, owned := state(all)
			left = owned
			return !there && len(owned) == 0, nil
		},
	}.Run(following)
	if err != nil {
		s.Err.Para(screen.Yellow, screen.Notice, stillLeaving(read.Name, left, orphans))
		return err
	}
	if orphans && kept > 0 {
		s.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("its revisions stay: kubectl penstock status %s", read.Name))
	}
	return nil
}

// leaving returns the first line of the picture.
func leaving(name string, there bool, owned int, orphans bool) screen.Line {
	line := screen.Line{Glyph: screen.Waiting, Style: screen.Cyan, Keep: true}
	switch {
	case !there && owned == 0 && orphans:
		line.Glyph, line.Style, line.Text = screen.Good, screen.Green, fmt.Sprintf("ClusterExtension %s is deleted", name)
	case !there && owned == 0:
		line.Glyph, line.Style, line.Text = screen.Good, screen.Green, name+" is uninstalled"
	case orphans:
		line.Text = fmt.Sprintf("%s: it still owns %s", name, text.Count(owned, "revision"))
	default:
		line.Text = fmt.Sprintf("%s: %s left", name, text.Count(owned, "revision"))
	}
	return line
}

// stillLeaving describes the remaining objects when the user stops following, and the reason.
func stillLeaving(name string, left []*v1alpha1.ClusterExtensionRevision, orphans bool) string {
	told := fmt.Sprintf("the deletion of %s continues by itself, and nothing else was deleted", name)
	for _, one := range left {
		if orphans {
			told += fmt.Sprintf("; it still owns %s, which stays", one.Name)
			continue
		}
		told += "; " + one.Name + " is left"
		if given := advice.Revision(one, left); given.Signal == advice.NeedsAttention {
			told += ": " + given.Because
		}
	}
	return told
}

func getOptions() metav1.GetOptions { return metav1.GetOptions{} }
