package command

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/extensions"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/text"
)

type everything = follow.Pair[[]*v1alpha1.ClusterExtensionRevision, []*hcov1alpha1.ConfigurationPlan]

// followAll follows the revisions that match options, and all plans that the caller may see.
func followAll(ctx context.Context, s *session.Session, cluster *session.Cluster, options metav1.ListOptions) (follow.Each[everything], error) {
	plans := cluster.Plans(metav1.ListOptions{})
	seen, err := readablePlans(ctx, s, cluster)
	if err != nil {
		return nil, err
	}
	if seen.ResourceVersion == "" {
		plans = none[*hcov1alpha1.ConfigurationPlan]()
	}
	return follow.Both(cluster.Revisions(options).Follow, plans.Follow), nil
}

// none returns a source that is always empty.
func none[T metav1.Object]() follow.Source[T] {
	return follow.Source[T]{
		List: func(context.Context, metav1.ListOptions) ([]T, string, error) { return nil, "", nil },
		Watch: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			silent := watch.NewFake()
			context.AfterFunc(ctx, silent.Stop)
			return silent, nil
		},
	}
}

// withAsked adds the ClusterExtensions to everything.
type withAsked = follow.Pair[everything, []*unstructured.Unstructured]

// watchAll follows all extensions and plans until the user ends it.
func watchAll(ctx context.Context, s *session.Session, cluster *session.Cluster) error {
	each, err := followAll(ctx, s, cluster, unarchived())
	if err != nil {
		return err
	}
	asked := none[*unstructured.Unstructured]()
	if seen, err := clusterExtensions(ctx, s, cluster); err != nil {
		return err
	} else if seen != nil {
		asked = extensions.Source(cluster, metav1.ListOptions{})
	}
	return progress.Following[withAsked]{
		Each: follow.Both(each, asked.Follow), Screen: s.Out, Clock: s.Clock,
		Picture: func(all withAsked) []screen.Line {
			objects := make([]unstructured.Unstructured, len(all.Second))
			for i, one := range all.Second {
				objects[i] = *one
			}
			joined, err := join(overview.Of(all.First.First), objects)
			if err != nil {
				return []screen.Line{{Text: err.Error()}}
			}
			return overviewLines(joined, all.First.Second)
		},
		Ended: func(withAsked) (bool, error) { return false, nil },
	}.Run(ctx)
}

// overviewLines returns one line for each extension and each plan. If the space is short, healthy
// objects are omitted first.
func overviewLines(all []overview.Extension, plans []*hcov1alpha1.ConfigurationPlan) []screen.Line {
	head := text.Count(len(all), "extension")
	if len(plans) > 0 {
		head += ", " + text.Count(len(plans), "plan")
	}
	lines := []screen.Line{{Text: head, Keep: true}}
	for _, one := range all {
		given := advice.Extension(one)[0]
		line := screen.Line{Text: one.Name + ": " + given.State()}
		if current := one.Current(); current != nil {
			line = progress.RevisionLines(current)[0]
			if given.Subject != current.Name {
				line.Text += "; " + given.Subject + " " + given.What + ": " + given.State()
			}
		}
		line.Glyph, line.Style = progress.Mark(given.Signal)
		lines = append(lines, line)
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

// printChanges prints each object whenever it changes, for programs. Without a name it continues
// until the context ends. For an extension it continues until its newest revision is rolled out, or
// stops.
func printChanges(ctx context.Context, s *session.Session, cluster *session.Cluster, args []string, output session.Format) error {
	printed := map[types.UID]string{}
	if len(args) > 0 {
		found, err := cluster.Find(ctx, args[0])
		if err != nil {
			return err
		}
		target := watched(found)
		err = within(ctx, cluster.Revisions(session.OfExtension(found.Name)).Each(ctx, func(all []*v1alpha1.ClusterExtensionRevision) (bool, error) {
			var objects []runtime.Object
			for _, revision := range all {
				objects = append(objects, changedSince(printed, revision)...)
			}
			if err := s.PrintEach(output, objects); err != nil {
				return true, err
			}
			return review.RolledOut(all, target)
		}))
		if err != nil {
			return err
		}
		return stands(ctx, cluster, found)
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

// within returns the cause of the end of a context, if err came from that.
func within(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return cause
	}
	return err
}

// changedSince drops an object that was already printed in this state.
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
