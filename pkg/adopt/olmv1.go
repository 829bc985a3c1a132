package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

// OLMv1Request selects the extensions of OLM v1 to adopt.
type OLMv1Request struct {
	// Namespace of operator-controller, which has the Secrets of releases.
	Namespace string
	// Extensions by name; empty selects all.
	Extensions []string
	// Overwrite restores objects that differ, and creates deleted objects again.
	Overwrite bool
}

// OLMv1Plan is the plan for adopting one ClusterExtension. Making the plan writes nothing.
type OLMv1Plan struct {
	Taken
	// Extension is the name of the ClusterExtension and of the extension.
	Extension string
	// From names the object with the content of the newest revision. It is empty when nothing is
	// installed; then nothing is adopted.
	From string
	// Known is true when the extension has been adopted before.
	Known bool
	// Problem is the reason why the extension cannot be adopted; empty when it can.
	Problem string

	overwrite bool
	origin    origin
}

type origin struct {
	// from is the value of v1alpha1.AdoptedFromAnnotation for the installed content.
	from string
	// owners are the present owners of the objects. The adoption removes them.
	owners map[types.UID]bool
	// owner is the owner that an undo restores, nil for none. newOwner then becomes the manager of
	// the objects' fields.
	owner    *metav1.OwnerReference
	newOwner targetclient.NewOwner
	// release is the index Secret of the deployed release. It is nil when operator-controller uses
	// revisions.
	release *corev1.Secret
	// revisions are sorted by age, newest first. The first revision is in the cluster.
	revisions []Revision
	warnings  []string
}

// PlanOLMv1 plans the adoption of ClusterExtensions. It only reads. It fails while
// operator-controller runs.
func (a *Adopter) PlanOLMv1(ctx context.Context, request OLMv1Request) ([]*OLMv1Plan, error) {
	if err := a.stopped(ctx, operatorController); err != nil {
		return nil, err
	}
	extensions, err := a.extensions(ctx, request.Extensions)
	if err != nil {
		return nil, err
	}
	plans := make([]*OLMv1Plan, 0, len(extensions))
	for _, one := range extensions {
		plan, err := a.planExtension(ctx, request, one)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			plan = &OLMv1Plan{Extension: one.GetName(), Problem: err.Error()}
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

func (a *Adopter) extensions(ctx context.Context, names []string) ([]unstructured.Unstructured, error) {
	list, err := a.objects.Resource(extension.Resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errors.New("this cluster has no ClusterExtensions")
	}
	if err != nil {
		return nil, fmt.Errorf("listing ClusterExtensions: %w", err)
	}
	if len(names) == 0 {
		return list.Items, nil
	}
	var found []unstructured.Unstructured
	for _, name := range names {
		at := slices.IndexFunc(list.Items, func(one unstructured.Unstructured) bool { return one.GetName() == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no ClusterExtension %s", name)
		}
		found = append(found, list.Items[at])
	}
	return found, nil
}

func (a *Adopter) planExtension(ctx context.Context, request OLMv1Request, of unstructured.Unstructured) (*OLMv1Plan, error) {
	plan := &OLMv1Plan{Extension: of.GetName(), overwrite: request.Overwrite, Taken: Taken{extension: of.GetName()}}
	if of.GetDeletionTimestamp() != nil {
		return nil, errors.New("it is being deleted")
	}
	found, err := a.originOf(ctx, request.Namespace, of)
	if err != nil || found == nil {
		return plan, err
	}
	plan.From, plan.origin, plan.Revisions, plan.Warnings = found.from, *found, found.revisions, found.warnings
	plan.owners = []archive.Owner{{APIVersion: extension.Kind.GroupVersion().String(), Kind: extension.Kind.Kind, Name: of.GetName(), UID: of.GetUID(), Controller: true}}
	plan.highest = plan.Revisions[0].number
	plan.foreign = found.belongsElsewhere
	if err := a.compareKnown(ctx, plan); err != nil {
		return nil, err
	}
	if plan.archive, err = plan.pack(); err != nil {
		return nil, err
	}
	return plan, a.compare(ctx, &plan.Taken)
}

// originOf reads operator-controller's records of an extension: its revisions, or else its release.
// The release still exists after operator-controller made revisions of it. Without records,
// originOf returns nil.
func (a *Adopter) originOf(ctx context.Context, namespace string, of unstructured.Unstructured) (*origin, error) {
	found, err := a.setsOf(ctx, namespace, of.GetName())
	if err != nil || found != nil {
		return found, err
	}
	return a.releaseOf(ctx, namespace, of)
}

// compareKnown reads Penstock's revisions of the extension.
func (a *Adopter) compareKnown(ctx context.Context, plan *OLMv1Plan) error {
	revisions, err := a.list(ctx, plan.Extension)
	if err != nil {
		return err
	}
	if len(revisions) == 0 {
		return a.usedBefore(ctx, plan.Extension)
	}
	for i := range revisions {
		if revisions[i].Annotations[v1alpha1.AdoptedFromAnnotation] == plan.From {
			plan.Known = true
			return nil
		}
	}
	return fmt.Errorf("an extension of this name has revisions already, and none of them comes from %s", plan.From)
}

// belongsElsewhere returns the state and the owner of an object whose controller is not
// operator-controller's.
func (o *origin) belongsElsewhere(live *unstructured.Unstructured) (State, string) {
	if controller := metav1.GetControllerOf(live); controller != nil && o.owners[controller.UID] {
		return "", ""
	}
	return controlled(live)
}

// Obstacles returns the reasons that prevent the adoption, each with its remedy.
func (p *OLMv1Plan) Obstacles() []string {
	if p.Problem != "" {
		return []string{p.Problem}
	}
	var found []string
	for _, object := range p.Objects {
		switch {
		case object.State == Others, object.State == Unknown:
			found = append(found, fmt.Sprintf("%s: %s", object.ID, object.Detail))
		case p.overwrite || p.Known:
		case object.State == Differs:
			found = append(found, fmt.Sprintf("%s differs from %s in %s: restore it, or give --overwrite", object.ID, p.From, object.Detail))
		case object.State == Gone:
			found = append(found, fmt.Sprintf("%s is missing: give --overwrite to create it again", object.ID))
		}
	}
	return found
}

// Differences returns the number of objects that differ from their revision.
func (p *OLMv1Plan) Differences() int {
	differences := 0
	for _, object := range p.Objects {
		if object.State != Same && object.State != Ours {
			differences++
		}
	}
	return differences
}

// CheckOLMv1 sends the plan to the server as a dry-run. Nothing is stored.
func (a *Adopter) CheckOLMv1(ctx context.Context, plan *OLMv1Plan) error {
	if plan.From == "" || plan.Known {
		return nil
	}
	_, err := a.post(ctx, &plan.Taken, true)
	return err
}

// AdoptOLMv1 executes a plan and returns the name of the revision that becomes active. It can be
// repeated after an interruption:
//
//  1. A dry-run checks that the server accepts the revisions.
//  2. The objects lose their owner. Then deleting OLM's records deletes no object.
//  3. The revisions are imported, owned by the ClusterExtension.
//  4. The Secret of a release gets an annotation that names the extension.
func (a *Adopter) AdoptOLMv1(ctx context.Context, plan *OLMv1Plan) (string, error) {
	name := plan.Revisions[0].Name
	if err := a.CheckOLMv1(ctx, plan); err != nil {
		return name, fmt.Errorf("adopting the ClusterExtension %s: %w", plan.Extension, err)
	}
	if err := a.release(ctx, plan); err != nil {
		return name, err
	}
	if !plan.Known {
		if _, err := a.post(ctx, &plan.Taken, false); err != nil {
			return name, fmt.Errorf("adopting the ClusterExtension %s: %w", plan.Extension, err)
		}
	}
	if plan.origin.release == nil {
		return name, nil
	}
	return name, a.markSecret(ctx, plan.origin.release, plan.Extension)
}

func (a *Adopter) release(ctx context.Context, plan *OLMv1Plan) error {
	return a.disown(ctx, plan.Revisions[0].refs(), plan.Extension, plan.origin.owners, nil)
}

// disown removes owners and labels from objects. It writes only the objects that have them.
func (a *Adopter) disown(ctx context.Context, refs []manifest.Ref, extension string, owners map[types.UID]bool, labels []string) error {
	return eachRef(ctx, refs, func(ctx context.Context, ref manifest.Ref) error {
		live, err := a.target.ReadMetadata(ctx, ref)
		if isAbsent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		change := targetclient.Owners{FieldManager: managerOf(extension)}
		change.References = slices.DeleteFunc(slices.Clone(live.OwnerReferences), func(owner metav1.OwnerReference) bool { return owners[owner.UID] })
		for _, label := range labels {
			if _, has := live.Labels[label]; has {
				change.WithoutLabels = append(change.WithoutLabels, label)
			}
		}
		if len(change.References) == len(live.OwnerReferences) && len(change.WithoutLabels) == 0 {
			return nil
		}
		_, err = a.target.SetOwners(ctx, ref, targetclient.Precondition{UID: live.UID, ResourceVersion: live.ResourceVersion}, change)
		return err
	})
}

// bundleAnnotations returns the annotations of a bundle that OLM and Penstock share, and the
// bundle's version.
func bundleAnnotations(of map[string]string) (annotations map[string]string, version string) {
	annotations = map[string]string{}
	for _, key := range []string{v1alpha1.PackageAnnotation, v1alpha1.BundleAnnotation, v1alpha1.ReferenceAnnotation} {
		if of[key] != "" {
			annotations[key] = of[key]
		}
	}
	if version = of[chunked.BundleVersionLabel]; version != "" {
		annotations[v1alpha1.VersionAnnotation] = version
	}
	return annotations, version
}

// ownerLabels returns the labels by which OLM's clients find the revisions of an extension.
func ownerLabels(name string) map[string]string {
	return map[string]string{chunked.OwnerKindLabel: extension.Kind.Kind, chunked.OwnerNameLabel: name}
}
