package extension

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// settings are what may change of a revision that is there.
type settings struct {
	Deadline  int32                      `json:"progressDeadlineMinutes"`
	Delay     int32                      `json:"successDelaySeconds"`
	OnFailure olmv1alpha1.OnFailure      `json:"onFailure"`
	Teardown  olmv1alpha1.TeardownPolicy `json:"teardownPolicy"`
}

// settingsOf are those that an extension asks for. A webhook has checked them; what cannot be
// read counts as absent.
func settingsOf(e *extension.Extension) settings {
	return settings{
		Deadline:  cmp.Or(e.Spec.ProgressDeadlineMinutes, number(e.Annotations[extension.ProgressDeadlineAnnotation])),
		Delay:     number(e.Annotations[extension.SuccessDelayAnnotation]),
		OnFailure: olmv1alpha1.OnFailure(cmp.Or(e.Annotations[extension.OnFailureAnnotation], string(olmv1alpha1.OnFailureNone))),
		Teardown:  olmv1alpha1.TeardownPolicy(cmp.Or(e.Annotations[extension.TeardownPolicyAnnotation], string(olmv1alpha1.TeardownPolicyDelete))),
	}
}

func number(text string) int32 {
	value, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(value)
}

func (s settings) into(spec *olmv1alpha1.ClusterExtensionRevisionSpec) {
	spec.ProgressDeadlineMinutes, spec.SuccessDelaySeconds, spec.OnFailure, spec.TeardownPolicy = s.Deadline, s.Delay, s.OnFailure, s.Teardown
}

// in are those that a revision has.
func settingsIn(spec *olmv1alpha1.ClusterExtensionRevisionSpec) settings {
	return settings{
		Deadline: spec.ProgressDeadlineMinutes, Delay: spec.SuccessDelaySeconds,
		OnFailure: cmp.Or(spec.OnFailure, olmv1alpha1.OnFailureNone), Teardown: cmp.Or(spec.TeardownPolicy, olmv1alpha1.TeardownPolicyDelete),
	}
}

// keep brings a revision up to date whose content is what is asked for:
//
//  1. A proposal of something else is not wanted any more.
//  2. The settings that may change, and the owner, in the name of whoever wrote the extension,
//     while their stamp counts.
//  3. What is nobody's, or somebody else's, is left as it is.
//  4. The annotations, in our own name: they do nothing, and the stamp is used up by them.
func (v *visit) keep(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, wish *wish) *halt {
	if v.byHelm {
		return v.keepRelease(ctx, revision, wish)
	}
	if stopped := v.withdraw(ctx, nil); stopped.Result != status.Settled {
		return stopped
	}
	stamp, isNew, err := v.newStamp(revision)
	if err != nil {
		return settled() // what was written counts for nothing
	}
	decided := revision.Annotations[extension.StampAnnotation]
	if isNew {
		if stopped := v.adjust(ctx, revision, stamp.Info()); stopped != nil {
			return stopped
		}
		decided = v.stampName(stamp)
	} else if !v.isOwned(revision) {
		return settled()
	}
	return v.note(ctx, revision, decided, wish.asIn(revision))
}

// newStamp is the stamp that the extension has, and whether it counts and has decided nothing
// yet. The error is why what was written counts for nothing.
func (v *visit) newStamp(revision *olmv1alpha1.ClusterExtensionRevision) (stamp *author.Stamp, isNew bool, err error) {
	stamp, err = author.ClusterExtensions().Verify(v.Key, v.object)
	if err != nil {
		return nil, false, err
	}
	name := v.stampName(stamp)
	isNew = name != revision.Annotations[extension.StampAnnotation] && !v.wasUsed(name) && stamp.Fresh(v.Clock.Now())
	return stamp, isNew, nil
}

// adjust changes the settings of a revision, and makes the extension its owner, in the name of
// an author.
func (v *visit) adjust(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, who user.Info) *halt {
	change := map[string]any{}
	if want := settingsOf(v.extension); want != settingsIn(&revision.Spec) {
		change["spec"] = want
	}
	if metav1.GetControllerOf(revision) == nil {
		// The list is written whole: nobody may have changed it meanwhile.
		change["metadata"] = map[string]any{"ownerReferences": append(slices.Clone(revision.OwnerReferences), v.owner()), "resourceVersion": revision.ResourceVersion}
	}
	if len(change) == 0 {
		return nil
	}
	writer, err := v.As(who)
	if err == nil {
		err = patch(ctx, writer, revision, change)
	}
	if err != nil {
		return v.refused(revision.Name, name{as: who}, err)
	}
	return nil
}

// note writes the annotations that have changed.
func (v *visit) note(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, stamp string, wish *wish) *halt {
	changed := map[string]string{}
	for key, value := range v.annotations(stamp, wish) {
		if revision.Annotations[key] != value {
			changed[key] = value
		}
	}
	if stamp == revision.Annotations[extension.StampAnnotation] {
		// Nobody has decided anything for the generation.
		delete(changed, extension.GenerationAnnotation)
	}
	if len(changed) == 0 {
		return settled()
	}
	if err := patch(ctx, v.Own, revision, map[string]any{"metadata": map[string]any{"annotations": changed}}); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return outdated()
		}
		return retry(status.Failed, fmt.Errorf("noting on %s what it was made of: %w", revision.Name, err))
	}
	return settled()
}

// patch changes a revision, the one that was read and no other of its name.
func patch(ctx context.Context, writer Revisions, revision *olmv1alpha1.ClusterExtensionRevision, change map[string]any) error {
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["uid"] = revision.UID
	content, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = writer.Patch(ctx, revision.Name, types.MergePatchType, content, metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// asIn is a wish about the image that a revision was made of, when it was not pulled again.
func (w *wish) asIn(revision *olmv1alpha1.ClusterExtensionRevision) *wish {
	if w.pinned != "" {
		return w
	}
	known := *w
	known.pinned = revision.Annotations[olmv1alpha1.ReferenceAnnotation]
	if known.bundle == nil {
		known.bundle = &status.Bundle{Name: revision.Annotations[olmv1alpha1.BundleAnnotation], Version: revision.Annotations[olmv1alpha1.VersionAnnotation]}
		known.pkg = revision.Annotations[olmv1alpha1.PackageAnnotation]
	}
	return &known
}
