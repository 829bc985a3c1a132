package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

type diffOptions struct {
	live, stat, unfold bool
	object             string
	output             session.Format
}

func newDiff(s *session.Session) *cobra.Command {
	var options diffOptions
	command := &cobra.Command{
		Use:   "diff EXTENSION|REVISION|FROM..TO",
		Short: "Show what a revision changes, in words first",
		Long: "Show what a revision changes against the one before it: what matters in words, then a table, then the lines.\n" +
			"For an extension, it shows the newest revision. FROM..TO compares any two; --live, or ..live, compares with the\n" +
			"cluster as it is now.\n\n" +
			"Exit code: 0 nothing changes, 1 something changes, 2 unknown.",
		Example: "  # What the newest revision changes\n  kubectl penstock diff lighthouse\n" +
			"  # What is different in the cluster, without the lines\n  kubectl penstock diff lighthouse --live --stat\n" +
			"  # For the comment of a review\n  kubectl penstock diff lighthouse -o markdown\n" +
			"  # Two revisions, one object\n  kubectl penstock diff lighthouse-1..lighthouse-2 --object Deployment.apps/lighthouse-system/lighthouse-webhook",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			diff, err := readDiff(command.Context(), cluster, args[0], options)
			if err != nil {
				return err
			}
			view := changes.View{Lines: !options.stat, Unfold: options.unfold || options.object != ""}
			if options.output != "" {
				err = changes.Write(s, options.output, diff, view)
			} else {
				changes.Print(s.Out, diff, view)
			}
			if err != nil {
				return err
			}
			return review.Verdict(diff)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.live, "live", false, "Compare with the cluster as it is now.")
	flags.BoolVar(&options.stat, "stat", false, "Leave out the lines.")
	addUnfold(flags, &options.unfold)
	flags.StringVar(&options.object, "object", "", "Only this object, or these: KIND[/NAMESPACE][/NAME], with KIND such as Deployment or Deployment.apps.")
	options.output.AddWithMarkdown(flags)
	return command
}

func addUnfold(flags *pflag.FlagSet, unfold *bool) {
	flags.BoolVar(unfold, "unfold", false, "Show each object of which only labels of the version change (app.kubernetes.io/version, helm.sh/chart).")
}

func readDiff(ctx context.Context, cluster *session.Cluster, name string, options diffOptions) (*v1alpha1.RevisionDiff, error) {
	query, err := options.query()
	if err != nil {
		return nil, err
	}
	if !strings.Contains(name, "..") {
		found, err := cluster.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		if name = found.Newest().Name; found.Revision != nil {
			name = found.Revision.Name
		}
	}
	switch {
	case strings.Contains(name, ".."):
		if options.live {
			return nil, outcome.Errorf(outcome.Unknown, "--live compares one revision with the cluster: give its name instead of %s", name)
		}
		diff, err := review.Get(ctx, cluster, name, query)
		if apierrors.IsNotFound(err) {
			return nil, missingSide(ctx, cluster, name, err)
		}
		return diff, err
	case options.live:
		return review.Get(ctx, cluster, name+".."+v1alpha1.Live, query)
	default:
		return review.GetOwn(ctx, cluster, name, query)
	}
}

// missingSide returns the error about the side of a comparison that does not exist.
func missingSide(ctx context.Context, cluster *session.Cluster, name string, err error) error {
	from, to, _ := strings.Cut(name, "..")
	for _, side := range []string{from, to} {
		if side == "" || side == v1alpha1.Live {
			continue
		}
		if _, unknown := cluster.Find(ctx, side); session.IsUnknownName(unknown) {
			return unknown
		}
	}
	return err
}

func (o diffOptions) query() (map[string]string, error) {
	query := map[string]string{}
	if o.stat && (o.output == "" || o.output == session.Markdown) {
		query["unified"] = "false"
	}
	if o.object == "" {
		return query, nil
	}
	parts := strings.Split(o.object, "/")
	keys := map[int][]string{
		1: {"objectKind"}, 2: {"objectKind", "objectName"}, 3: {"objectKind", "objectNamespace", "objectName"},
	}[len(parts)]
	if keys == nil {
		return nil, outcome.Errorf(outcome.Unknown, "--object %q: want KIND, KIND/NAME or KIND/NAMESPACE/NAME", o.object)
	}
	for i, key := range keys {
		if parts[i] != "" {
			query[key] = parts[i]
		}
	}
	return query, nil
}
