package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/store/gc"
	"github.com/penstock-project/penstock/pkg/text"
	"github.com/penstock-project/penstock/pkg/verbs"
)

// The exit codes of fsck. The other codes are wrongInput, and 1 for a check that failed to run.
const (
	exitLeftOver = 3
	exitDamaged  = 4
)

func newFsckCommand() *cobra.Command {
	var check database.Fsck
	var output string
	api := client.Flags{UserAgent: userAgent()}
	command := &cobra.Command{
		Use:   "fsck (--data-dir DIR | --etcd-servers URL | --kubeconfig FILE)",
		Short: "Check a store",
		Long: "Check that every record of a store decodes, every digest holds, every reference resolves, every inventory\n" +
			"belongs to an extension, and nothing is left over. The server may run meanwhile: with --data-dir, fsck\n" +
			"asks the running etcd, or starts one for the check when none runs.\n\n" +
			"--repair deletes leftover records. That is safe while a server runs. It repairs nothing that it would have to guess:\n" +
			"the table says what to do about the rest.\n\n" +
			"--kubeconfig asks the API of a cluster, for users who cannot reach the store. It reads all revisions, their manifests\n" +
			"and histories, and all plans, as the user of the file. The API does not serve inventories, runs of plans, or leftover\n" +
			"records. You need the rights to list clusterextensionrevisions and configurationplans, to get\n" +
			"clusterextensionrevisions/manifests and revisionhistories, and to get the Secrets themselves in the cluster; fsck says\n" +
			"which rights are missing.\n\n" +
			"Exit codes: 0 the store is sound, 1 it could not be checked, 2 a flag is wrong, 3 something is left over, 4 something is damaged\n" +
			"or missing.",
		Example: "  penstock fsck --data-dir /var/lib/penstock\n" +
			"  kubectl exec -n penstock-system deploy/penstock -- penstock fsck --data-dir /var/lib/penstock\n" +
			"  penstock fsck --etcd-servers https://etcd:2379 --etcd-cafile ca.crt --etcd-certfile tls.crt --etcd-keyfile tls.key\n" +
			"  penstock fsck --kubeconfig ~/.kube/config",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			byAPI := command.Flags().Changed("kubeconfig") || command.Flags().Changed("context")
			if err := oneStore(check, byAPI); err != nil {
				return verbs.Unusable(err)
			}
			if output != "" && output != "json" && output != "wide" {
				return verbs.Unusable(fmt.Errorf("--output %q: want json or wide", output))
			}
			if byAPI {
				return fsckByAPI(command, api, output)
			}
			report, collected, err := check.Run(command.Context())
			if err != nil {
				return fmt.Errorf("the store was not checked: %w", err)
			}
			if err := printReport(command.OutOrStdout(), report, collected, output); err != nil {
				return err
			}
			return outcome(report)
		},
	}
	flags := command.Flags()
	api.Add(flags)
	flags.StringVar(&check.DataDir, "data-dir", "", "Data directory of an embedded store.")
	flags.StringSliceVar(&check.Transport.ServerList, "etcd-servers", nil, "URLs of an external etcd.")
	flags.StringVar(&check.Transport.CertFile, "etcd-certfile", "", "Client certificate for the external etcd.")
	flags.StringVar(&check.Transport.KeyFile, "etcd-keyfile", "", "Key of the client certificate.")
	flags.StringVar(&check.Transport.TrustedCAFile, "etcd-cafile", "", "Certificate authorities of the external etcd.")
	flags.BoolVar(&check.Repair, "repair", false, "Delete leftover records.")
	flags.StringVarP(&output, "output", "o", "", "json, or wide for the sizes of all extensions.")
	return command
}

// oneStore requires that the flags name exactly one store, and that the requested action is
// possible there.
func oneStore(check database.Fsck, byAPI bool) error {
	named := 0
	for _, given := range []bool{check.DataDir != "", len(check.Transport.ServerList) > 0, byAPI} {
		if given {
			named++
		}
	}
	switch {
	case named != 1:
		return errors.New("say which store: exactly one of --data-dir, --etcd-servers and --kubeconfig")
	case byAPI && check.Repair:
		return errors.New("--repair needs the store itself: --data-dir or --etcd-servers")
	default:
		return nil
	}
}

func outcome(report fsck.Report) error {
	switch {
	case report.Damaged():
		return verbs.Exit(fmt.Errorf("the store is damaged: %s", text.Count(len(report.Problems)+report.Omitted, "problem")), exitDamaged)
	case len(report.Problems) > 0:
		return verbs.Exit(fmt.Errorf("%s left over", text.Count(len(report.Problems)+report.Omitted, "record")), exitLeftOver)
	default:
		return nil
	}
}

func printReport(out io.Writer, report fsck.Report, collected gc.Result, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) } // Flush returns the error.
	if output == "wide" && len(report.Extensions) > 0 {
		line("EXTENSION\tREVISIONS\tBYTES\n")
		for _, extension := range report.Extensions {
			line("%s\t%d\t%d\n", extension.Name, extension.Revisions, extension.Bytes)
		}
		line("\n")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := printProblems(out, report.Problems); err != nil {
		return err
	}
	if collected.Packs+collected.Chunks > 0 {
		if _, err := fmt.Fprintf(out, "deleted what was left over: %s, %s of packs\n", text.Count(collected.Packs, "pack"), text.Count(collected.Chunks, "part")); err != nil {
			return err
		}
	}
	verdict := "the store is sound"
	if len(report.Problems) > 0 {
		verdict = "the store is not sound"
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s with %d bytes, %d of them deltas\n", verdict,
		text.Count(report.Records, "record"), text.Count(report.Packs, "pack"), report.PackBytes, report.Deltas)
	return err
}

func printProblems(out io.Writer, problems []fsck.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintf(table, "PROBLEM\tRECORD\tFOUND\tWHAT TO DO\n") // Flush returns the error.
	for _, problem := range problems {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", problem.Kind, problem.Key, problem.Message, problem.Repair)
	}
	_, _ = fmt.Fprintf(table, "\n")
	return table.Flush()
}
