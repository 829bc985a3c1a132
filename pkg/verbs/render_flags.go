package verbs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/source/release"
)

// nextRevision is the value of --revision that requests the next number from the server.
const nextRevision = "next"

type renderOptions struct {
	program             Program
	extension           string
	revision            string
	collisionProtection string
	version             string
	paused              bool
	deadlineMinutes     int32
	onFailure           string
	teardownPolicy      string
	target              string
	output              string
	layout              string
	release             release.Options
	bundle              bundleOptions
	chart               chartOptions
	catalog             catalogResolveOptions
	images              registryFlags
	installNamespace    string
	// from is the directory, the file, the image, or - for standard input.
	from string
	// number is the revision's number, from the flag or from the server.
	number int64
}

func (o *renderOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.extension, extensionFlag, "", "Name of the extension; the revision is named <extension>-<revision>.")
	flags.StringVar(&o.revision, "revision", "",
		"Number of the revision, 1 or more, larger than all earlier ones; or next: one more than the highest that the extension ever had, which the server knows.")
	flags.StringVar(&o.collisionProtection, "collision-protection", "",
		"Which existing objects may be taken over: none (Prevent), those without a controller (IfNoController), or all (None). The server's default is Prevent.")
	flags.StringVar(&o.version, "bundle-version", "",
		"Version of the extension, for the history; stored as an annotation of the revision. Default: the version of the bundle or chart.")
	flags.BoolVar(&o.paused, "paused", false,
		"Create the revision Paused: nothing is written until its lifecycleState is set to Active, so that its changes can be read first.")
	flags.Int32Var(&o.deadlineMinutes, "progress-deadline-minutes", 0, "Minutes that the rollout may take before status says Stalled; 0 is no deadline.")
	flags.StringVar(&o.onFailure, "on-failure", "",
		"Reaction when the deadline passes: None, or Rollback to the newest revision that has succeeded. The server's default is None.")
	flags.StringVar(&o.teardownPolicy, "teardown-policy", "", "Policy for the objects when the revision is deleted: Delete or Orphan. The server's default is Delete.")
	flags.StringVar(&o.target, "target", "", "Secret with the kubeconfig of the cluster to roll out into. Default: the cluster of the server's --target-kubeconfig, or the host.")
	flags.StringVar(&o.layout, "layout", plainLayout, "Layout of the directory: plain, or release for the manifests of an OpenShift release.")
	o.addReleaseFlags(flags)
	flags.StringVar(&o.installNamespace, installNamespaceFlag, "", "Namespace of the operator, or of the chart's release; it has to exist (--bundle, --chart).")
	o.bundle.add(flags)
	o.chart.add(flags)
	o.catalog.add(flags)
	o.images.add(flags)
	flags.StringVarP(&o.output, "output", "o", "yaml", "Format: yaml or json.")
	o.program.addCluster(flags)
	for _, name := range []string{"kubeconfig", "context"} {
		if flag := flags.Lookup(name); flag != nil {
			flag.Usage += " Used by --revision next, and by --chart without --kube-version."
		}
	}
}

// validate checks the flags. It reads the revision's number, unless the server must choose it.
func (o *renderOptions) validate() error {
	if problems := validation.IsDNS1123Subdomain(o.extension); len(problems) > 0 {
		return fmt.Errorf("--extension %q: %s", o.extension, strings.Join(problems, "; "))
	}
	if len(o.extension) > v1alpha1.MaxExtensionNameLength {
		return fmt.Errorf("--extension %q: has %d characters, at most %d are allowed", o.extension, len(o.extension), v1alpha1.MaxExtensionNameLength)
	}
	if o.revision != nextRevision {
		number, err := strconv.ParseInt(o.revision, 10, 64)
		if err != nil || number < 1 {
			return fmt.Errorf("--revision %s: must be a number, 1 or more, or next", o.revision)
		}
		o.number = number
	}
	if o.deadlineMinutes < 0 {
		return fmt.Errorf("--progress-deadline-minutes %d: must be 0 or more", o.deadlineMinutes)
	}
	if o.onFailure == string(v1alpha1.OnFailureRollback) && o.deadlineMinutes == 0 {
		return fmt.Errorf("--on-failure Rollback: needs --progress-deadline-minutes")
	}
	if problems := validation.IsDNS1123Subdomain(o.target); o.target != "" && len(problems) > 0 {
		return fmt.Errorf("--target %q: %s", o.target, strings.Join(problems, "; "))
	}
	return o.validateChoices()
}

func (o *renderOptions) validateChoices() error {
	for _, choice := range []struct {
		flag, value string
		allowed     []string
	}{
		{"collision-protection", o.collisionProtection, values(v1alpha1.CollisionProtectionPrevent, v1alpha1.CollisionProtectionIfNoController, v1alpha1.CollisionProtectionNone)},
		{"on-failure", o.onFailure, values(v1alpha1.OnFailureNone, v1alpha1.OnFailureRollback)},
		{"teardown-policy", o.teardownPolicy, values(v1alpha1.TeardownPolicyDelete, v1alpha1.TeardownPolicyOrphan)},
	} {
		if choice.value != "" && !slices.Contains(choice.allowed, choice.value) {
			last := len(choice.allowed) - 1
			return fmt.Errorf("--%s %q: want %s or %s", choice.flag, choice.value, strings.Join(choice.allowed[:last], ", "), choice.allowed[last])
		}
	}
	if o.output != "yaml" && o.output != "json" {
		return fmt.Errorf("--output %q: want yaml or json", o.output)
	}
	return nil
}

func values[T ~string](all ...T) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one)
	}
	return out
}

// askNext requests the number after the highest one from the server. The number is not reserved. If
// another user creates that revision first, the server refuses this one.
func (o *renderOptions) askNext(ctx context.Context) error {
	clients, _, err := o.program.Cluster.Client()
	if err != nil {
		return fmt.Errorf("--revision next: %w", err)
	}
	history, err := clients.OlmV1alpha1().RevisionHistories().Get(ctx, o.extension, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.number = 1
		return nil
	case err != nil:
		return fmt.Errorf("--revision next: reading the history of %s: %w", o.extension, err)
	}
	for _, row := range history.Revisions {
		o.number = max(o.number, row.Revision)
	}
	o.number++
	return nil
}

func (o *renderOptions) revisionName() string {
	return olm.RevisionName(o.extension, o.number)
}
