package verbs

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/text"
)

// reportPlans prints the consequences for plans before anything is removed. If plans cannot be
// read, it prints that: unregistering does not depend on it.
func reportPlans(ctx context.Context, clients versioned.Interface, out io.Writer) error {
	listed, err := clients.HcoV1alpha1().ConfigurationPlans().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil // the cluster does not serve plans
	case err != nil:
		_, err := fmt.Fprintf(out, "The plans cannot be read (%v); what they have changed in the cluster stays\n", err)
		return err
	}
	_, err = io.WriteString(out, farewellToPlans(listed.Items))
	return err
}

// farewellToPlans describes which data of plans is kept, and which is lost.
func farewellToPlans(plans []hcov1alpha1.ConfigurationPlan) string {
	if len(plans) == 0 {
		return ""
	}
	var names, running []string
	for i := range plans {
		names = append(names, plans[i].Name)
		if plans[i].Status.Phase == hcov1alpha1.PhaseInProgress {
			running = append(running, plans[i].Name)
		}
	}
	said := fmt.Sprintf("%s: %s. Their changes in the cluster stay, and nobody watches them any more. "+
		"The store keeps them and their history; without the store they cannot be undone. To go back, undo each plan first: kubectl penstock plan undo NAME\n",
		text.Count(len(plans), "plan"), strings.Join(names, ", "))
	if len(running) > 0 {
		said += fmt.Sprintf("In progress, and left unfinished: %s\n", strings.Join(running, ", "))
	}
	return said
}
