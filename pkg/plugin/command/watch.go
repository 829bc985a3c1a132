package command

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/text"
)

// everything are the extensions and plans of a cluster.
type everything = follow.Pair[*v1alpha1.ClusterExtensionRevision, *hcov1alpha1.ConfigurationPlan]

// followAll follows revisions that options pick, and all plans, as far as the caller may see
// these.
func followAll(ctx context.Context, s *session.Session, cluster *session.Cluster, options metav1.ListOptions) (func(context.Context, func(error), func(everything) (bool, error)) error, error) {
	plans := cluster.Plans(metav1.ListOptions{})
	seen, err := readablePlans(ctx, s, cluster)
	if err != nil {
		return nil, err
	}
	if seen.ResourceVersion == "" {
		plans = noPlans()
	}
	return follow.Both(cluster.Revisions(options), plans), nil
}

// noPlans has none, and never will.
func noPlans() follow.Source[*hcov1alpha1.ConfigurationPlan] {
	return follow.Source[*hcov1alpha1.ConfigurationPlan]{
		List: func(context.Context, metav1.ListOptions) ([]*hcov1alpha1.ConfigurationPlan, string, error) {
			return nil, "", nil
		},
		Watch: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			silent := watch.NewFake()
			context.AfterFunc(ctx, silent.Stop)
			return silent, nil
		},
	}
}

// watchAll follows all extensions and plans until the person has seen enough.
func watchAll(ctx context.Context, s *session.Session, cluster *session.Cluster) error {
	each, err := followAll(ctx, s, cluster, unarchived())
	if err != nil {
		return err
	}
	return progress.Following[everything]{
		Each: each, Screen: s.Out, Clock: s.Clock,
		Picture: func(all everything) []screen.Line { return overviewLines(overview.Of(all.First), all.Second) },
		Ended:   func(everything) (bool, error) { return false, nil },
	}.Run(ctx)
}

// overviewLines are one line for each extension and each plan; what is well is left out
// first where there is no room.
func overviewLines(extensions []overview.Extension, plans []*hcov1alpha1.ConfigurationPlan) []screen.Line {
	head := text.Count(len(extensions), "extension")
	if len(plans) > 0 {
		head += ", " + text.Count(len(plans), "plan")
	}
	lines := []screen.Line{{Text: head, Keep: true}}
	for _, extension := range extensions {
		lines = append(lines, progress.RevisionLines(extension.Current())[0])
	}
	for _, plan := range plans {
		line := progress.PlanLines(plan)[0]
		line.Text = "plan " + line.Text
		if plan.Status.Phase == hcov1alpha1.PhaseReviewRequired {
			line.Glyph, line.Style = screen.Notice, screen.Yellow
		}
		lines = append(lines, line)
	}
	for i := range lines[1:] {
		lines[i+1].Keep = lines[i+1].Glyph != screen.Good
	}
	return lines
}

// printChanges prints each object whenever it changes, for a program: of everything until
// the context ends, of an extension until its newest revision is rolled out, or stops.
func printChanges(ctx context.Context, s *session.Session, cluster *session.Cluster, args []string, output session.Format) error {
	printed := map[types.UID]string{}
	if len(args) > 0 {
		found, err := cluster.Find(ctx, args[0])
		if err != nil {
			return err
		}
		target := watched(found)
		return within(ctx, cluster.Revisions(session.OfExtension(found.Name)).Each(ctx, func(all []*v1alpha1.ClusterExtensionRevision) (bool, error) {
			var objects []runtime.Object
			for _, revision := range all {
				objects = append(objects, changedSince(printed, revision)...)
			}
			if err := s.PrintEach(output, objects); err != nil {
				return true, err
			}
			return review.RolledOut(all, target)
		}))
	}
	each, err := followAll(ctx, s, cluster, unarchived())
	if err != nil {
		return err
	}
	return within(ctx, each(ctx, func(err error) { s.Err.Para(screen.Yellow, screen.Notice, "the server does not answer: "+err.Error()) }, func(all everything) (bool, error) {
		var objects []runtime.Object
		for _, revision := range all.First {
			objects = append(objects, changedSince(printed, revision)...)
		}
		for _, plan := range all.Second {
			objects = append(objects, changedSince(printed, plan)...)
		}
		return false, s.PrintEach(output, objects)
	}))
}

// within is the cause of the end of a context, where that ended what was followed.
func within(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return cause
	}
	return err
}

// changedSince is an object unless it was printed as it is.
func changedSince[T interface {
	metav1.Object
	runtime.Object
}](printed map[types.UID]string, object T) []runtime.Object {
	if printed[object.GetUID()] == object.GetResourceVersion() {
		return nil
	}
	printed[object.GetUID()] = object.GetResourceVersion()
	return []runtime.Object{object}
}
