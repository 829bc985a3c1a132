package helmapplier

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

// Watch returns the extensions that have a release, from one watch of the metadata of their
// Secrets. It is for callers that only read releases: writes appear with a short delay.
type Watch struct {
	client    metadata.Interface
	namespace string
	watch     *objectwatch.Watch[*metav1.PartialObjectMetadata]
	changed   func()
}

// NewWatch returns a watch of the releases in a namespace. It sends no request before Run.
func NewWatch(client metadata.Interface, namespace string) *Watch {
	w := &Watch{client: client, namespace: namespace, changed: func() {}}
	w.watch = objectwatch.New(client, client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace), &metav1.PartialObjectMetadata{},
		objectwatch.Options{Selector: chunked.Selector(""), Keep: labelsAlone, Changed: func() { w.changed() }})
	return w
}

// labelsAlone drops all parts of a Secret except its identity, its labels and
// SupersededByAnnotation.
func labelsAlone(object any) (any, error) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{TypeMeta: secret.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion, Labels: secret.Labels,
	}}
	if by := secret.Annotations[olmv1alpha1.SupersededByAnnotation]; by != "" {
		kept.Annotations = map[string]string{olmv1alpha1.SupersededByAnnotation: by}
	}
	return kept, nil
}

// Run watches until ctx ends. It calls changed after the first list, and when the releases may have
// changed; changed must not block. Run is called once.
func (w *Watch) Run(ctx context.Context, changed func()) {
	w.changed = changed
	w.watch.Run(ctx)
}

// Releases returns the stored releases by name. The value is true if a Secret of the release is not
// marked as taken over by the engine. An error means that the releases are unknown.
func (w *Watch) Releases() (map[string]bool, error) {
	secrets, err := w.watch.List()
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, secret := range secrets {
		name := secret.Labels[chunked.LabelName]
		found[name] = found[name] || !takenOver(secret)
	}
	return found, nil
}

// takenOver reports whether the engine has taken over the objects of a Secret's revision.
func takenOver(index metav1.Object) bool {
	return index.GetLabels()[olmv1alpha1.SupersededByLabel] != "" || index.GetAnnotations()[olmv1alpha1.SupersededByAnnotation] != ""
}
