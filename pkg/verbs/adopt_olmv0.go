package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/adopt"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/text"
)

type olmv0Options struct {
	adoptFlags
	request adopt.OLMv0Request
}

// newAdoptOLMv0 returns the command that turns installations of OLM v0 into extensions.
func newAdoptOLMv0(p Program) *cobra.Command {
	options := olmv0Options{adoptFlags: adoptFlags{program: p}}
	command := &cobra.Command{
		Use:   "olmv0 [SUBSCRIPTION...]",
		Short: "Take over what OLM v0 has installed, without touching what it runs",
		Long: "Take over what OLM v0 has installed. A Subscription with its ClusterServiceVersion becomes a ClusterExtension with\n" +
			"manual approval at the installed version, and a revision with the objects that OLM created from the bundle.\n" +
			"Objects are taken over as they are; they lose their owner and the labels by which OLM finds them, so that\n" +
			"deleting the ClusterServiceVersion deletes none of them.\n\n" +
			"Scale OLM's operators (olm-operator and catalog-operator) to zero first. The command prints a table, then takes over\n" +
			"one Subscription after the other. Subscription and ClusterServiceVersion stay: the command prints how to delete them.\n" +
			"It lists dependencies, OperatorConditions, OperatorGroups and copies, and does not take them over.\n\n" +
			"You need the rights to list OLM's objects, Deployments and objects of the kinds that bundles have, to create\n" +
			"revisionhistories/import, clusterextensionrevisions and clusterextensions, to patch clusterextensionrevisions, and to\n" +
			"get, create, patch and delete the objects. To finish an interrupted adoption, run the command again.",
		Example: p.examples(
			"% adopt olmv0 --dry-run",
			"% adopt olmv0 argocd-operator -n operators",
		),
		RunE: func(command *cobra.Command, args []string) error {
			options.request.Subscriptions = args
			return adoptOLMv0(command, options)
		},
	}
	flags := command.Flags()
	options.addTo(flags, "How long to wait for each revision until it has succeeded.")
	flags.StringVarP(&options.request.Namespace, "namespace", "n", "", "Namespace of the Subscriptions. Default: all namespaces.")
	flags.StringVar(&options.request.Extension, extensionFlag, "", "Name of the extension, for one Subscription. Default: the name of the package.")
	return command
}

func adoptOLMv0(command *cobra.Command, options olmv0Options) error {
	switch {
	case len(options.request.Subscriptions) > 0 && options.request.Namespace == "":
		return errors.New("names of Subscriptions need --namespace")
	case options.request.Extension != "" && len(options.request.Subscriptions) != 1:
		return fmt.Errorf("--%s needs the name of one Subscription", extensionFlag)
	}
	run, err := options.begin(command)
	if err != nil {
		return err
	}
	o := &fromOLMv0{adoption: run, options: options}
	return o.take(command.Context())
}

type fromOLMv0 struct {
	adoption
	options olmv0Options
}

// take prints the Subscriptions, and adopts them one after the other.
func (o *fromOLMv0) take(ctx context.Context) error {
	plans, err := o.PlanOLMv0(ctx, o.options.request)
	if err != nil {
		return fmt.Errorf("nothing adopted: %w", err)
	}
	if len(plans) == 0 {
		in := "in the cluster"
		if o.options.request.Namespace != "" {
			in = "in namespace " + o.options.request.Namespace
		}
		_, err := fmt.Fprintf(o.out, "there is no Subscription %s: nothing to adopt\n", in)
		return err
	}
	refused, err := o.show(ctx, plans)
	if err != nil {
		return err
	}
	return takeEach(&o.adoption, plans, refused, func(plan *adopt.OLMv0Plan) error {
		if plan.CSV == "" || len(plan.Obstacles()) > 0 {
			return nil
		}
		return o.adopt(ctx, plan)
	})
}

// show prints the Subscriptions, their objects, and the objects that are not adopted. It returns
// the reasons for refused Subscriptions.
func (o *fromOLMv0) show(ctx context.Context, plans []*adopt.OLMv0Plan) ([]string, error) {
	var refused, objects, left []string
	table := tabwriter.NewWriter(o.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "SUBSCRIPTION\tINSTALLED\tEXTENSION\tOBJECTS\tSTATE")
	for _, plan := range plans {
		obstacles := plan.Obstacles()
		if len(obstacles) == 0 && o.dryRun {
			if err := o.CheckOLMv0(ctx, plan); err != nil {
				obstacles = append(obstacles, err.Error())
			}
		}
		for _, obstacle := range obstacles {
			refused = append(refused, plan.Subscription.String()+": "+obstacle)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", plan.Subscription, plan.CSV, plan.Extension, len(plan.Objects), stateOf(plan, obstacles))
		for _, object := range plan.Objects {
			objects = append(objects, strings.TrimRight(fmt.Sprintf("%s\t%s\t%s\t%s", plan.Subscription, object.ID, object.State, object.Detail), "\t"))
		}
		for _, one := range plan.NotTaken {
			left = append(left, fmt.Sprintf("%s\t%s\t%s", plan.Subscription, one.What, one.Why))
		}
		for _, warning := range plan.Warnings {
			fmt.Fprintf(o.side, "warning: %s: %s\n", plan.Subscription, warning)
		}
	}
	if len(objects) > 0 && o.dryRun {
		fmt.Fprintln(table, "\nSUBSCRIPTION\tOBJECT\tSTATE\tDETAIL\n"+strings.Join(objects, "\n"))
	}
	if len(left) > 0 {
		fmt.Fprintln(table, "\nSUBSCRIPTION\tNOT TAKEN\tWHY\n"+strings.Join(left, "\n"))
	}
	o.warn()
	return refused, table.Flush()
}

func stateOf(plan *adopt.OLMv0Plan, obstacles []string) string {
	switch {
	case len(obstacles) > 0:
		return "refused"
	case plan.CSV == "":
		return "nothing is installed"
	case plan.Known:
		return "adopted before"
	default:
		return "can be adopted"
	}
}

// adopt adopts one Subscription, and prints the user's next steps.
func (o *fromOLMv0) adopt(ctx context.Context, plan *adopt.OLMv0Plan) error {
	revision, err := o.AdoptOLMv0(ctx, plan)
	o.warn()
	if err != nil {
		return err
	}
	if err := o.succeeds(ctx, revision); err != nil {
		return fmt.Errorf("%s is adopted, but %w", plan.Subscription, err)
	}
	fmt.Fprintf(o.out, "\n%s is extension %s: %s, %s has succeeded\n", plan.Subscription, plan.Extension, text.Count(len(plan.Objects), "object"), revision)
	fmt.Fprintln(o.out, "Delete these objects of OLM before you start OLM again; otherwise OLM installs the operator again:")
	fmt.Fprintf(o.out, "  kubectl delete subscriptions.operators.coreos.com -n %s %s\n", plan.Subscription.Namespace, plan.Subscription.Name)
	fmt.Fprintf(o.out, "  kubectl delete clusterserviceversions.operators.coreos.com -n %s %s --wait=false\n", plan.Subscription.Namespace, plan.CSV)
	followed := "OLM asked for approval before each upgrade. To have Penstock do the same, unpin the version:"
	change := map[string]any{"spec": map[string]any{"source": map[string]any{"catalog": map[string]any{"version": nil}}}}
	if plan.Automatic {
		followed = fmt.Sprintf("OLM upgraded without approval. The ClusterExtension is pinned to %s, and waits for approval. To have Penstock upgrade without approval:", plan.Version)
		change["metadata"] = map[string]any{"annotations": map[string]any{extension.ApprovalAnnotation: nil}}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.out, "%s\n  kubectl patch clusterextension %s --type=merge -p '%s'\n", followed, plan.Extension, patch)
	return err
}
