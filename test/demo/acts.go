package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/text"
	"github.com/penstock-project/penstock/test/framework/port"
)

type act struct {
	title string
	why   string
	// skip returns the reason why the act cannot run with these manifests, or nothing.
	skip func(*demo) string
	// play runs the act. A failure is a panic with a stop.
	play func(context.Context, *demo)
}

func acts() []act {
	return []act{
		{
			title: "install", skip: always, play: install,
			why: "`kubectl apply` sends everything at once and returns before anything works. " +
				"Penstock goes phase by phase: a phase begins when the objects of the earlier phase work.",
		},
		{
			title: "what would an upgrade change?", skip: withoutUpgrade, play: preview,
			why: "Release notes list only the changes that their author remembered. A revision has the whole content: create it paused, read the diff, " +
				"which the server computes from stored content, and then decide.",
		},
		{
			title: "upgrade", skip: withoutUpgrade, play: upgrade,
			why: "In most clusters, objects that a new version no longer contains stay forever. " +
				"Penstock knows the objects that it wrote: it deletes those that the new version lacks, and touches nothing else.",
		},
		{
			title: "an upgrade that gets stuck", skip: withoutDeployment, play: stick,
			why: "A typing error in an image, at 3 a.m.: which of all the objects is it, and does the old version still serve?",
		},
		{
			title: "rollback", skip: withoutDeployment, play: rollback,
			why: "A rollback is the next revision, with the content of an earlier revision that worked. " +
				"Nobody searches for old manifests, and the history names the user and the cause.",
		},
		{
			title: "what is different in the cluster?", skip: withoutDeployment, play: compareLive,
			why: "Before a rollout, an administrator wants to see the differences between the cluster and the revision. " +
				"The API server computes the changes of a rollout by dry-run, without a write.",
		},
		{
			title: "drift", skip: withoutDeployment, play: drift,
			why: "A user edits a Deployment by hand, and nobody knows until it fails. " +
				"Penstock restores the fields that it owns, and names the writer of each change.",
		},
		{
			title: "an operator with other names in each version", skip: always, play: names,
			why: "OLM names roles by a hash, so every upgrade deletes dozens of objects. An alarm that always rings is switched off. " +
				"Penstock counts lost objects, not replaced ones, and asks when a version lacks too many of them.",
		},
		{
			title: "kill -9 in the middle of a rollout", skip: withoutUpgradeOrDeployment, play: crash,
			why: "Every program can be killed during a rollout. No workload may depend on it, and the restarted program must finish the rollout.",
		},
		{
			title: "adopt a Helm release", skip: always, play: adoptHelm,
			why: "Most clusters already have their software. Adoption must restart no Pod, and must keep the history. " +
				"Helm's Secrets stay, so that the release can go back to Helm.",
		},
		{
			title: "a plan for objects of other operators", skip: always, play: draftPlan,
			why: "Tuning a cluster means to write objects of other operators, and one line can reboot every node. " +
				"A ConfigurationPlan lists the changes, the disruption and the fields taken from other managers. Then it waits.",
		},
		{
			title: "approve, execute, wait", skip: always, play: executePlan,
			why: "A user approves one plan by its hash: a changed plan needs another approval. " +
				"Items run one after the other. An item begins when the nodes of the earlier item have finished.",
		},
		{
			title: "another user changes it back", skip: always, play: planDrift,
			why: "Two controllers that fight over a field help nobody. Penstock names the change and its writer, and changes nothing " +
				"until a user approves a plan to restore it.",
		},
		{
			title: "undo", skip: always, play: undoPlan,
			why: "Penstock saved the earlier values before the run. To go back is a plan, too: computed, reviewed, approved.",
		},
		{
			title: "a profile of your own", skip: always, play: ownProfile,
			why: "The next change that an administrator needs is in no built-in profile. Forty lines describe the wanted objects. " +
				"Penstock decides the rest: which objects a profile can touch, when the plan runs, and how to undo it.",
		},
		{
			title: "what can be installed?", skip: always, play: catalog,
			why: "To see the packages of a catalog, and the changes of an upgrade, users need jq and a free afternoon. " +
				"Penstock lists packages, versions and upgrades with kubectl, and compares a version before anything is stored.",
		},
		{
			title: "a team installs a package", skip: always, play: teamInstall,
			why: "An installer with all rights lends them to every user who can ask it. A ClusterExtension acts in the name of its author, " +
				"and its status lists missing rights.",
		},
		{
			title: "new versions, and one gets stuck", skip: always, play: teamUpgrade,
			why: "An upgrade that nobody has read is a surprise. A stuck upgrade must not lock out its owner, and a version that was rolled back must not return overnight.",
		},
		{
			title: "to Helm and back", skip: withoutGate, play: gate,
			why: "Teams that try another engine want a cheap way back. One flag hands all extensions to Helm, and without it they come back: " +
				"no object changes.",
		},
		{
			title: "catalogs that follow the cluster", skip: always, play: followTemplates,
			why: "A catalog for another version of Kubernetes offers operators that do not work. An image template follows the version of the cluster, or a field that its author can read, " +
				"and shows nobody a value that they cannot read.",
		},
		{
			title: "a kind made of a chart", skip: always, play: chartKind,
			why: "Many operators only turn a custom resource into a Helm release, and their status is as old as their last run. " +
				"A ChartKind does it without an operator, and `kubectl get` always shows the present state.",
		},
		{
			title: "an upgrade that gains rights", skip: always, play: reviewedUpgrade,
			why: "A user who approves every upgrade reads none, and a user who must approve each upgrade sleeps badly. An upgrade without notable changes begins by itself, in its window. " +
				"An upgrade that gains rights, deletes data or narrows a schema waits for a person, with the reason.",
		},
		{
			title: "rolled back by a metric", skip: withoutOutside, play: judgedByMetrics,
			why: "Every Pod is ready, and users see errors. A MetricCheck queries the metric service before a version counts as good: " +
				"No rolls the version back, and a missing answer never counts as Yes.",
		},
		{
			title: "silence", skip: always, play: silence,
			why: "Controllers that read everything again and again wear the API server down. " +
				"While nothing happens, Penstock renews its lease, answers requests, and sends nothing else.",
		},
	}
}

func always(*demo) string { return "" }

func withoutUpgrade(d *demo) string {
	if d.To == "" {
		return "there is nothing to upgrade to: give TO, a second directory of manifests"
	}
	return ""
}

func withoutDeployment(d *demo) string {
	if len(deployments(d.wanted)) == 0 {
		return fmt.Sprintf("%s has no Deployment", d.current)
	}
	return ""
}

func withoutUpgradeOrDeployment(d *demo) string {
	if reason := withoutUpgrade(d); reason != "" {
		return reason
	}
	return withoutDeployment(d)
}

// withoutOutside returns the reason to skip the act: the machine has no address for the metric
// service to which Penstock would connect.
func withoutOutside(*demo) string {
	listener, err := port.Outside()
	if err != nil {
		return err.Error()
	}
	must(listener.Close())
	return ""
}

func (d *demo) latest() string {
	if d.To != "" {
		return d.To
	}
	return d.From
}

func (d *demo) next() string {
	d.number++
	return fmt.Sprintf("%s-%d", d.Name, d.number)
}

// show runs a command, prints it with its output, and stops the act if it fails. It omits the
// indented details of standard error.
func (d *demo) show(ctx context.Context, command string) string {
	d.command(d.shortened(command))
	out := get(d.shell.run(ctx, command))
	if out.ExitCode != 0 {
		panic(stop{&failure{claim: command, want: "exit status 0", got: fmt.Sprintf("exit status %d: %s%s", out.ExitCode, out.Stderr, out.Stdout)}})
	}
	for line := range strings.Lines(out.Stderr) {
		if !strings.HasPrefix(line, " ") {
			d.output(d.shortened(line))
		}
	}
	d.output(d.shortened(out.Stdout))
	return out.Stdout
}

// shortened makes file names in the demo's folder relative.
func (d *demo) shortened(text string) string {
	return strings.ReplaceAll(text, d.dir+string(filepath.Separator), "")
}

type rendering struct {
	dir string
	// edit is a filter after penstock render, or empty.
	edit   string
	paused bool
}

// apply renders manifests and applies them as the next revision. It returns the revision from the
// server.
func (d *demo) apply(ctx context.Context, r rendering) *olmv1alpha1.ClusterExtensionRevision {
	return d.take(ctx, d.send(ctx, r))
}

// send applies the next revision like apply, but returns only its name.
func (d *demo) send(ctx context.Context, r rendering) string {
	name := d.next()
	command := fmt.Sprintf("penstock render %s --extension %s --revision %d", quoted(r.dir), d.Name, d.number)
	if base := filepath.Base(r.dir); isVersion(base) {
		command += " --bundle-version " + quoted(base)
	}
	if r.paused {
		command += " --paused"
	}
	command += " |\n"
	if r.edit != "" {
		command += r.edit + " |\n"
	}
	d.show(ctx, command+"kubectl apply --server-side -f -")
	return name
}

func isVersion(name string) bool {
	_, err := version.ParseGeneric(name)
	return err == nil
}

// take reads a revision and records its objects.
func (d *demo) take(ctx context.Context, name string) *olmv1alpha1.ClusterExtensionRevision {
	revision, err := d.cluster.revision(ctx, name)
	if err != nil {
		panic(stop{fmt.Errorf("reading revision %s: %w", name, err)})
	}
	for _, ref := range refs(revision) {
		d.seen[ref.ID] = true
	}
	return revision
}

// follow prints a line for each phase that becomes available, until the rollout has reached its
// goal.
func (d *demo) follow(ctx context.Context, name, claim string, progress *progress, done func(*olmv1alpha1.ClusterExtensionRevision) bool) {
	last := &olmv1alpha1.ClusterExtensionRevision{}
	err := d.cluster.followRevision(ctx, name, func(revision *olmv1alpha1.ClusterExtensionRevision) bool {
		last = revision
		lines, waiting := progress.news(revision, time.Now())
		for _, line := range lines {
			d.ok("%s", line)
		}
		if waiting != "" {
			d.pass("%s", waiting)
		}
		return done(revision)
	})
	d.clear()
	if err != nil {
		panic(stop{&failure{claim: claim, want: "that within " + patience.String(), got: fmt.Sprintf("%v; %s", err, conditions(last))}})
	}
}

// rollOut follows a revision until it is rolled out, and reports the phases that change objects.
func (d *demo) rollOut(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) {
	progress := newProgress(time.Now(), compareRevisions(d.wanted, refs(revision)).written())
	d.follow(ctx, revision.Name, revision.Name+" is rolled out", progress, rolledOut)
	same := ""
	if n := progress.asBefore(revision); n > 0 {
		same = fmt.Sprintf("; %s as before", text.Count(n, "other phase"))
	}
	d.ok("%s is rolled out and available after %s%s", revision.Name, seconds(time.Since(progress.began)), same)
}

func (d *demo) untilArchived(ctx context.Context, name string) {
	last := &olmv1alpha1.ClusterExtensionRevision{}
	err := d.cluster.followRevision(ctx, name, func(revision *olmv1alpha1.ClusterExtensionRevision) bool {
		last = revision
		return archived(revision)
	})
	if err != nil {
		panic(stop{&failure{claim: name + " is archived", want: "that within " + patience.String(), got: fmt.Sprintf("%v; %s", err, conditions(last))}})
	}
}

// holds makes a revision the current one, and checks that every object of it is in the cluster with
// the revision's content.
func (d *demo) holds(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) {
	d.current, d.wanted = revision.Name, refs(revision)
	found := get(d.cluster.read(ctx, d.wanted))
	wrong := strangers(d.Name, d.wanted, found)
	d.claim(len(wrong) == 0,
		fmt.Sprintf("all %s exist with the content of %s, by digest", text.Count(len(d.wanted), "object"), d.current),
		"all of them", strings.Join(wrong, "; "))
	d.serves(ctx, "available")
}

// serves checks that every Deployment has available replicas.
func (d *demo) serves(ctx context.Context, claim string) {
	n := len(deployments(d.wanted))
	if n == 0 {
		return
	}
	down := get(d.cluster.unavailable(ctx, d.wanted))
	d.claim(len(down) == 0, text.Count(n, "Deployment")+" "+claim,
		"replicas available of each", "none of "+strings.Join(down, ", "))
}

// conditions formats the conditions of a revision in one line.
func conditions(revision *olmv1alpha1.ClusterExtensionRevision) string {
	if len(revision.Status.Conditions) == 0 {
		return "without status"
	}
	var parts []string
	for _, c := range revision.Status.Conditions {
		text := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Type == olmv1alpha1.ConditionProgressing || c.Type == olmv1alpha1.ConditionFailing && c.Status == metav1.ConditionTrue {
			text += fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
