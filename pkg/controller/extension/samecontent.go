package extension

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// settings are the fields of an existing revision that may change.
type settings struct {
	Deadline  int32                      `json:"progressDeadlineMinutes"`
	Delay     int32                      `json:"successDelaySeconds"`
	Metrics   []string                   `json:"metricChecks"`
	OnFailure olmv1alpha1.OnFailure      `json:"onFailure"`
	Teardown  olmv1alpha1.TeardownPolicy `json:"teardownPolicy"`
}

// settingsOf returns the settings of an extension. A webhook has validated them. Invalid settings
// count as absent.
func settingsOf(e *extension.Extension) settings {
	return settings{
		Deadline:  cmp.Or(e.Spec.ProgressDeadlineMinutes, number(e.Annotations[extension.ProgressDeadlineAnnotation])),
		Delay:     number(e.Annotations[extension.SuccessDelayAnnotation]),
		Metrics:   extension.ParseMetricChecks(e.Annotations[extension.MetricChecksAnnotation]),
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
	spec.ProgressDeadlineMinutes, spec.SuccessDelaySeconds, spec.MetricChecks, spec.OnFailure, spec.TeardownPolicy = s.Deadline, s.Delay, s.Metrics, s.OnFailure, s.Teardown
}

func settingsIn(spec *olmv1alpha1.ClusterExtensionRevisionSpec) settings {
	return settings{
		Deadline: spec.ProgressDeadlineMinutes, Delay: spec.SuccessDelaySeconds, Metrics: spec.MetricChecks,
		OnFailure: cmp.Or(spec.OnFailure, olmv1alpha1.OnFailureNone), Teardown: cmp.Or(spec.TeardownPolicy, olmv1alpha1.TeardownPolicyDelete),
	}
}

// Keep updates a revision that already has the desired content:
//
//  1. It withdraws a proposal of other content.
//  2. It writes the settings and the owner as the user who wrote the extension, if their stamp is
//     valid.
//  3. It does not change a revision without this owner.
//  4. It writes the annotations as this process. They have no effect, but record that the stamp is
//     used.
func (w engineWriter) Keep(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, made *content) *maker.Outcome {
	if made != nil {
		w.rendered.forget(w.Name)
	}
	if stopped := w.Withdraw(ctx, nil); stopped != nil {
		return stopped
	}
	stamp, isNew, err := w.newStamp(revision)
	if err != nil {
		return settled() // the write has no effect
	}
	decided := revision.Annotations[extension.StampAnnotation]
	if isNew {
		if stopped := w.adjust(ctx, revision, stamp.Info()); stopped != nil {
			return stopped
		}
		decided = w.stampName(stamp)
	} else if !w.isOwned(revision) {
		return settled()
	}
	return w.note(ctx, revision, decided, w.desired.of(made).asIn(revision))
}

// newStamp returns the stamp of the extension, and whether it is valid and unused. The error is the
// reason why the write of the extension does not count.
func (s *scope) newStamp(revision *olmv1alpha1.ClusterExtensionRevision) (stamp *author.Stamp, isNew bool, err error) {
	stamp, err = author.ClusterExtensions().Verify(s.Key, s.object)
	if err != nil {
		return nil, false, err
	}
	name := s.stampName(stamp)
	isNew = name != revision.Annotations[extension.StampAnnotation] && !s.wasUsed(name) && stamp.Fresh(s.Clock.Now())
	return stamp, isNew, nil
}

// adjust writes the settings of a revision, and makes the extension its owner, as an author.
func (s *scope) adjust(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, who user.Info) *maker.Outcome {
	change := map[string]any{}
	if want := settingsOf(s.extension); !equality.Semantic.DeepEqual(want, settingsIn(&revision.Spec)) {
		change["spec"] = want
	}
	metadata := map[string]any{}
	if metav1.GetControllerOf(revision) == nil {
		// The patch replaces the whole list, so the resourceVersion must match.
		metadata["ownerReferences"], metadata["resourceVersion"] = append(slices.Clone(revision.OwnerReferences), s.owner()), revision.ResourceVersion
	}
	if until := s.reportDrift(); until != revision.Annotations[extension.ReportDriftUntilAnnotation] {
		annotations := map[string]any{extension.ReportDriftUntilAnnotation: nil}
		if until != "" {
			annotations[extension.ReportDriftUntilAnnotation] = until
		}
		metadata["annotations"] = annotations
	}
	if len(metadata) > 0 {
		change["metadata"] = metadata
	}
	if len(change) == 0 {
		return nil
	}
	return s.Patch(ctx, who, revision, change)
}

// reportDrift returns the time until which drift of the extension is reported; empty if it has
// passed.
func (s *scope) reportDrift() string {
	value := s.extension.Annotations[extension.ReportDriftUntilAnnotation]
	if _, err := olmv1alpha1.ReportsDriftUntil(value, s.Clock.Now()); err != nil {
		return ""
	}
	return value
}

func (s *scope) note(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, stamp string, desired *desired) *maker.Outcome {
	changed := map[string]any{}
	for key, value := range s.annotations(stamp, desired) {
		if revision.Annotations[key] != value {
			changed[key] = value
		}
	}
	if stamp == revision.Annotations[extension.StampAnnotation] {
		// No user has decided anything for this generation.
		delete(changed, extension.GenerationAnnotation)
	}
	if len(changed) == 0 {
		return settled()
	}
	if stopped := s.annotate(ctx, revision, changed); stopped != nil {
		return stopped
	}
	return settled()
}

// asIn returns the desired state with the image of a revision, if the image was not pulled again.
func (d *desired) asIn(revision *olmv1alpha1.ClusterExtensionRevision) *desired {
	if d.pinned != "" {
		return d
	}
	known := *d
	known.pinned = revision.Annotations[olmv1alpha1.ReferenceAnnotation]
	if known.bundle == nil {
		known.bundle = &status.Bundle{Name: revision.Annotations[olmv1alpha1.BundleAnnotation], Version: revision.Annotations[olmv1alpha1.VersionAnnotation]}
		known.pkg = revision.Annotations[olmv1alpha1.PackageAnnotation]
	}
	return &known
}
