package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

const (
	// savedPlanKind and savedPlanVersion identify the file type.
	savedPlanKind    = "PenstockDeployPlan"
	savedPlanVersion = 1
)

// savedPlan is a reviewed deploy, for a later command that does exactly the same. It has no content
// of manifests, only digests. Digests of Secrets are keyed with the store's key, so that a reader
// cannot guess a value from them.
type savedPlan struct {
	Kind          string `json:"kind"`
	FormatVersion int    `json:"formatVersion"`
	// Server identifies the cluster. Extension and Revision identify the revision to create. From
	// is the revision to compare with, empty for none, and FromUID its uid.
	Server    string `json:"server"`
	Extension string `json:"extension"`
	Revision  string `json:"revision"`
	From      string `json:"from,omitempty"`
	FromUID   string `json:"fromUID,omitempty"`
	// Version and Cause are annotations of the revision.
	Version string `json:"version,omitempty"`
	Cause   string `json:"cause,omitempty"`
	// Content is a digest of the spec with the digests of all objects. Changes is a digest of the
	// diff with its notes.
	Content string `json:"content"`
	Changes string `json:"changes"`
	// Summary has the counts of the shown diff.
	Summary v1alpha1.DiffSummary `json:"summary"`
}

// plan returns the effects of the deploy at this moment.
func (d *deployment) plan(ctx context.Context, rendered *v1alpha1.ClusterExtensionRevision, shown *v1alpha1.RevisionDiff) (*savedPlan, error) {
	config, err := d.Config()
	if err != nil {
		return nil, err
	}
	api := d.cluster.OlmV1alpha1().ClusterExtensionRevisions()
	// The server replaces all bodies with digests, and checks the user's rights.
	would, err := api.Create(ctx, rendered.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, fmt.Errorf("asking for the digests of %s: %w", rendered.Name, err)
	}
	made := &savedPlan{
		Kind: savedPlanKind, FormatVersion: savedPlanVersion, Server: config.Host, Extension: d.name, Revision: rendered.Name, From: shown.From,
		Version: d.version, Cause: d.cause, Summary: shown.Summary,
	}
	if shown.From != "" {
		from, err := api.Get(ctx, shown.From, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", shown.From, err)
		}
		made.FromUID = string(from.UID)
	}
	if made.Content, err = digestOf(would.Spec); err != nil {
		return nil, err
	}
	made.Changes, err = digestOf([]any{shown.Changes, shown.Notes, shown.Truncated})
	return made, err
}

func digestOf(value any) (string, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding a plan: %w", err)
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func (p *savedPlan) differences(now *savedPlan) []string {
	var all []string
	for _, one := range []struct{ what, was, is string }{
		{"the cluster", p.Server, now.Server}, {"the extension", p.Extension, now.Extension}, {"the revision to make", p.Revision, now.Revision},
		{"the revision that it is compared with", p.From, now.From},
	} {
		if one.was != one.is {
			all = append(all, fmt.Sprintf("%s was %s and is %s", one.what, orNothing(one.was), orNothing(one.is)))
		}
	}
	if p.From == now.From && p.FromUID != now.FromUID {
		all = append(all, p.From+" was deleted and made anew")
	}
	if p.Content != now.Content {
		all = append(all, "the manifests are not the same")
	}
	if len(all) == 0 && p.Changes != now.Changes {
		all = append(all, "the changes are not the same")
	}
	return all
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// savePlan writes the shown plan to a file that only its owner can read.
func (d *deployment) savePlan(ctx context.Context, rendered *v1alpha1.ClusterExtensionRevision, shown *v1alpha1.RevisionDiff) error {
	if shown.Summary.Withheld > 0 || shown.Truncated != nil {
		return outcome.Errorf(outcome.Unknown, "the plan is not saved: not all changes are shown, so nobody can have read them")
	}
	made, err := d.plan(ctx, rendered, shown)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding a plan: %w", err)
	}
	// A temporary file has mode 0600, whatever mode the replaced file has.
	file, err := os.CreateTemp(filepath.Dir(d.savePlanFile), "."+filepath.Base(d.savePlanFile)+"-*")
	if err != nil {
		return fmt.Errorf("saving the plan: %w", err)
	}
	_, err = file.Write(append(raw, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), d.savePlanFile)
	}
	if err != nil {
		return fmt.Errorf("saving the plan: %w", errors.Join(err, os.Remove(file.Name())))
	}
	d.Err.Para(screen.Green, screen.Good, fmt.Sprintf("the plan is saved; the same command with --plan %s in place of --save-plan rolls out exactly this", d.savePlanFile))
	return nil
}

func (d *deployment) loadPlan() (*savedPlan, error) {
	raw, err := os.ReadFile(d.planFile)
	if err != nil {
		return nil, outcome.Errorf(outcome.Unknown, "--plan: %w", err)
	}
	read := &savedPlan{}
	switch err := json.Unmarshal(raw, read); {
	case err != nil:
		return nil, outcome.Errorf(outcome.Unknown, "--plan %s: %w", d.planFile, err)
	case read.Kind != savedPlanKind:
		return nil, outcome.Errorf(outcome.Unknown, "--plan %s: kind is %q, want %q, as --save-plan writes it", d.planFile, read.Kind, savedPlanKind)
	case read.FormatVersion != savedPlanVersion:
		return nil, outcome.Errorf(outcome.Unknown, "--plan %s: formatVersion is %d, and this program knows %d: save the plan again", d.planFile, read.FormatVersion, savedPlanVersion)
	}
	for _, flag := range []struct {
		name, was string
		given     *string
	}{{"--version", read.Version, &d.version}, {"--cause", read.Cause, &d.cause}} {
		if *flag.given != "" && *flag.given != flag.was {
			return nil, outcome.Errorf(outcome.Unknown, "%s %q is not that of the plan, which has %q", flag.name, *flag.given, flag.was)
		}
		*flag.given = flag.was
	}
	return read, nil
}

// samePlan refuses a rollout that differs from the saved plan.
func (d *deployment) samePlan(ctx context.Context, saved *savedPlan, rendered *v1alpha1.ClusterExtensionRevision, shown *v1alpha1.RevisionDiff) error {
	now, err := d.plan(ctx, rendered, shown)
	if err != nil {
		return err
	}
	if different := saved.differences(now); len(different) > 0 {
		return outcome.Errorf(outcome.Conflict, "nothing was rolled out, because something has changed since the plan was saved: %s. Save a new plan, and review it", strings.Join(different, "; "))
	}
	return nil
}
