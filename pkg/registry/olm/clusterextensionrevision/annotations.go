package clusterextensionrevision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/extension"
)

// ServerAnnotations returns the annotations that only the server sets.
func ServerAnnotations() []string {
	return []string{v1alpha1.SummaryAnnotation, v1alpha1.RollbackOfAnnotation, v1alpha1.RequestedByAnnotation, v1alpha1.DeletedByAnnotation,
		v1alpha1.ProposedAnnotation, v1alpha1.ApprovedByAnnotation, v1alpha1.ApprovedAtAnnotation, v1alpha1.ScheduledApprovalAnnotation,
		v1alpha1.HandedToHelmAnnotation, v1alpha1.AdoptedReleaseAnnotation, v1alpha1.ReleaseSecretsAnnotation}
}

// controllerAnnotations returns the server's annotations that its controllers write with the
// revisions API.
func controllerAnnotations() []string {
	return []string{v1alpha1.HandedToHelmAnnotation, v1alpha1.AdoptedReleaseAnnotation, v1alpha1.ReleaseSecretsAnnotation, v1alpha1.ScheduledApprovalAnnotation}
}

func serverAnnotationPaths() []fieldpath.Path {
	var paths []fieldpath.Path
	for _, key := range append(ServerAnnotations(), notes()...) {
		paths = append(paths, fieldpath.MakePathOrDie("metadata", "annotations", key))
	}
	return paths
}

// keepServerAnnotations restores the annotations that only the server sets. For a new revision,
// stored has none. Controllers of this process may change controllerAnnotations.
func keepServerAnnotations(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) {
	requester, known := request.UserFrom(ctx)
	internal := known && admissionrequest.IsInternal(ctx, requester)
	for _, key := range ServerAnnotations() {
		if internal && slices.Contains(controllerAnnotations(), key) {
			continue
		}
		setAnnotation(revision, key, stored.Annotations[key])
	}
}

// setAnnotation sets an annotation, or removes it if the value is empty. It first copies the
// annotations, because the stored revision may share them.
func setAnnotation(revision *olm.ClusterExtensionRevision, key, value string) {
	if revision.Annotations[key] == value {
		return
	}
	annotations := maps.Clone(revision.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	if value == "" {
		delete(annotations, key)
	}
	revision.Annotations = annotations
}

// notes returns the annotations of the ClusterExtension and ChartKind controllers.
func notes() []string {
	return slices.Concat(extension.Notes(), chartkind.Notes(), []string{v1alpha1.HeldByAnnotation, v1alpha1.HeldUnderAnnotation, v1alpha1.VerifiedAnnotation})
}

// keepNotes restores the annotations by which the controllers of ClusterExtensions and ChartKinds
// record the source of a revision. The controllers set them at the creation, possibly in a user's
// name, and change them in Penstock's name. Otherwise, another user could choose the version that
// counts as installed, or block further revisions. A rollback gets the annotations of its restored
// content.
//
// Every user can set the bundle and its version on a revision that no controller created.
func keepNotes(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) {
	creates := stored == nil
	requester, _ := request.UserFrom(ctx)
	if creates && (rollbackFrom(ctx) != nil || pastFrom(ctx) == nil && admissionrequest.IsSentByPenstock(ctx)) ||
		!creates && admissionrequest.IsInternal(ctx, requester) {
		return
	}
	kept := notes()
	if creates {
		stored = &olm.ClusterExtensionRevision{}
	} else if stored.Annotations[extension.MadeOfAnnotation] != "" || stored.Annotations[chartkind.MadeOfAnnotation] != "" {
		kept = append(kept, extension.BundleNotes()...)
	}
	var lost []string
	for _, key := range kept {
		if given := revision.Annotations[key]; given != "" && given != stored.Annotations[key] {
			lost = append(lost, key)
		}
		setAnnotation(revision, key, stored.Annotations[key])
	}
	if len(lost) > 0 && pastFrom(ctx) == nil { // an archive keeps them
		slices.Sort(lost)
		warning.AddWarning(ctx, "", fmt.Sprintf("metadata.annotations of %s: Penstock records in %s what it makes revisions of, and ignores values of others", revision.Name, strings.Join(lost, ", ")))
	}
}
