package verbs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	olmclient "github.com/penstock-project/penstock/pkg/generated/clientset/versioned/typed/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/text"
)

const releasePoll = 500 * time.Millisecond

type unregisterOptions struct {
	program   Program
	namespace string
	release   bool
	timeout   time.Duration
}

// NewUnregister returns the command that removes Penstock from a cluster.
func NewUnregister(p Program) *cobra.Command {
	options := unregisterOptions{program: p}
	command := &cobra.Command{
		Use:   "unregister",
		Short: "Remove Penstock from a cluster, and leave everything running that it rolled out",
		Long: "Remove the objects that make a cluster send requests to Penstock: APIServices, webhooks, and the\n" +
			"identities of its jobs and of profiles that users define. From then on the cluster does not wait for Penstock,\n" +
			"whether or not it runs. The objects that it rolled out stay as they are, and so does its store. Do this before\n" +
			"you stop Penstock for good.\n\n" +
			"With --release-finalizers, all revisions are released first, as by kubectl delete --cascade=orphan:\n" +
			"their objects continue to run without Penstock's marks, and the revisions are gone. A revision that is not gone\n" +
			"in time is released without its controller. This cannot be undone.\n\n" +
			"Plans stay in the store, and their changes stay in the cluster; to remove the changes, undo the plans first.\n\n" +
			"Without --release-finalizers the revisions stay in the store. The namespace is marked, and no process registers again until\n" +
			"the mark is removed; then penstock serve --register continues where it was.",
		Example: p.examples(
			"% unregister --release-finalizers    # for good",
			"% unregister                         # for a while",
		),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return unregister(command, options) },
	}
	flags := command.Flags()
	p.addCluster(flags)
	flags.StringVar(&options.namespace, "namespace", registration.DefaultNamespace, "Namespace of Penstock in the cluster.")
	flags.BoolVar(&options.release, "release-finalizers", false, "Release all revisions first; their objects stay.")
	flags.DurationVar(&options.timeout, "timeout", 2*time.Minute, "How long revisions may take to release their objects, with --release-finalizers.")
	return command
}

func unregister(command *cobra.Command, options unregisterOptions) error {
	config, err := options.program.Cluster.Config()
	if err != nil {
		return err
	}
	clients, _, err := options.program.Cluster.Client()
	if err != nil {
		return err
	}
	ctx, out := command.Context(), command.OutOrStdout()
	if err := reportPlans(ctx, clients, out); err != nil {
		return err
	}
	if options.release {
		r := &releaser{api: clients.OlmV1alpha1().ClusterExtensionRevisions(), out: out, timeout: options.timeout}
		if err := r.release(ctx); err != nil {
			return err
		}
	}
	err = registration.Unregister(ctx, config, options.namespace, registration.Versions(), time.Now(), func(what string) {
		fmt.Fprintf(out, "%s deleted\n", what)
	})
	if err != nil {
		return fmt.Errorf("not all of the registration is deleted, run the command again: %w", err)
	}
	_, err = fmt.Fprintf(out, farewell, options.namespace)
	return err
}

const farewell = `Penstock is not part of this cluster's API any more. Stop it now, and delete what is left of it:
  kubectl delete namespace %[1]s
or, when manifests installed it, with the folder that was applied:
  kubectl delete --ignore-not-found -k artifacts/deploy/embedded
or, when Helm installed it, which keeps the volume:
  helm uninstall penstock --namespace %[1]s
or, to register it again later:
  kubectl annotate namespace %[1]s penstock.dev/unregistered-at-
`

// releaser deletes all revisions and keeps their objects.
type releaser struct {
	api     olmclient.ClusterExtensionRevisionInterface
	out     io.Writer
	timeout time.Duration
}

// release deletes all revisions, keeps their objects, and waits until the revisions are deleted. It
// deletes the oldest revision of a chain first, so that the rest never falls back to an older
// revision.
func (r *releaser) release(ctx context.Context) error {
	list, err := r.api.List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err := fmt.Fprintln(r.out, "The cluster does not serve revisions: there is nothing to release")
		return err
	case err != nil:
		return fmt.Errorf("the revisions cannot be read, so nothing can be released. Their objects continue to run without "+
			"Penstock, and nothing in the cluster waits for revisions; to unregister anyway, leave out "+
			"--release-finalizers: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ClusterExtensionRevision) int {
		return cmp.Or(cmp.Compare(a.Labels[v1alpha1.ChainLabel], b.Labels[v1alpha1.ChainLabel]), cmp.Compare(a.Spec.Revision, b.Spec.Revision))
	})
	orphan := metav1.DeletePropagationOrphan
	for _, revision := range list.Items {
		err := r.api.Delete(ctx, revision.Name, metav1.DeleteOptions{PropagationPolicy: &orphan})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting revision %s: %w", revision.Name, err)
		}
	}
	left, err := r.awaitNone(ctx)
	if err != nil {
		return err
	}
	for _, revision := range left {
		if err := r.force(ctx, revision); err != nil {
			return fmt.Errorf("releasing revision %s: %w", revision.Name, err)
		}
		fmt.Fprintf(r.out, "clusterextensionrevision %s released without its controller: its objects keep Penstock's marks\n", revision.Name)
	}
	_, err = fmt.Fprintf(r.out, "%s released; all objects stay as they are\n", text.Count(len(list.Items), "revision"))
	return err
}

func (r *releaser) awaitNone(ctx context.Context) ([]v1alpha1.ClusterExtensionRevision, error) {
	var left []v1alpha1.ClusterExtensionRevision
	err := wait.PollUntilContextTimeout(ctx, releasePoll, r.timeout, true, func(ctx context.Context) (bool, error) {
		list, err := r.api.List(ctx, metav1.ListOptions{})
		if err != nil {
			// The server may answer again in time.
			return false, nil
		}
		left = list.Items
		return len(left) == 0, nil
	})
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return left, nil
}

// force removes Penstock's finalizer from a revision that is being deleted.
func (r *releaser) force(ctx context.Context, revision v1alpha1.ClusterExtensionRevision) error {
	finalizers := slices.DeleteFunc(slices.Clone(revision.Finalizers), func(name string) bool { return name == v1alpha1.TeardownFinalizer })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": finalizers, "resourceVersion": revision.ResourceVersion, "uid": revision.UID,
	}})
	if err != nil {
		return err
	}
	_, err = r.api.Patch(ctx, revision.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
