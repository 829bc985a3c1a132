package adopt

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/helm"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

const (
	// boxcutter is operator-controller's field manager for the objects of revisions, and the value
	// of its label.
	boxcutter = "olm.operatorframework.io"
	// most is the largest unpacked size of one object in a Secret, in bytes.
	most = 10 << 20
)

// Marks of operator-controller that stay on the objects of revisions.
const (
	managedByLabel         = "app.kubernetes.io/managed-by"
	oldManagedLabel        = "boxcutter-managed"
	setRevisionAnnotation  = "olm.operatorframework.io/revision"
	lifecycleStateArchived = "Archived"
)

// set is a revision of operator-controller: a ClusterObjectSet, or, before version 1.9, a
// ClusterExtensionRevision of version v1.
type set struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		LifecycleState string     `json:"lifecycleState"`
		Revision       int64      `json:"revision"`
		Phases         []setPhase `json:"phases"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

type setPhase struct {
	Name    string      `json:"name"`
	Objects []setObject `json:"objects"`
}

// setObject is an object of a set: its content, or a reference to a Secret with the content.
type setObject struct {
	Object map[string]any `json:"object"`
	Ref    *struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Key       string `json:"key"`
	} `json:"ref"`
}

func (s *set) succeeded() bool { return meta.IsStatusConditionTrue(s.Status.Conditions, "Succeeded") }

func (s *set) from() string { return s.Kind + "/" + s.Name }

func (a *Adopter) setsOf(ctx context.Context, namespace, name string) (*origin, error) {
	var all []set
	for _, resource := range []string{"clusterobjectsets", "clusterextensionrevisions"} {
		list, err := a.objects.Resource(extension.Resource.GroupVersion().WithResource(resource)).List(ctx, metav1.ListOptions{LabelSelector: chunked.OwnerNameLabel + "=" + name})
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s of OLM: %w", resource, err)
		}
		for i := range list.Items {
			one := set{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &one); err != nil {
				return nil, fmt.Errorf("reading %s %s: %w", list.Items[i].GetKind(), list.Items[i].GetName(), err)
			}
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b set) int { return cmp.Compare(b.Spec.Revision, a.Spec.Revision) })
	if err := atRest(all); err != nil {
		return nil, err
	}
	return a.originOfSets(ctx, namespace, name, all)
}

// atRest returns an error unless the newest revision has succeeded and all older revisions are
// archived.
func atRest(sets []set) error {
	for i := range sets {
		one := &sets[i]
		active := one.Spec.LifecycleState != lifecycleStateArchived
		switch {
		case one.DeletionTimestamp != nil:
			return fmt.Errorf("%s is being deleted", one.from())
		case i > 0 && one.Spec.Revision == sets[i-1].Spec.Revision:
			return fmt.Errorf("%s and %s have the same number", sets[i-1].from(), one.from())
		case i == 0 && !active:
			return fmt.Errorf("%s, the newest revision, is archived: nothing of it is in the cluster", one.from())
		case i == 0 && !one.succeeded():
			return fmt.Errorf("%s has not succeeded: let operator-controller finish the rollout, or correct it there, then scale it to zero", one.from())
		case i > 0 && active:
			return fmt.Errorf("%s and %s are both active: let operator-controller finish the rollout, then scale it to zero", sets[0].from(), one.from())
		}
	}
	return nil
}

func (a *Adopter) originOfSets(ctx context.Context, namespace, name string, all []set) (*origin, error) {
	newest := &all[0]
	found := &origin{
		from: newest.from(), owners: map[types.UID]bool{}, newOwner: targetclient.NewOwner{Manager: boxcutter, Operation: metav1.ManagedFieldsOperationApply},
		owner: &metav1.OwnerReference{
			APIVersion: newest.APIVersion, Kind: newest.Kind, Name: newest.Name, UID: newest.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		},
	}
	for i := range all {
		found.owners[all[i].UID] = true
	}
	digester := digesterFor(string(newest.UID))
	secrets := map[types.NamespacedName]*corev1.Secret{}
	for i := range all[:min(len(all), helm.Kept)] {
		revision, err := a.revisionOfSet(ctx, namespace, name, &all[i], i == 0, digester, secrets)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].from(), err)
		}
		found.revisions = append(found.revisions, revision)
	}
	return found, nil
}

// revisionOfSet converts a set to a revision with the same phases.
func (a *Adopter) revisionOfSet(ctx context.Context, namespace, name string, of *set, active bool, digester manifest.Digester, secrets map[types.NamespacedName]*corev1.Secret) (Revision, error) {
	annotations, version := bundleAnnotations(of.Annotations)
	out := Revision{
		Name: olm.RevisionName(name, of.Spec.Revision), State: v1alpha1.LifecycleStateArchived, Status: of.Spec.LifecycleState, Chart: version,
		number: of.Spec.Revision, version: version, cause: "OLM: " + of.Name, at: of.CreationTimestamp.UTC().Truncate(time.Second),
		succeeded: of.succeeded(), labels: ownerLabels(name), annotations: annotations,
	}
	if active {
		out.State = v1alpha1.LifecycleStateActive
	}
	annotations[v1alpha1.ChangeCauseAnnotation] = out.cause
	annotations[v1alpha1.AdoptedFromAnnotation] = of.from()
	var phases []source.Phase
	for _, phase := range of.Spec.Phases {
		taken := source.Phase{Name: phase.Name}
		for i := range phase.Objects {
			content, err := a.contentOf(ctx, namespace, &phase.Objects[i], secrets)
			if err != nil {
				return Revision{}, fmt.Errorf("phase %s, object %d: %w", phase.Name, i, err)
			}
			object, err := manifest.Canonical(content)
			if err == nil && active {
				object, err = a.withMarks(ctx, object, content)
			}
			if err != nil {
				return Revision{}, fmt.Errorf("phase %s, object %d: %w", phase.Name, i, err)
			}
			taken.Objects = append(taken.Objects, object)
		}
		phases = append(phases, taken)
	}
	return out, out.take(phases, digester)
}

// contentOf returns an object of a set. The content is in the set or in a Secret.
func (a *Adopter) contentOf(ctx context.Context, namespace string, of *setObject, secrets map[types.NamespacedName]*corev1.Secret) (map[string]any, error) {
	if of.Ref == nil {
		return runtime.DeepCopyJSON(of.Object), nil
	}
	at := types.NamespacedName{Namespace: cmp.Or(of.Ref.Namespace, namespace), Name: of.Ref.Name}
	secret, known := secrets[at]
	if !known {
		var err error
		if secret, err = a.secrets.Secrets(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("reading the Secret %s: %w", at, err)
		}
		secrets[at] = secret
	}
	raw, found := secret.Data[of.Ref.Key]
	if !found {
		return nil, fmt.Errorf("the Secret %s has no key %s", at, of.Ref.Key)
	}
	raw, err := unpacked(raw)
	if err != nil {
		return nil, fmt.Errorf("unpacking key %s of the Secret %s: %w", of.Ref.Key, at, err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("reading key %s of the Secret %s: %w", of.Ref.Key, at, err)
	}
	return content, nil
}

// unpacked returns the content, decompressed if it is gzip.
func unpacked(raw []byte) ([]byte, error) {
	if !bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		return raw, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(reader, most+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it is larger than %d MiB", most>>20)
	}
	return text, err
}

// withMarks adds operator-controller's marks on the live object to the manifest, so the adoption
// keeps them. After an undo, operator-controller finds the object unchanged.
func (a *Adopter) withMarks(ctx context.Context, object manifest.Object, content map[string]any) (manifest.Object, error) {
	live, err := a.target.ReadMetadata(ctx, object.Ref)
	switch {
	case isAbsent(err), apierrors.IsForbidden(err): // compare reports this state
		return object, nil
	case err != nil:
		return object, err
	}
	metadata, _ := content["metadata"].(map[string]any)
	for _, mark := range []struct {
		field, key string
		has        map[string]string
	}{
		{"labels", managedByLabel, live.Labels}, {"labels", oldManagedLabel, live.Labels}, {"annotations", setRevisionAnnotation, live.Annotations},
	} {
		value, found := mark.has[mark.key]
		if !found || mark.key == managedByLabel && !strings.HasPrefix(value, boxcutter) {
			continue
		}
		entries, _ := metadata[mark.field].(map[string]any)
		if entries == nil {
			entries = map[string]any{}
			metadata[mark.field] = entries
		}
		entries[mark.key] = value
	}
	return manifest.Canonical(content)
}
