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

type olmv1Options struct {
	adoptFlags
	request adopt.OLMv1Request
	undo    bool
}

// newAdoptOLMv1 returns the command that turns installations of OLM v1 into extensions, or back.
func newAdoptOLMv1(p Program) *cobra.Command {
	options := olmv1Options{adoptFlags: adoptFlags{program: p}}
	command := &cobra.Command{
		Use:   "olmv1 [CLUSTEREXTENSION...]",
		Short: "Take over what OLM v1 has installed, without touching what it runs",
		Long: "Take over what OLM v1's operator-controller has installed: the newest five revisions of each ClusterExtension become\n" +
			"revisions with the same numbers, the newest Active, the older ones Archived. Their content comes from ClusterObjectSets,\n" +
			"from ClusterExtensionRevisions of version v1, or else from the Helm release; the ClusterExtension owns them.\n" +
			"Objects are taken over as they are; they lose their owner, so that deleting OLM's own objects deletes none of them.\n\n" +
			"Scale operator-controller to zero first. The command prints a table, then takes over one extension after the other.\n" +
			"It refuses when objects differ from the rolled-out content, or are missing, unless --overwrite is given.\n" +
			"With --undo, operator-controller finds its objects as they were.\n\n" +
			"You need the rights to list ClusterExtensions, OLM's revisions and Deployments, to read the Secrets in the namespace of\n" +
			"operator-controller, to create revisionhistories/import and clusterextensionrevisions, and to get, create, patch and\n" +
			"delete the objects. To finish an interrupted adoption, run the command again.",
		Example: p.examples(
			"% adopt olmv1 --dry-run",
			"% adopt olmv1 argocd",
			"% adopt olmv1 argocd --undo",
		),
		RunE: func(command *cobra.Command, args []string) error {
			options.request.Extensions = args
			return adoptOLMv1(command, options)
		},
	}
	flags := command.Flags()
	options.addTo(flags, "How long to wait for each revision until it has succeeded, or is gone.")
	flags.StringVarP(&options.request.Namespace, "namespace", "n", "olmv1-system", "Namespace of operator-controller.")
	flags.BoolVar(&options.undo, "undo", false, "Give the extensions back to OLM: the revisions are deleted, the objects stay as they are.")
	flags.BoolVar(&options.request.Overwrite, "overwrite", false, "Overwrite objects that differ from the rolled-out content, and create missing ones.")
	return command
}

func adoptOLMv1(command *cobra.Command, options olmv1Options) error {
	switch {
	case options.undo && options.request.Overwrite:
		return errors.New("--overwrite does nothing with --undo")
	case options.undo && len(options.request.Extensions) == 0:
		return errors.New("--undo needs the names of ClusterExtensions")
	}
	run, err := options.begin(command)
	if err != nil {
		return err
	}
	o := &fromOLMv1{adoption: run, options: options}
	if options.undo {
		return o.returnToOwner(command.Context())
	}
	return o.take(command.Context())
}

type fromOLMv1 struct {
	adoption
	options olmv1Options
}

// take prints the extensions, and adopts them one after the other.
func (o *fromOLMv1) take(ctx context.Context) error {
	plans, err := o.PlanOLMv1(ctx, o.options.request)
	if err != nil {
		return fmt.Errorf("nothing adopted: %w", err)
	}
	if len(plans) == 0 {
		_, err := fmt.Fprintln(o.out, "there is no ClusterExtension in the cluster: nothing to adopt")
		return err
	}
	refused, err := o.show(ctx, plans)
	if err != nil {
		return err
	}
	return takeEach(&o.adoption, plans, refused, func(plan *adopt.OLMv1Plan) error {
		if plan.From == "" || len(plan.Obstacles()) > 0 {
			return nil
		}
		return o.adopt(ctx, plan)
	})
}

// show prints the table, and the objects that differ from the rolled out content. It returns the
// reasons for refused extensions.
func (o *fromOLMv1) show(ctx context.Context, plans []*adopt.OLMv1Plan) ([]string, error) {
	var refused, differing []string
	table := tabwriter.NewWriter(o.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "EXTENSION\tFROM\tREVISIONS\tOBJECTS\tDIFFERENCES\tSTATE")
	for _, plan := range plans {
		state := "can be adopted"
		obstacles := plan.Obstacles()
		if len(obstacles) == 0 && o.dryRun {
			if err := o.CheckOLMv1(ctx, plan); err != nil {
				obstacles = append(obstacles, err.Error())
			}
		}
		switch {
		case len(obstacles) > 0:
			state = "refused"
		case plan.From == "":
			state = "nothing is installed"
		case plan.Known:
			state = "adopted before"
		}
		for _, obstacle := range obstacles {
			refused = append(refused, plan.Extension+": "+obstacle)
		}
		for _, object := range plan.Objects {
			if object.State != adopt.Same && object.State != adopt.Ours {
				differing = append(differing, fmt.Sprintf("%s\t%s\t%s\t%s", plan.Extension, object.ID, object.State, object.Detail))
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\n", plan.Extension, plan.From, len(plan.Revisions), len(plan.Objects), plan.Differences(), state)
		for _, warning := range plan.Warnings {
			fmt.Fprintf(o.side, "warning: %s: %s\n", plan.Extension, warning)
		}
	}
	if len(differing) > 0 {
		fmt.Fprintln(table, "\nEXTENSION\tOBJECT\tSTATE\tDETAIL\n"+strings.Join(differing, "\n"))
	}
	o.warn()
	return refused, table.Flush()
}

func (o *fromOLMv1) adopt(ctx context.Context, plan *adopt.OLMv1Plan) error {
	revision, err := o.AdoptOLMv1(ctx, plan)
	o.warn()
	if err != nil {
		return err
	}
	if err := o.succeeds(ctx, revision); err != nil {
		return fmt.Errorf("%s is adopted, but %w", plan.Extension, err)
	}
	_, err = fmt.Fprintf(o.out, "%s is adopted from %s: %s, %s has succeeded\n", plan.Extension, plan.From, text.Count(len(plan.Objects), "object"), revision)
	return err
}

func (o *fromOLMv1) returnToOwner(ctx context.Context) error {
	for _, name := range o.options.request.Extensions {
		back, err := o.PlanUndoOLMv1(ctx, o.options.request.Namespace, name)
		if err != nil {
			return fmt.Errorf("the adoption of %s was not undone: %w", name, err)
		}
		if o.dryRun {
			fmt.Fprintf(o.out, "%s can be given back to OLM: %s would be deleted, %s would stay; nothing was written\n", name,
				text.Count(len(back.Revisions), "revision"), text.Count(len(back.Objects), "object"))
			continue
		}
		forgotten, err := o.undo(ctx, back)
		if err != nil {
			return err
		}
		if !forgotten {
			fmt.Fprintf(o.out, "the history stays, as you cannot delete it: to adopt %[1]s again, an administrator has to run: kubectl delete revisionhistory %[1]s\n", name)
		}
		fmt.Fprintf(o.out, "%s is OLM's again: %s are gone, %s stay as they are\n", name,
			text.Count(len(back.Revisions), "revision"), text.Count(len(back.Objects), "object"))
	}
	return nil
}
