package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/storemove"
	"github.com/penstock-project/penstock/pkg/text"
)

// movePoll is the interval of the checks whether the installation serves.
const movePoll = time.Second

type moveOptions struct {
	client.Flags
	dataDir, namespace, kustomize string
	timeout                       time.Duration
}

// newMoveCommand returns the command that turns a trial into an installation.
func newMoveCommand() *cobra.Command {
	options := moveOptions{Flags: client.Flags{UserAgent: userAgent()}}
	command := &cobra.Command{
		Use:   "move --data-dir DIR [-k FOLDER]",
		Short: "Move the store of a stopped penstock serve into an installation in the cluster",
		Long: "Move the store of a penstock serve --register outside of the cluster into an installation in the cluster.\n" +
			"Stop the process first. Revisions, plans and their history stay as they are, and no object that Penstock\n" +
			"rolled out changes.\n\n" +
			"The command puts a snapshot of the store into Secrets of Penstock's namespace, removes the registration of the\n" +
			"process, applies the folder of manifests, and waits until the installation serves the store. Then it deletes\n" +
			"the Secrets. The installation must have the embedded store. Without -k, install Penstock while the command waits,\n" +
			"for instance with Helm. A command that failed can be run again.\n\n" +
			"The data directory stays as it is. The cluster refuses it from then on, so you can delete it.",
		Example: "  penstock move --data-dir ./data -k artifacts/deploy/embedded",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return move(command, options) },
	}
	flags := command.Flags()
	options.Add(flags)
	flags.StringVar(&options.dataDir, "data-dir", "", "Directory of the store. No penstock serve may use it.")
	flags.StringVarP(&options.kustomize, "kustomize", "k", "", "Folder of manifests to apply with kubectl, with the name of your image in it.")
	flags.StringVar(&options.namespace, "namespace", registration.DefaultNamespace, "Namespace of Penstock in the cluster.")
	flags.DurationVar(&options.timeout, "timeout", 5*time.Minute, "How long the installation may take to serve the store.")
	// The flag is defined above.
	_ = command.MarkFlagRequired("data-dir")
	return command
}

func move(command *cobra.Command, options moveOptions) error {
	config, err := options.Config()
	if err != nil {
		return err
	}
	clients, _, err := options.Client()
	if err != nil {
		return err
	}
	ctx, out := command.Context(), command.OutOrStdout()
	say := func(what string) { fmt.Fprintln(out, what) }
	m := storemove.Move{Config: config, Namespace: options.namespace, DataDir: options.dataDir, Report: say}
	if err := m.Begin(ctx); err != nil {
		return fmt.Errorf("moving the store: %w", err)
	}
	if options.kustomize == "" {
		say("Install Penstock in the cluster now; this command waits until the installation serves the store")
	} else if err := apply(command, options); err != nil {
		return err
	}
	served, err := awaitServed(ctx, clients, options.timeout)
	if err != nil {
		return fmt.Errorf("the store is in the cluster, and no installation serves it yet: kubectl get pods --namespace %s has the reason; "+
			"run the command again after the installation was repaired: %w", options.namespace, err)
	}
	if err := m.End(ctx); err != nil {
		return fmt.Errorf("the installation serves %s; run the command again to delete the Secrets: %w", served, err)
	}
	say("The installation serves " + served + "; the Secrets are deleted, and you can delete " + options.dataDir)
	return nil
}

func apply(command *cobra.Command, options moveOptions) error {
	args := append([]string{"apply", "--server-side", "-k", options.kustomize}, options.Arguments()...)
	// #nosec G204 -- the folder that its user names
	kubectl := exec.CommandContext(command.Context(), "kubectl", args...)
	kubectl.Stdout, kubectl.Stderr = command.OutOrStdout(), command.ErrOrStderr()
	if err := kubectl.Run(); err != nil {
		return fmt.Errorf("the store is in the cluster, and %s is not applied: apply it, then run the command again: kubectl apply: %w", options.kustomize, err)
	}
	return nil
}

// awaitServed waits until the installation serves its API, and returns the number of its objects.
func awaitServed(ctx context.Context, clients versioned.Interface, timeout time.Duration) (string, error) {
	var served string
	var last error
	err := wait.PollUntilContextTimeout(ctx, movePoll, timeout, true, func(ctx context.Context) (bool, error) {
		revisions, err := clients.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{})
		if err != nil {
			last = err
			return false, nil
		}
		plans, err := clients.HcoV1alpha1().ConfigurationPlans().List(ctx, metav1.ListOptions{})
		if err != nil {
			last = err
			return false, nil
		}
		served = fmt.Sprintf("%s and %s", text.Count(len(revisions.Items), "revision"), text.Count(len(plans.Items), "plan"))
		return true, nil
	})
	if err != nil && last != nil && ctx.Err() == nil {
		err = last
	}
	return served, err
}
