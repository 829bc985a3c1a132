// Package fleet has the commands for ClusterExtensionSets and their rollouts. They show a change to
// many clusters, and decide about exactly the shown change.
package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/text"
)

// New returns the command fleet with its subcommands.
func New(s *session.Session) *cobra.Command {
	command := &cobra.Command{
		Use:   "fleet",
		Short: "Review, approve and follow one change to many clusters",
		Long: "A ClusterExtensionSet installs one ClusterExtension on each of many clusters. Each change is a rollout, which a person approves.\n" +
			"NAME is a rollout, or a set, for its newest rollout. If a rollout and a set have the name, type rollout/NAME or set/NAME.",
		Example: "  kubectl penstock fleet status argocd",
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newStatus(s), newDiff(s), newApprove(s),
		newDecision(s, "halt", "Begin no further cluster", ""),
		newDecision(s, "resume", "End a halt, and release clusters that the set no longer selects", ""),
		newDecision(s, "retry", "Try failed clusters again", "CLUSTER…"),
		newDecision(s, "skip", "Skip clusters that failed or have not begun", "CLUSTER…"))
	return command
}

// find reads a rollout by its name, or the newest rollout of a set. If both have the name, it needs
// the kind before it: rollout/NAME or set/NAME.
func find(ctx context.Context, cluster *session.Cluster, asked string) (*v1alpha1.ClusterExtensionRollout, error) {
	kind, name, typed := strings.Cut(asked, "/")
	if !typed {
		kind, name = "", asked
	}
	if typed && kind != "rollout" && kind != "set" {
		return nil, outcome.Errorf(outcome.Unknown, "%s must be NAME, rollout/NAME or set/NAME", asked)
	}
	rollouts := cluster.OlmV1alpha1().ClusterExtensionRollouts()
	var named *v1alpha1.ClusterExtensionRollout
	if kind != "set" {
		found, err := rollouts.Get(ctx, name, metav1.GetOptions{})
		if kind == "rollout" || err != nil && !session.NotFound(err) {
			return found, err
		}
		if err == nil {
			named = found
		}
	}
	listed, err := rollouts.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.SetLabel + "=" + name})
	switch {
	case err != nil && named != nil && apierrors.IsForbidden(err):
		return named, nil
	case err != nil:
		return nil, fmt.Errorf("listing the rollouts of ClusterExtensionSet %s: %w", name, err)
	case named != nil && len(listed.Items) > 0:
		return nil, outcome.Errorf(outcome.Unknown, "%s is a rollout of ClusterExtensionSet %s, and a ClusterExtensionSet: name rollout/%s or set/%[1]s", name, named.Spec.Set.Name, name)
	case named != nil:
		return named, nil
	case len(listed.Items) == 0:
		return nil, outcome.Errorf(outcome.Unknown, "%s is neither a rollout nor a ClusterExtensionSet with one: kubectl get clusterextensionrollouts lists the rollouts", name)
	}
	newest := slices.MaxFunc(listed.Items, func(a, b v1alpha1.ClusterExtensionRollout) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return &newest, nil
}

func names(s *session.Session) cobra.CompletionFunc {
	return s.Complete(func(ctx context.Context, cluster *session.Cluster) ([]string, error) {
		listed, err := cluster.OlmV1alpha1().ClusterExtensionRollouts().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var names []string
		for i := range listed.Items {
			for _, name := range []string{listed.Items[i].Name, listed.Items[i].Spec.Set.Name} {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		return names, nil
	})
}

func newStatus(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:               "status NAME",
		Short:             "Show how far a change to many clusters is, and for whom it waits",
		Long:              "Show the rollout of this name, or the newest rollout of the ClusterExtensionSet of this name.",
		Example:           "  kubectl penstock fleet status argocd",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: names(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			rollout, err := find(command.Context(), cluster, args[0])
			if err != nil {
				return err
			}
			if output != "" {
				return s.PrintObject(output, rollout)
			}
			show(s, rollout)
			return nil
		},
	}
	output.Add(command.Flags())
	return command
}

// show prints a rollout: its phase, its waves and clusters, and the users that it waits for.
// Clusters that have the content already are only counted.
func show(s *session.Session, rollout *v1alpha1.ClusterExtensionRollout) {
	s.Out.Printf("%s\n", s.Out.Paint(screen.Bold, fmt.Sprintf("%s of set %s: %s", rollout.Name, rollout.Spec.Set.Name, cmp.Or(rollout.Status.Phase, "Pending"))))
	at := map[string]v1alpha1.RolloutClusterStatus{}
	for _, one := range rollout.Status.Clusters {
		at[one.Name] = one
	}
	table := screen.Table{Header: []string{"WAVE", "CLUSTER", "STATE", "SINCE", "ATTEMPT", "REASON"}}
	for _, wave := range rollout.Spec.Waves {
		present := 0
		for _, target := range rollout.Spec.Clusters {
			if target.Wave != wave.Name {
				continue
			}
			if at[target.Name].State == "Present" {
				present++
				continue
			}
			one, style, since, attempt := at[target.Name], screen.Plain, "", ""
			switch one.State {
			case "Succeeded":
				style = screen.Green
			case "Failed", "RolledBack", "Unknown":
				style = screen.Red
			case "":
				one.State = "Pending"
			}
			if !one.Since.IsZero() {
				since, attempt = duration.HumanDuration(s.Now().Sub(one.Since.Time)), fmt.Sprint(one.Attempt)
			}
			table.Rows = append(table.Rows, []screen.Cell{{Text: wave.Name}, {Text: target.Name}, {Text: one.State, Style: style}, {Text: since}, {Text: attempt}, {Text: one.Reason}})
		}
		if present > 0 {
			table.Rows = append(table.Rows, []screen.Cell{{Text: wave.Name}, {Text: text.Count(present, "cluster")}, {Text: "Present", Style: screen.Green}, {}, {}, {}})
		}
	}
	s.Out.Table(table)
	showWindows(s, rollout)
	for _, approval := range rollout.Status.Approvals {
		what := "the rollout"
		if approval.Wave != "" {
			what = "wave " + approval.Wave
		}
		s.Out.Para(screen.Dim, screen.Good, fmt.Sprintf("%s was approved by %s at %s", what, approval.User, approval.Time.UTC().Format("2006-01-02 15:04Z")))
	}
	for _, decision := range rollout.Status.Decisions {
		line := decision.Verb
		if decision.Count > 0 {
			line += " " + strings.Join(decision.Clusters, ", ")
		}
		if more := int(decision.Count) - len(decision.Clusters); more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		line += fmt.Sprintf(" by %s at %s", decision.User, decision.Time.UTC().Format("2006-01-02 15:04Z"))
		if decision.Comment != "" {
			line += ": " + decision.Comment
		}
		s.Out.Para(screen.Dim, screen.Notice, line)
	}
	if rollout.Status.Message != "" {
		s.Out.Para(screen.Yellow, screen.Waiting, rollout.Status.Message)
	}
}

func showWindows(s *session.Session, rollout *v1alpha1.ClusterExtensionRollout) {
	for _, wave := range rollout.Spec.Waves {
		if of := wave.Window; of != nil {
			s.Out.Para(screen.Dim, screen.Notice, fmt.Sprintf("clusters of wave %s begin only in its window, %s in %s for %s", wave.Name, of.Schedule, of.TimeZone, of.Duration.Duration))
		}
	}
}

func newDiff(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:   "diff NAME",
		Short: "Show what each group of clusters would see, the largest group first",
		Long: "Clusters that see the same change are one group, which is shown once: for the first of its clusters. The content of\n" +
			"Secrets is never shown.",
		Example:           "  kubectl penstock fleet diff argocd",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: names(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			rollout, err := find(command.Context(), cluster, args[0])
			if err != nil {
				return err
			}
			if output != "" {
				return s.PrintObject(output, rollout)
			}
			return showGroups(s, rollout)
		},
	}
	output.Add(command.Flags())
	return command
}

func showGroups(s *session.Session, rollout *v1alpha1.ClusterExtensionRollout) error {
	for i, group := range rollout.Spec.Groups {
		if i > 0 {
			s.Out.Printf("\n")
		}
		from := cmp.Or(group.From, "nothing")
		s.Out.Printf("%s\n", s.Out.Paint(screen.Bold, fmt.Sprintf("%s, %s → %s: %s", text.Count(len(group.Clusters), "cluster"), from, group.To, session.Enumerate(group.Clusters))))
		diff := &v1alpha1.RevisionDiff{}
		if group.Diff == nil {
			continue
		}
		if err := json.Unmarshal(group.Diff.Raw, diff); err != nil {
			return fmt.Errorf("reading the diff of %s: %w", rollout.Name, err)
		}
		changes.Print(s.Out, diff, changes.View{Lines: true})
	}
	showWindows(s, rollout)
	return nil
}

func newApprove(s *session.Session) *cobra.Command {
	var digest, comment string
	yes := false
	command := &cobra.Command{
		Use:   "approve NAME",
		Short: "Show a change to many clusters, ask, and approve exactly what was shown",
		Long: "Show the rollout, or the wave that waits, ask, and approve it by its digest: when it has changed since it was shown,\n" +
			"nothing is approved (exit code 3). Without a terminal --digest says what was reviewed. You need the right to use each\n" +
			"of the clusters, and must not be the author of the ClusterExtensionSet.",
		Example:           "  kubectl penstock fleet approve argocd --comment CHG-4711",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: names(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			rollout, err := find(command.Context(), cluster, args[0])
			if err != nil {
				return err
			}
			return approve(command.Context(), s, cluster, rollout, approval{digest, comment, yes})
		},
	}
	command.Flags().StringVar(&digest, "digest", "", "Approve the rollout or wave of this digest and no other. Required without a terminal, and with --yes.")
	command.Flags().StringVar(&comment, "comment", "", "Why; the rollout keeps it.")
	command.Flags().BoolVar(&yes, "yes", false, "Do not ask.")
	return command
}

type approval struct {
	digest, comment string
	yes             bool
}

func approve(ctx context.Context, s *session.Session, cluster *session.Cluster, rollout *v1alpha1.ClusterExtensionRollout, asked approval) error {
	shown := rollout.Status.Digest
	switch {
	case shown == "":
		return outcome.Errorf(outcome.No, "rollout %s is %s: it does not wait for an approval", rollout.Name, rollout.Status.Phase)
	case asked.digest == "" && (asked.yes || !s.Person()):
		return outcome.Errorf(outcome.Unknown, "--digest is required when nobody is asked: %s is what kubectl penstock fleet diff %s shows now", shown, rollout.Name)
	case asked.digest != "" && asked.digest != shown:
		return outcome.Errorf(outcome.Conflict, "rollout %s has the digest %s now, not %s: read it again", rollout.Name, shown, asked.digest)
	}
	what := "rollout " + rollout.Name
	if rollout.Status.Wave != "" {
		what = "wave " + rollout.Status.Wave + " of " + what
		show(s, rollout)
	} else if err := showGroups(s, rollout); err != nil {
		return err
	}
	request := &v1alpha1.RolloutRequest{Spec: v1alpha1.RolloutRequestSpec{Digest: shown, Comment: asked.comment}}
	api := cluster.OlmV1alpha1().ClusterExtensionRollouts()
	// The server checks first: no user should agree to a change that is refused anyway.
	if _, err := api.Approve(ctx, rollout.Name, request, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return fmt.Errorf("%s cannot be approved: %w", what, err)
	}
	if !asked.yes && s.Person() {
		changing := 0
		for _, group := range rollout.Spec.Groups {
			changing += len(group.Clusters)
		}
		agreed, err := s.Confirm(ctx, fmt.Sprintf("Approve %s for %s?", what, text.Count(changing, "cluster")))
		if err != nil {
			return err
		}
		if !agreed {
			s.Err.Para(screen.Dim, screen.Waiting, what+" waits for an approval as before")
			return outcome.Quiet(outcome.No)
		}
	}
	if _, err := api.Approve(ctx, rollout.Name, request, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("approving %s: %w", what, err)
	}
	s.Err.Para(screen.Green, screen.Good, what+" is approved; kubectl penstock fleet status "+rollout.Name+" shows how far it is")
	return nil
}

// agreeToLeave shows the clusters that leave when a rollout is resumed, and asks.
func agreeToLeave(ctx context.Context, s *session.Session, rollout *v1alpha1.ClusterExtensionRollout) error {
	leaving := rollout.Status.Leaving
	if len(leaving) == 0 {
		return nil
	}
	if !s.Person() {
		return outcome.Errorf(outcome.Unknown, "%s would leave rollout %s: %s. --digest is required when nobody is asked: status.troubles is %s now",
			text.Count(len(leaving), "cluster"), rollout.Name, session.Enumerate(leaving), rollout.Status.Troubles)
	}
	show(s, rollout)
	agreed, err := s.Confirm(ctx, fmt.Sprintf("Let %s leave: %s?", text.Count(len(leaving), "cluster"), session.Enumerate(leaving)))
	if err == nil && !agreed {
		return outcome.Quiet(outcome.No)
	}
	return err
}

// newDecision returns a command that decides about the rollout as the command reads it.
func newDecision(s *session.Session, verb, short, more string) *cobra.Command {
	var comment, digest string
	use, args := verb+" NAME", cobra.ExactArgs(1)
	if more != "" {
		use, args = use+" "+more, cobra.MinimumNArgs(2)
	}
	command := &cobra.Command{
		Use:               use,
		Short:             short,
		Long:              short + ". Clusters that are changing end as they would.",
		Example:           "  kubectl penstock fleet " + verb + " argocd" + map[bool]string{true: " edge-17"}[more != ""],
		Args:              args,
		ValidArgsFunction: names(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			ctx := command.Context()
			rollout, err := find(ctx, cluster, args[0])
			if err != nil {
				return err
			}
			if digest != "" && digest != rollout.Status.Troubles {
				return outcome.Errorf(outcome.Conflict, "the troubles of rollout %s have the digest %s now, not %s: read them again", rollout.Name, rollout.Status.Troubles, digest)
			}
			if verb == "resume" && digest == "" {
				if err := agreeToLeave(ctx, s, rollout); err != nil {
					return err
				}
			}
			request := &v1alpha1.RolloutRequest{Spec: v1alpha1.RolloutRequestSpec{Digest: rollout.Status.Troubles, Clusters: args[1:], Comment: comment}}
			api := cluster.OlmV1alpha1().ClusterExtensionRollouts()
			decide := map[string]func(context.Context, string, *v1alpha1.RolloutRequest, metav1.CreateOptions) (*v1alpha1.RolloutRequest, error){
				"halt": api.Halt, "resume": api.Resume, "retry": api.Retry, "skip": api.Skip,
			}[verb]
			if _, err := decide(ctx, rollout.Name, request, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("%s of rollout %s: %w", verb, rollout.Name, err)
			}
			s.Err.Para(screen.Green, screen.Good, fmt.Sprintf("%s of rollout %s is recorded; kubectl penstock fleet status %s shows the effect", verb, rollout.Name, rollout.Name))
			return nil
		},
	}
	command.Flags().StringVar(&comment, "comment", "", "Why; the rollout keeps it.")
	command.Flags().StringVar(&digest, "digest", "", "Decide only while status.troubles of the rollout is this digest.")
	return command
}
