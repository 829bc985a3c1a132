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
				"Penstock goes phase by phase, and no phase begins before the one before it works.",
		},
		{
			title: "what would an upgrade change?", skip: withoutUpgrade, play: preview,
			why: "Release notes say what somebody remembered. A revision is content: put it there paused, read the difference, " +
				"computed from what is stored, and decide then.",
		},
		{
			title: "upgrade", skip: withoutUpgrade, play: upgrade,
			why: "What a new version no longer has stays behind in most clusters for ever. " +
				"Penstock knows what it wrote: the rest is pruned, and nothing else is touched.",
		},
		{
			title: "an upgrade that gets stuck", skip: withoutDeployment, play: stick,
			why: "A typing error in an image, at 3 a.m.: which of all the objects is it, and does the old version still serve?",
		},
		{
			title: "rollback", skip: withoutDeployment, play: rollback,
			why: "Going back is a revision like any other: the next one, with the content of the one that worked. " +
				"Nobody has to find the old manifests, and the history says who went back and why.",
		},
		{
			title: "what is different in the cluster?", skip: withoutDeployment, play: compareLive,
			why: "Before anything is written, one wants to know what the cluster has that the revision has not. " +
				"The API server is asked what a rollout would change, and says so without changing it.",
		},
		{
			title: "drift", skip: withoutDeployment, play: drift,
			why: "Somebody edits a Deployment by hand, and nobody knows until it hurts. " +
				"Penstock puts back what it owns, and says who had changed which field.",
		},
		{
			title: "an operator with other names in each version", skip: always, play: names,
			why: "OLM names roles by a hash, so every upgrade deletes dozens of objects, and an alarm that always rings is switched off. " +
				"Penstock counts what is lost, not what is replaced, and asks when a version lacks what it had.",
		},
		{
			title: "kill -9 in the middle of a rollout", skip: withoutUpgradeOrDeployment, play: crash,
			why: "Whatever rolls out software gets killed while it does. No workload may depend on it, and what it began it must finish.",
		},
		{
			title: "what Helm has installed", skip: always, play: adoptHelm,
			why: "Nearly everybody has their software installed already. Taking it over must restart nothing, and bring its history along; " +
				"and Helm's notes stay, so that there is a way back.",
		},
		{
			title: "a plan for what belongs to others", skip: always, play: draftPlan,
			why: "Tuning a cluster means to write what other operators own, and one line of it can reboot every node. " +
				"A ConfigurationPlan says beforehand what changes, what that disturbs, and whose fields are taken. Then it waits.",
		},
		{
			title: "approve, execute, wait", skip: always, play: executePlan,
			why: "An approval is of one plan, by its hash: whatever has changed meanwhile was not approved. " +
				"Items go one after the other, and the next one begins when the nodes of the one before are really through.",
		},
		{
			title: "somebody changes it back", skip: always, play: planDrift,
			why: "Fighting with another controller over a field helps nobody. Penstock says who changed what, and leaves it so " +
				"until somebody approves to put it back.",
		},
		{
			title: "undo", skip: always, play: undoPlan,
			why: "What a run has set was captured before it. Going back is a plan as well: computed, reviewed, approved.",
		},
		{
			title: "a profile of one's own", skip: always, play: ownProfile,
			why: "What one needs next is no profile that Penstock brings. Forty lines say what should be there; " +
				"what they may touch, when it happens and the way back are not left to their author.",
		},
		{
			title: "what could be installed?", skip: always, play: catalog,
			why: "A user who wants to know what a catalog offers, and what an upgrade to it would change, needs jq and a free afternoon. " +
				"Penstock lists packages, versions and upgrades with kubectl, and compares a version before anything is stored.",
		},
		{
			title: "a team installs a package", skip: always, play: teamInstall,
			why: "An installer with all rights lends them to everybody who may ask it. A ClusterExtension acts in the name of who wrote it, " +
				"and says which rights are missing.",
		},
		{
			title: "versions come, and one is stuck", skip: always, play: teamUpgrade,
			why: "An upgrade that nobody has read is a surprise, one that is stuck must not lock its owner out, and what was rolled back must not come again overnight.",
		},
		{
			title: "to Helm and back", skip: withoutGate, play: gate,
			why: "Who takes up another engine wants a way back that costs nothing. One flag gives all extensions to Helm, and without it they come back: " +
				"the objects are not touched.",
		},
		{
			title: "catalogs that follow the cluster", skip: always, play: followTemplates,
			why: "A catalog for another version of Kubernetes offers operators that do not work. Its image follows the cluster, or a field that somebody released, " +
				"and nobody reads by it what they cannot.",
		},
		{
			title: "a kind made of a chart", skip: always, play: chartKind,
			why: "Many operators do nothing but turn one resource into a Helm release, and their status is as old as their last run. " +
				"A ChartKind does it without an operator, and `kubectl get` says what is, at every moment.",
		},
		{
			title: "an upgrade that gains rights", skip: always, play: reviewedUpgrade,
			why: "A person who approves everything reads nothing, and one who approves nothing sleeps badly. An upgrade that changes nothing of note comes by itself, in its window; " +
				"what gains rights, deletes or narrows waits for somebody, and says why.",
		},
		{
			title: "rolled back by a metric", skip: withoutOutside, play: judgedByMetrics,
			why: "Everything is ready, and users see errors. A MetricCheck asks the metric service before a version counts as good: " +
				"a No rolls it back, and no answer is no Yes.",
		},
		{
			title: "silence", skip: always, play: silence,
			why: "Controllers that look at everything again and again wear the API server down. " +
				"While nothing happens, Penstock keeps its lease and answers who asks it, and that is all.",
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
