package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/adopt/olmv0"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/revision/references"
)

// OLMv0Request selects the Subscriptions of OLM v0 to adopt.
type OLMv0Request struct {
	// Namespace of the Subscriptions; empty selects all.
	Namespace string
	// Subscriptions by name; empty selects all.
	Subscriptions []string
	// Extension is the name of the new extension; empty for the name of the package.
	Extension string
}

// OLMv0Plan is the plan for adopting one Subscription. Making the plan writes nothing.
type OLMv0Plan struct {
	Taken
	// Subscription is namespace/name.
	Subscription types.NamespacedName
	// CSV is the name of the installed ClusterServiceVersion. Without one (empty), nothing is
	// adopted.
	CSV string
	// Extension is the name of the ClusterExtension and of the extension.
	Extension string
	// Version is the installed version.
	Version string
	// Automatic is true when OLM upgrades without approval.
	Automatic bool
	// Known is true when the revision has been imported before.
	Known bool
	// Problem is the reason why the Subscription cannot be adopted; empty when it can.
	Problem string
	// NotTaken lists OLM objects that are not adopted.
	NotTaken []NotTaken

	// from is the value of v1alpha1.AdoptedFromAnnotation. owners are the present owners of the
	// objects in refs.
	from   string
	refs   []manifest.Ref
	owners map[types.UID]bool
	// wanted is the ClusterExtension; made is true when it exists.
	wanted *unstructured.Unstructured
	made   bool
}

// NotTaken is an object of OLM that does not become part of the extension, with the reason.
type NotTaken struct {
	What, Why string
}

// PlanOLMv0 plans the adoption of Subscriptions. It only reads. It fails while OLM's operators run.
func (a *Adopter) PlanOLMv0(ctx context.Context, request OLMv0Request) ([]*OLMv0Plan, error) {
	for _, name := range []string{olmOperator, catalogOperator} {
		if err := a.stopped(ctx, name); err != nil {
			return nil, err
		}
	}
	subscriptions, err := a.subscriptions(ctx, request)
	if err != nil {
		return nil, err
	}
	plans := make([]*OLMv0Plan, 0, len(subscriptions))
	used := map[string]types.NamespacedName{}
	for i := range subscriptions {
		one := &subscriptions[i]
		plan := &OLMv0Plan{Subscription: types.NamespacedName{Namespace: one.Namespace, Name: one.Name}, Extension: one.Spec.Package, CSV: one.Status.InstalledCSV}
		if request.Extension != "" {
			plan.Extension = request.Extension
		}
		err := a.planSubscription(ctx, plan, one)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if other, twice := used[plan.Extension]; twice && err == nil {
			err = fmt.Errorf("the Subscription %s becomes the extension %s, too: adopt this one with another name in --extension", other, plan.Extension)
		}
		if err != nil {
			plan.Problem = err.Error()
		} else if plan.CSV != "" {
			used[plan.Extension] = plan.Subscription
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

func (a *Adopter) subscriptions(ctx context.Context, request OLMv0Request) ([]olmv0.Subscription, error) {
	list, err := a.objects.Resource(olmv0.Subscriptions).Namespace(request.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errors.New("this cluster has no Subscriptions of OLM v0")
	}
	if err != nil {
		return nil, fmt.Errorf("listing Subscriptions: %w", err)
	}
	var all []olmv0.Subscription
	for i := range list.Items {
		one := olmv0.Subscription{}
		if err := olmv0.Read(&list.Items[i], &one); err != nil {
			return nil, err
		}
		if len(request.Subscriptions) == 0 || slices.Contains(request.Subscriptions, one.Name) {
			all = append(all, one)
		}
	}
	for _, name := range request.Subscriptions {
		if !slices.ContainsFunc(all, func(one olmv0.Subscription) bool { return one.Name == name }) {
			return nil, fmt.Errorf("there is no Subscription %s/%s", request.Namespace, name)
		}
	}
	return all, nil
}

func (a *Adopter) planSubscription(ctx context.Context, plan *OLMv0Plan, of *olmv0.Subscription) error {
	plan.from = "Subscription/" + plan.Subscription.String()
	plan.extension, plan.highest = plan.Extension, 1
	plan.Automatic = of.Spec.Approval != olmv0.ApprovalManual
	switch {
	case plan.CSV == "":
		return nil
	case of.DeletionTimestamp != nil:
		return errors.New("it is being deleted")
	}
	installed, err := a.installed(ctx, plan)
	if err != nil {
		return err
	}
	csv := installed.csv
	plan.Version, plan.owners = csv.Spec.Version, map[types.UID]bool{csv.UID: true}
	plan.foreign = func(live *unstructured.Unstructured) (State, string) { return belongsToOther(live, csv) }
	if err := a.knownBefore(ctx, plan); err != nil {
		return err
	}
	if plan.wanted, err = clusterExtension(of, csv, plan.Extension, installed.watches); err != nil {
		return err
	}
	if err := a.compareWanted(ctx, plan); err != nil {
		return err
	}
	plan.NotTaken, plan.Warnings = installed.notTaken(of)
	if plan.Known {
		return nil
	}
	phases, err := a.madeBy(ctx, plan, of, csv)
	if err != nil {
		return err
	}
	revision := revisionOfCSV(plan, of, csv)
	if err := revision.take(phases, digesterFor(string(csv.UID))); err != nil {
		return err
	}
	plan.Revisions, plan.refs = []Revision{revision}, revision.refs()
	if plan.archive, err = plan.pack(); err != nil {
		return err
	}
	return a.compare(ctx, &plan.Taken)
}

// knownBefore reads Penstock's revisions of the extension. To finish an interrupted adoption, it
// takes the objects from the imported revision, because they may have lost OLM's marks.
func (a *Adopter) knownBefore(ctx context.Context, plan *OLMv0Plan) error {
	revisions, err := a.list(ctx, plan.Extension)
	if err != nil {
		return err
	}
	if len(revisions) == 0 {
		return a.usedBefore(ctx, plan.Extension)
	}
	at := slices.IndexFunc(revisions, func(one v1alpha1.ClusterExtensionRevision) bool {
		return one.Spec.Revision == 1 && one.Annotations[v1alpha1.AdoptedFromAnnotation] == plan.from
	})
	if at < 0 {
		return fmt.Errorf("extension %s has revisions already, and none of them comes from this Subscription: choose another name with --extension", plan.Extension)
	}
	plan.Known = true
	plan.refs = references.Of(&revisions[at])
	plan.Revisions = []Revision{{Name: revisions[at].Name, State: revisions[at].Spec.LifecycleState, Objects: len(plan.refs), number: 1}}
	for _, ref := range plan.refs {
		plan.Objects = append(plan.Objects, Object{ID: ref.ID, State: Ours})
	}
	return nil
}

func revisionOfCSV(plan *OLMv0Plan, of *olmv0.Subscription, csv *olmv0.ClusterServiceVersion) Revision {
	cause := "OLM: " + csv.Name
	out := Revision{
		Name: olm.RevisionName(plan.Extension, 1), State: v1alpha1.LifecycleStateActive, Status: csv.Status.Phase, Chart: csv.Spec.Version,
		number: 1, version: csv.Spec.Version, cause: cause, at: csv.CreationTimestamp.UTC().Truncate(time.Second), succeeded: true,
		annotations: map[string]string{
			v1alpha1.ChangeCauseAnnotation: cause, v1alpha1.AdoptedFromAnnotation: plan.from,
			v1alpha1.PackageAnnotation: of.Spec.Package, v1alpha1.BundleAnnotation: csv.Name,
		},
		labels: ownerLabels(plan.Extension),
	}
	if csv.Spec.Version != "" {
		out.annotations[v1alpha1.VersionAnnotation] = csv.Spec.Version
	}
	return out
}

// belongsToOther returns the state and the owner of an object that another operator owns. The owner
// references of OLM v0 are no controller references.
func belongsToOther(live *unstructured.Unstructured, csv *olmv0.ClusterServiceVersion) (State, string) {
	for _, owner := range live.GetOwnerReferences() {
		if owner.Kind == olmv0.Kind && owner.UID != csv.UID {
			return Others, fmt.Sprintf("belongs to %s %s, too", owner.Kind, owner.Name)
		}
	}
	labels := live.GetLabels()
	if name := labels[olmv0.OwnerLabel]; labels[olmv0.OwnerKindLabel] == olmv0.Kind && (name != csv.Name || labels[olmv0.OwnerNamespaceLabel] != csv.Namespace) {
		return Others, fmt.Sprintf("belongs to %s %s/%s", olmv0.Kind, labels[olmv0.OwnerNamespaceLabel], name)
	}
	if controller := metav1.GetControllerOf(live); controller != nil && controller.UID == csv.UID {
		return "", ""
	}
	return controlled(live)
}

// Obstacles returns the reasons that prevent the adoption, each with its remedy.
func (p *OLMv0Plan) Obstacles() []string {
	if p.Problem != "" {
		return []string{p.Problem}
	}
	var found []string
	for _, object := range p.Objects {
		switch object.State {
		case Others, Unknown:
			found = append(found, fmt.Sprintf("%s: %s", object.ID, object.Detail))
		case Differs, Gone:
			found = append(found, fmt.Sprintf("%s was changed while it was examined: run the command again", object.ID))
		}
	}
	return found
}

// CheckOLMv0 sends the plan to the servers as a dry-run. Nothing is stored.
func (a *Adopter) CheckOLMv0(ctx context.Context, plan *OLMv0Plan) error {
	if plan.CSV == "" {
		return nil
	}
	if !plan.Known {
		if _, err := a.post(ctx, &plan.Taken, true); err != nil {
			return err
		}
	}
	if plan.made {
		return nil
	}
	return a.createWanted(ctx, plan, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// AdoptOLMv0 executes a plan and returns the name of the revision that becomes active. It can be
// repeated after an interruption:
//
//  1. A dry-run checks that the servers accept the revision and the ClusterExtension.
//  2. The revision is imported. A repeated command reads the list of objects from it.
//  3. The objects lose their owner and OLM's labels. Then deleting the ClusterServiceVersion
//     deletes no object.
//  4. The ClusterExtension is created, with manual approval and the installed version.
//  5. The ClusterExtension becomes the owner of the revision.
func (a *Adopter) AdoptOLMv0(ctx context.Context, plan *OLMv0Plan) (string, error) {
	name := plan.Revisions[0].Name
	err := a.CheckOLMv0(ctx, plan)
	if err == nil && !plan.Known {
		_, err = a.post(ctx, &plan.Taken, false)
	}
	if err == nil {
		err = a.disown(ctx, plan.refs, plan.Extension, plan.owners, olmv0.OwnerLabels())
	}
	if err == nil && !plan.made {
		err = a.createWanted(ctx, plan, metav1.CreateOptions{})
	}
	if err == nil {
		err = a.own(ctx, plan, name)
	}
	if err != nil {
		return name, fmt.Errorf("adopting the Subscription %s as extension %s: %w", plan.Subscription, plan.Extension, err)
	}
	return name, nil
}
