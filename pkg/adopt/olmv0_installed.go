package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/adopt/olmv0"
)

type installed struct {
	csv     *olmv0.ClusterServiceVersion
	group   *olmv0.OperatorGroup
	watches string
	// beside are the other ClusterServiceVersions of the namespace, without copies. copies are the
	// namespaces with copies of this ClusterServiceVersion.
	beside    []olmv0.ClusterServiceVersion
	copies    []string
	condition bool
}

// installed reads OLM's records. It returns an error while OLM is still changing them.
func (a *Adopter) installed(ctx context.Context, plan *OLMv0Plan) (*installed, error) {
	found := &installed{}
	if err := a.findVersions(ctx, plan, found); err != nil {
		return nil, err
	}
	csv := found.csv
	switch {
	case csv == nil:
		return nil, fmt.Errorf("its ClusterServiceVersion %s is gone", plan.CSV)
	case csv.DeletionTimestamp != nil:
		return nil, fmt.Errorf("its ClusterServiceVersion %s is being deleted", csv.Name)
	case csv.Status.Phase != olmv0.PhaseSucceeded && csv.Status.Phase != olmv0.PhaseFailed:
		return nil, fmt.Errorf("its ClusterServiceVersion %s is %s: let OLM finish, then scale OLM to zero", csv.Name, csv.Status.Phase)
	}
	for _, one := range found.beside {
		if one.Spec.Replaces == csv.Name {
			return nil, fmt.Errorf("its ClusterServiceVersion %s is being replaced by %s: let OLM finish the upgrade, then scale OLM to zero", csv.Name, one.Name)
		}
	}
	if csv.Status.Phase == olmv0.PhaseFailed {
		if err := a.hasDeployments(ctx, csv); err != nil {
			return nil, err
		}
	}
	if err := a.sharedWith(ctx, csv); err != nil {
		return nil, err
	}
	if err := a.findGroup(ctx, found); err != nil {
		return nil, err
	}
	_, err := a.objects.Resource(olmv0.OperatorConditions).Namespace(csv.Namespace).Get(ctx, csv.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading OperatorCondition %s/%s: %w", csv.Namespace, csv.Name, err)
	}
	found.condition = err == nil
	return found, nil
}

// hasDeployments returns an error for a ClusterServiceVersion that failed before OLM created all
// its Deployments. If all exist, the failure is over, or is the operator's own.
func (a *Adopter) hasDeployments(ctx context.Context, csv *olmv0.ClusterServiceVersion) error {
	for _, one := range csv.Spec.Install.Spec.Deployments {
		_, err := a.deployments.Deployments(csv.Namespace).Get(ctx, one.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("its ClusterServiceVersion %s is Failed (%s: %s), and its Deployment %s does not exist: there is nothing to adopt; delete the Subscription and the ClusterServiceVersion, and install the package again",
				csv.Name, csv.Status.Reason, csv.Status.Message, one.Name)
		case err != nil:
			return fmt.Errorf("reading Deployment %s/%s: %w", csv.Namespace, one.Name, err)
		}
	}
	return nil
}

// sharedWith returns an error if another ClusterServiceVersion of any namespace owns the same
// definition. An object belongs to one extension, so the second adoption could only fail.
func (a *Adopter) sharedWith(ctx context.Context, csv *olmv0.ClusterServiceVersion) error {
	if len(csv.Owned()) == 0 {
		return nil
	}
	list, err := a.objects.Resource(olmv0.ClusterServiceVersions).List(ctx, metav1.ListOptions{LabelSelector: "!" + olmv0.CopiedFromLabel})
	if err != nil {
		return fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	var others []olmv0.ClusterServiceVersion
	for i := range list.Items {
		one := olmv0.ClusterServiceVersion{}
		if err := olmv0.Read(&list.Items[i], &one); err != nil {
			return err
		}
		others = append(others, one)
	}
	return shared(csv, others)
}

// shared returns an error that names a definition with several owning ClusterServiceVersions, and
// the remedy.
func shared(csv *olmv0.ClusterServiceVersion, others []olmv0.ClusterServiceVersion) error {
	for _, api := range csv.Owned() {
		var names, commands []string
		for i := range others {
			if one := &others[i]; one.UID != csv.UID && one.Owns(api) {
				names = append(names, one.Namespace+"/"+one.Name)
				commands = append(commands, fmt.Sprintf("kubectl delete clusterserviceversions.operators.coreos.com -n %s %s", one.Namespace, one.Name))
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			slices.Sort(commands)
			return fmt.Errorf("%s is owned by %s %s, too, and an object belongs to one extension: decide which one stays; while OLM runs, delete the Subscriptions of the others and then (%s), which keeps the definition and its custom resources; then stop OLM and adopt the one that stays",
				api, olmv0.Kind, strings.Join(names, ", "), strings.Join(commands, "; "))
		}
	}
	return nil
}

// findVersions reads the ClusterServiceVersions of the namespace, and copies of the installed one.
func (a *Adopter) findVersions(ctx context.Context, plan *OLMv0Plan, found *installed) error {
	list, err := a.objects.Resource(olmv0.ClusterServiceVersions).Namespace(plan.Subscription.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "!" + olmv0.CopiedFromLabel})
	if err != nil {
		return fmt.Errorf("listing ClusterServiceVersions in namespace %s: %w", plan.Subscription.Namespace, err)
	}
	for i := range list.Items {
		one := olmv0.ClusterServiceVersion{}
		if err := olmv0.Read(&list.Items[i], &one); err != nil {
			return err
		}
		if one.Name == plan.CSV {
			found.csv = &one
			continue
		}
		found.beside = append(found.beside, one)
	}
	copies, err := a.metadata.Resource(olmv0.ClusterServiceVersions).List(ctx, metav1.ListOptions{LabelSelector: olmv0.CopiedFromLabel + "=" + plan.Subscription.Namespace})
	if err != nil {
		return fmt.Errorf("listing copies of ClusterServiceVersions: %w", err)
	}
	for _, one := range copies.Items {
		if one.Name == plan.CSV {
			found.copies = append(found.copies, one.Namespace)
		}
	}
	return nil
}

func (a *Adopter) findGroup(ctx context.Context, found *installed) error {
	list, err := a.objects.Resource(olmv0.OperatorGroups).Namespace(found.csv.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing OperatorGroups in namespace %s: %w", found.csv.Namespace, err)
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("namespace %s has %d OperatorGroups, and OLM requires exactly one", found.csv.Namespace, len(list.Items))
	}
	found.group = &olmv0.OperatorGroup{}
	if err := olmv0.Read(&list.Items[0], found.group); err != nil {
		return err
	}
	switch watched := found.group.Status.Namespaces; {
	case len(watched) == 0:
		return fmt.Errorf("OperatorGroup %s does not list its namespaces yet", found.group.Name)
	case len(watched) > 1:
		return fmt.Errorf("OperatorGroup %s has several namespaces (MultiNamespace: %s), and an extension watches one or all", found.group.Name, strings.Join(watched, ", "))
	default:
		found.watches = watched[0]
	}
	return nil
}

// notTaken returns the OLM objects that are not adopted, and warnings for the user.
func (i *installed) notTaken(of *olmv0.Subscription) (left []NotTaken, warnings []string) {
	csv := i.csv
	for _, api := range csv.Required() {
		why := "it is required, and no other ClusterServiceVersion of the namespace has it; Penstock installs no dependencies"
		for j := range i.beside {
			if i.beside[j].Owns(api) {
				why = fmt.Sprintf("it is required, and %s %s has it: adopt that, too, or leave it to OLM; Penstock installs no dependencies", olmv0.Kind, i.beside[j].Name)
			}
		}
		left = append(left, NotTaken{What: api.String(), Why: why})
	}
	for j := range i.beside {
		for _, api := range i.beside[j].Required() {
			if csv.Owns(api) {
				warnings = append(warnings, fmt.Sprintf("%s %s requires %s of this operator; Penstock does not track that", olmv0.Kind, i.beside[j].Name, api))
			}
		}
	}
	if i.condition {
		left = append(left, NotTaken{What: fmt.Sprintf("OperatorCondition %s/%s", csv.Namespace, csv.Name), Why: "it is deleted with the ClusterServiceVersion; Penstock reads only those of the extension"})
	}
	left = append(left, NotTaken{What: fmt.Sprintf("OperatorGroup %s/%s", i.group.Namespace, i.group.Name), Why: "delete it when the namespace has no Subscription any more"})
	slices.Sort(i.copies)
	for _, namespace := range i.copies {
		left = append(left, NotTaken{What: fmt.Sprintf("%s %s/%s", olmv0.Kind, namespace, csv.Name), Why: "it is a copy; OLM deletes it after the original"})
	}
	if of.Spec.Config["selector"] != nil {
		left = append(left, NotTaken{What: "spec.config.selector of the Subscription", Why: "ClusterExtensions have no such field"})
	}
	if csv.Status.Phase == olmv0.PhaseFailed {
		warnings = append(warnings, fmt.Sprintf("%s %s is Failed (%s: %s); its objects are taken over as they are", olmv0.Kind, csv.Name, csv.Status.Reason, csv.Status.Message))
	}
	if at := csv.Status.CertsRotateAt; at != nil {
		warnings = append(warnings, fmt.Sprintf("OLM made certificates for webhooks or APIServices, and would renew them at %s; nobody renews them now: approve the proposal of the ClusterExtension before they expire", at.UTC().Format(time.RFC3339)))
	}
	return left, warnings
}

// errNoDefinition reports that the cluster does not serve ClusterExtensions.
var errNoDefinition = errors.New("this cluster has no ClusterExtensions: have penstock serve --register install their CustomResourceDefinition")
