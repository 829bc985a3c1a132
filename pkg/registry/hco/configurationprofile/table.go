package configurationprofile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

type table struct{}

var _ rest.TableConvertor = table{}

const (
	unknown = "Unknown"
	none    = "<none>"
)

func columns() []metav1.TableColumnDefinition {
	const wide = 1
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the profile, for spec.profile of a plan."},
		{Name: "State", Type: "string", Description: "Whether the cluster is as the profile says: Active, Inactive, Drifted or Unknown."},
		{Name: "Plan", Type: "string", Description: "The plan that holds the profile, and its phase."},
		{Name: "Impact", Type: "string", Description: "How much a plan would disturb the cluster now."},
		{Name: "Prerequisites", Type: "string", Description: "Whether the cluster has what the profile needs, and what to install."},
		{Name: "Description", Type: "string", Description: "Purpose of the profile."},
		{Name: "Blast radius", Type: "string", Priority: wide, Description: "The pools and nodes that a plan would reach now."},
		{Name: "Message", Type: "string", Priority: wide, Description: "Why the state is what it is."},
	}
}

// ConvertToTable prints a profile or a list of profiles.
func (table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return printing.Table("profiles", object, options, columns(), cells)
}

func cells(profile *v1alpha1.ConfigurationProfile) []any {
	status := profile.Status
	plan := none
	if status.Plan != "" {
		plan = fmt.Sprintf("%s (%s)", status.Plan, status.PlanPhase)
	}
	impact := string(status.ImpactSeverity)
	if impact == "" {
		impact = unknown
	}
	return []any{profile.Name, string(status.State), plan, impact, prerequisites(status), profile.Description, blast(status.Items), status.Message}
}

// prerequisites returns the remedies for missing requirements.
func prerequisites(status v1alpha1.ConfigurationProfileStatus) string {
	var remedies []string
	for _, requirement := range status.Requirements {
		if requirement.State == status.Prerequisites && !requirement.Optional && requirement.Message != "" && !slices.Contains(remedies, requirement.Message) {
			remedies = append(remedies, requirement.Message)
		}
	}
	if status.Prerequisites == v1alpha1.PrerequisiteMet {
		return string(status.Prerequisites)
	}
	if len(remedies) == 0 { // the current version is too old
		remedies = append(remedies, status.Message)
	}
	return string(status.Prerequisites) + ": " + strings.Join(remedies, "; ")
}

// blast returns the blast radius of all items together. It names each pool once.
func blast(items []v1alpha1.ProfileItem) string {
	var reached []string
	for _, item := range items {
		if b := item.BlastRadius; b != nil && len(b.Pools) > 0 {
			text := fmt.Sprintf("%d nodes of %s", b.Nodes, strings.Join(b.Pools, ", "))
			if b.Reboot {
				text += fmt.Sprintf(" reboot, in %d waves", b.Waves)
			}
			reached = append(reached, text)
		}
	}
	if len(reached) == 0 {
		return none
	}
	return strings.Join(reached, "; ")
}
