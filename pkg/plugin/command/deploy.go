package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/rendering"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

type deployOptions struct {
	name, version, cause string
	yes, dryRun, stat    bool
	unfold               bool
	acceptance           review.Acceptance
	// savePlanFile is the file to which the shown plan is saved. planFile is an earlier saved plan.
	savePlanFile, planFile string
	timeout                time.Duration
	output                 session.Format
}

func newDeploy(s *session.Session) *cobra.Command {
	var options deployOptions
	command := &cobra.Command{
		Use:   "deploy [DIRECTORY|FILE|-] --name EXTENSION [-- ARGUMENTS OF render]",
		Short: "Install or upgrade: read what changes, then roll it out",
		Long: "Show what the manifests would change as the next revision of the extension, and ask. If you agree, the revision is\n" +
			"stored and rolled out, and the command shows its progress until it has succeeded or says why it has not. Otherwise\n" +
			"nothing is stored. Only what was shown is rolled out: a revision never changes, and when the shown changes are out of\n" +
			"date, because the extension changed meanwhile, nothing is rolled out (exit code 3).\n\n" +
			"--yes refuses critical notes unless --accept names them. With --save-plan the command only writes what it has shown to\n" +
			"a file. The same command with --plan rolls out exactly that without asking, and nothing when anything has changed\n" +
			"meanwhile (exit code 3). The file has digests and no content, so the manifests are needed again.\n\n" +
			"kubectl penstock render renders charts, bundles and other layouts, and everything when there are arguments\n" +
			"after --. DIRECTORY is not needed when these arguments say what to render, as --catalog with --package does.",
		Example: "  # Install, and later upgrade\n  kubectl penstock deploy ./manifests --name lighthouse --version v1.0.0\n" +
			"  # In a pipeline: what would change (exit 1 when something does), then do it\n" +
			"  kubectl penstock deploy ./manifests --name lighthouse --dry-run\n" +
			"  kubectl penstock deploy ./manifests --name lighthouse --yes --timeout 5m\n" +
			"  # In a pipeline with an approval between: review, then roll out exactly that\n" +
			"  kubectl penstock deploy ./manifests --name lighthouse --save-plan lighthouse.plan\n" +
			"  kubectl penstock deploy ./manifests --name lighthouse --plan lighthouse.plan\n" +
			"  # What would change, for the comment of a review\n" +
			"  kubectl penstock deploy ./manifests --name lighthouse --dry-run -o markdown",
		Args: func(command *cobra.Command, args []string) error {
			if before := positional(command, args); len(args) == 0 || before > 1 {
				return errors.New("want one directory, file or -, or the arguments of render after --, or both")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			d := &deployment{Session: s, deployOptions: options}
			if err := d.check(); err != nil {
				return err
			}
			var err error
			if d.cluster, err = s.Connect(); err != nil {
				return err
			}
			before := positional(command, args)
			return d.run(command.Context(), strings.Join(args[:before], ""), args[before:])
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.name, "name", "", "Name of the extension. Required.")
	flags.StringVar(&options.version, "version", "", "Version of the extension, for status and history.")
	flags.StringVar(&options.cause, "cause", "", "Why, for the history.")
	flags.BoolVar(&options.yes, "yes", false, "Do not ask.")
	flags.BoolVar(&options.dryRun, "dry-run", false, "Only show what changes, and store nothing. Exit code as for diff.")
	options.acceptance.AddFlags(flags, true)
	flags.StringVar(&options.savePlanFile, "save-plan", "", "Only show what changes, and write the plan to this file, with mode 0600.")
	flags.StringVar(&options.planFile, "plan", "", "Roll out exactly what --save-plan has written to this file, without asking.")
	flags.BoolVar(&options.stat, "stat", false, "Show the diff without the lines.")
	addUnfold(flags, &options.unfold)
	flags.DurationVar(&options.timeout, "timeout", review.Patience, "Stop following after this time, with exit code 124; the rollout continues. 0 is no limit.")
	options.output.AddWithMarkdown(flags)
	return command
}

func positional(command *cobra.Command, args []string) int {
	if n := command.ArgsLenAtDash(); n >= 0 {
		return n
	}
	return len(args)
}

type deployment struct {
	*session.Session
	deployOptions
	cluster *session.Cluster
}

// check validates the flags before any question or write.
func (d *deployment) check() error {
	if err := d.checkOutput(); err != nil {
		return err
	}
	problems := validation.IsDNS1123Subdomain(d.name)
	switch {
	case d.name == "":
		return outcome.Errorf(outcome.Unknown, "--name is required: the name of the extension")
	case len(problems) > 0:
		return outcome.Errorf(outcome.Unknown, "--name %q: %s", d.name, problems[0])
	case len(d.name) > v1alpha1.MaxExtensionNameLength:
		return outcome.Errorf(outcome.Unknown, "--name %q: has %d characters, at most %d are allowed", d.name, len(d.name), v1alpha1.MaxExtensionNameLength)
	}
	if err := d.checkPlan(); err != nil {
		return err
	}
	return d.acceptance.Check(d.yes, d.dryRun)
}

// checkPlan refuses flags that repeat or contradict a saved plan.
func (d *deployment) checkPlan() error {
	file := "--plan"
	if d.planFile == "" {
		file = "--save-plan"
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"--save-plan", d.planFile != "" && d.savePlanFile != ""}, {"--yes", d.yes}, {"--dry-run", d.planFile != "" && d.dryRun},
	} {
		if flag.given && (d.planFile != "" || d.savePlanFile != "") {
			return outcome.Errorf(outcome.Unknown, "%s and %s exclude each other: a saved plan has all settings", file, flag.name)
		}
	}
	return nil
}

// checkOutput refuses Markdown for a revision: only a diff can be Markdown.
func (d *deployment) checkOutput() error {
	if d.output == session.Markdown && !d.dryRun && d.savePlanFile == "" {
		return outcome.Errorf(outcome.Unknown, "-o markdown shows what changes: it needs --dry-run")
	}
	return nil
}

// run shows the changes of a revision, stores it when the user agrees, and rolls it out.
func (d *deployment) run(ctx context.Context, from string, arguments []string) error {
	saving := d.savePlanFile != ""
	var saved *savedPlan
	if d.planFile != "" {
		var err error
		if saved, err = d.loadPlan(); err != nil {
			return err
		}
	}
	// 1. Render the revision, with the number after the highest number so far.
	number, err := nextNumber(ctx, d.cluster, d.name)
	if err != nil {
		return err
	}
	rendered, err := rendering.Input{
		From: from, Stdin: d.Stdin, Arguments: arguments, Cluster: d.ClusterArguments(), Program: rendering.Process(d.Executable), Extension: d.name, Number: number,
		Warn: func(warning string) { d.Err.Para(screen.Yellow, screen.Notice, warning) },
	}.Revision(ctx)
	if err != nil {
		return err
	}
	if !d.yes && !d.dryRun && !saving && saved == nil && !d.Person() {
		return outcome.Errorf(outcome.Unknown, "there is no terminal to ask on: --yes rolls out without asking, --dry-run only shows what changes")
	}
	d.annotate(rendered)
	// 2. Show the changes. Nothing is stored for that.
	shown, err := d.cluster.OlmV1alpha1().ClusterExtensionRevisions().Propose(ctx, rendered.Name, rendered, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking what %s would change: %w", rendered.Name, err)
	}
	if saved != nil {
		if err := d.samePlan(ctx, saved, rendered, shown); err != nil {
			return err
		}
	}
	same, err := d.isUnchanged(ctx, shown)
	if err != nil || same && !saving {
		return err
	}
	if !same {
		if err := d.show(ctx, rendered, shown); err != nil || d.dryRun && !saving {
			return cmp.Or(err, d.acceptance.Verdict(shown))
		}
	}
	switch {
	case saving:
		return cmp.Or(d.savePlan(ctx, rendered, shown), d.acceptance.Failed(shown))
	case saved != nil: // a user has read exactly these changes
	case d.yes:
		if err := d.acceptance.Unread(shown); err != nil {
			d.Err.Para(screen.Dim, screen.Waiting, "nothing was stored or rolled out")
			return err
		}
	default:
		agreed, err := d.Confirm(ctx, review.Question("Roll out "+rendered.Name, shown))
		if err != nil || !agreed {
			d.Err.Para(screen.Dim, screen.Waiting, "nothing was stored or rolled out")
			return cmp.Or(err, outcome.Quiet(outcome.No))
		}
	}
	// 3. Store the revision, and roll it out.
	revision, err := d.store(ctx, rendered, shown)
	if err != nil {
		return err
	}
	return d.follow(ctx, revision.Name)
}

// store stores a paused revision, checks that it makes exactly the shown changes, and resumes it.
// Otherwise it deletes the revision.
func (d *deployment) store(ctx context.Context, rendered *v1alpha1.ClusterExtensionRevision, shown *v1alpha1.RevisionDiff) (*v1alpha1.ClusterExtensionRevision, error) {
	revision, err := d.cluster.OlmV1alpha1().ClusterExtensionRevisions().Create(ctx, rendered, metav1.CreateOptions{})
	if err != nil {
		if now, again := nextNumber(ctx, d.cluster, d.name); again == nil && now > rendered.Spec.Revision {
			return nil, outcome.Errorf(outcome.Conflict, "%s was created meanwhile: run the command again", olm.RevisionName(d.name, now-1))
		}
		return nil, fmt.Errorf("creating %s: %w", rendered.Name, err)
	}
	stored, _, err := review.Proposal(ctx, d.cluster, d.name, revision)
	if err == nil && !sameChanges(shown, stored) {
		err = outcome.Errorf(outcome.Conflict, "%s would no longer change what was shown: run the command again", revision.Name)
	}
	if err != nil {
		return nil, d.withdraw(ctx, revision, err)
	}
	digest := stored.Summary.RemovedDigest
	if d.yes {
		digest = "" // no user has read it
	}
	if _, err := activate(ctx, d.cluster, revision, digest); err != nil {
		return nil, d.withdraw(ctx, revision, err)
	}
	return revision, nil
}

func (d *deployment) annotate(revision *v1alpha1.ClusterExtensionRevision) {
	for key, value := range map[string]string{v1alpha1.VersionAnnotation: d.version, v1alpha1.ChangeCauseAnnotation: d.cause} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&revision.ObjectMeta, key, value)
		}
	}
}

// withdraw deletes a stored revision that is not rolled out, and returns the reason.
func (d *deployment) withdraw(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision, why error) error {
	ctx, cancel := session.Cleanup(ctx)
	defer cancel()
	err := d.cluster.OlmV1alpha1().ClusterExtensionRevisions().Delete(ctx, revision.Name, *metav1.NewPreconditionDeleteOptions(string(revision.UID)))
	if err != nil && !apierrors.IsNotFound(err) {
		return errors.Join(why, fmt.Errorf("%s is stored, paused, and could not be deleted: kubectl delete cer %s: %w", revision.Name, revision.Name, err))
	}
	d.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("nothing was rolled out: %s was deleted again", revision.Name))
	return why
}

// activate resumes a paused revision, unless it has changed since it was read. digest acknowledges
// the deletions that the user read, and may be empty.
func activate(ctx context.Context, cluster *session.Cluster, revision *v1alpha1.ClusterExtensionRevision, digest string) (*v1alpha1.ClusterExtensionRevision, error) {
	annotations := map[string]any{}
	if digest != "" {
		annotations[v1alpha1.AcknowledgeDeletionAnnotation] = digest
	}
	return review.SetState(ctx, cluster, revision, v1alpha1.LifecycleStateActive, annotations)
}

func (d *deployment) follow(ctx context.Context, name string) error {
	following, cancel := session.Within(ctx, d.timeout)
	defer cancel()
	err := review.Follow(following, d.Session, d.cluster, d.Err, d.name, name)
	switch outcome.Of(err) {
	case outcome.TimedOut, outcome.Interrupted:
		back := ""
		if name != olm.RevisionName(d.name, 1) {
			back = ", kubectl penstock rollback " + d.name + " goes back"
		}
		d.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("%[1]s continues by itself. kubectl penstock status %[1]s -w follows it, kubectl penstock pause %[1]s stops it%[2]s", name, back))
	}
	if err == nil && d.output != "" {
		revision, err := d.cluster.OlmV1alpha1().ClusterExtensionRevisions().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		return d.PrintObject(d.output, revision)
	}
	return err
}
