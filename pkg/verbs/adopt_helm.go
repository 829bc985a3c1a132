package verbs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/adopt"
	"github.com/penstock-project/penstock/pkg/text"
)

type helmOptions struct {
	adoptFlags
	request adopt.Request
	undo    bool
	manager string
}

// newAdoptHelm returns the command that turns a Helm release into an extension, or back.
func newAdoptHelm(p Program) *cobra.Command {
	options := helmOptions{adoptFlags: adoptFlags{program: p}}
	command := &cobra.Command{
		Use:   "helm RELEASE -n NAMESPACE",
		Short: "Turn a Helm release into an extension, without touching what it runs",
		Long: "Turn a release that Helm 3 or Helm 4 installed into an extension. Helm's newest five revisions become revisions\n" +
			"with the same numbers, the deployed one Active, the older ones Archived, so that diffs and rollbacks work from\n" +
			"the first day. Objects are taken over as they are, and none is created again. Where an object matches the\n" +
			"release, only its ownership changes. Helm's own records stay.\n\n" +
			"The command refuses when objects differ from the release, or are missing, unless --overwrite is given.\n" +
			"While Helm has a newer revision than the adopted one, Penstock writes nothing (reason Contested):\n" +
			"the same command adopts that revision, and --undo gives everything back to Helm.\n\n" +
			"You need the rights to read the Secrets of the release and to annotate the Secret of its deployed revision, to create\n" +
			"revisionhistories/import and clusterextensionrevisions, and to get, create and patch the objects. To finish an\n" +
			"interrupted adoption, run the command again.",
		Example: p.examples(
			"% adopt helm shop -n shop --dry-run",
			"% adopt helm shop -n shop",
			"% adopt helm shop -n shop --undo",
		),
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			options.request.Release = args[0]
			return adoptHelm(command, options)
		},
	}
	flags := command.Flags()
	options.addTo(flags, "How long to wait until the revision has succeeded, or is gone.")
	flags.StringVarP(&options.request.Namespace, "namespace", "n", "", "Namespace of the release.")
	flags.StringVar(&options.request.Extension, extensionFlag, "", "Name of the extension. Default: the name of the release.")
	flags.BoolVar(&options.undo, "undo", false, "Give everything back to Helm: the revisions are deleted, the objects stay as they are.")
	flags.BoolVar(&options.request.Overwrite, "overwrite", false, "Overwrite objects that differ from the release, and create missing ones.")
	flags.StringVar(&options.manager, "field-manager", "helm", "Field manager that gets the fields back (--undo): the name of the program that runs Helm.")
	if err := command.MarkFlagRequired("namespace"); err != nil {
		panic(err) // Only an undefined flag causes an error.
	}
	return command
}

func adoptHelm(command *cobra.Command, options helmOptions) error {
	if options.request.Extension == "" {
		options.request.Extension = options.request.Release
	}
	if options.undo && options.request.Overwrite {
		return errors.New("--overwrite does nothing with --undo")
	}
	run, err := options.begin(command)
	if err != nil {
		return err
	}
	h := &fromHelm{adoption: run, options: options}
	if options.undo {
		return h.returnToOwner(command.Context())
	}
	return h.take(command.Context())
}

type fromHelm struct {
	adoption
	options helmOptions
}

func (h *fromHelm) take(ctx context.Context) error {
	plan, err := h.Plan(ctx, h.options.request)
	if err != nil {
		return fmt.Errorf("nothing adopted: %w", err)
	}
	for _, warning := range plan.Warnings {
		fmt.Fprintf(h.side, "warning: %s\n", warning)
	}
	if h.dryRun {
		return h.show(ctx, plan)
	}
	if obstacles := plan.Obstacles(); len(obstacles) > 0 {
		return fmt.Errorf("nothing adopted:\n  %s", strings.Join(obstacles, "\n  "))
	}
	outcome, err := h.Adopt(ctx, plan)
	h.warn()
	switch {
	case errors.Is(err, adopt.ErrKept):
		return fmt.Errorf("nothing adopted: %w", err)
	case err != nil:
		return toFinish(err)
	}
	if outcome.Before {
		fmt.Fprintf(h.out, "%s was adopted before as extension %s\n", plan.Request, plan.Extension)
	}
	if err := h.succeeds(ctx, outcome.Revision); err != nil {
		return fmt.Errorf("%s is adopted as extension %s, but %w", plan.Request, plan.Extension, err)
	}
	_, err = fmt.Fprintf(h.out, "%s is extension %s: %s, %s has succeeded\n", plan.Request, plan.Extension,
		text.Count(len(plan.Objects), "object"), outcome.Revision)
	return err
}

func (h *fromHelm) show(ctx context.Context, plan *adopt.Plan) error {
	table := tabwriter.NewWriter(h.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "REVISION\tSTATE\tHELM\tCHART\tOBJECTS")
	for _, one := range plan.Revisions {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", one.Name, one.State, one.Status, one.Chart, one.Objects)
	}
	fmt.Fprintln(table)
	fmt.Fprintln(table, "OBJECT\tSTATE\tDETAIL")
	for _, one := range plan.Objects {
		fmt.Fprintln(table, strings.TrimRight(fmt.Sprintf("%s\t%s\t%s", one.ID, one.State, one.Detail), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	obstacles := plan.Obstacles()
	err := h.Check(ctx, plan)
	h.warn()
	if err != nil {
		obstacles = append(obstacles, err.Error())
	}
	if len(obstacles) > 0 {
		return fmt.Errorf("the adoption would be refused; nothing was written:\n  %s", strings.Join(obstacles, "\n  "))
	}
	_, err = fmt.Fprintf(h.out, "\n%s can be adopted as extension %s; nothing was written\n", plan.Request, plan.Extension)
	return err
}

func (h *fromHelm) returnToOwner(ctx context.Context) error {
	back, err := h.PlanUndo(ctx, h.options.request, h.options.manager)
	if err != nil {
		return fmt.Errorf("nothing undone: %w", err)
	}
	if h.dryRun {
		fmt.Fprintln(h.out, "REVISIONS TO DELETE")
		fmt.Fprintln(h.out, strings.Join(back.Revisions, "\n"))
		fmt.Fprintln(h.out, "\nOBJECTS THAT STAY")
		for _, id := range back.Objects {
			fmt.Fprintln(h.out, id)
		}
		_, err := fmt.Fprintf(h.out, "\n%s can be given back to Helm; nothing was written\n", back.Request)
		return err
	}
	forgotten, err := h.undo(ctx, back)
	if err != nil {
		return err
	}
	if !forgotten {
		fmt.Fprintf(h.out, "the history stays, as you cannot delete it: to adopt the release again under this name, an administrator has to run: kubectl delete revisionhistory %s\n", back.Extension)
	}
	_, err = fmt.Fprintf(h.out, "%s is Helm's again: %s of extension %s are gone, %s stay as they are\n", back.Request,
		text.Count(len(back.Revisions), "revision"), back.Extension, text.Count(len(back.Objects), "object"))
	return err
}
