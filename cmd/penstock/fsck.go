package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/store/gc"
	"github.com/penstock-project/penstock/pkg/text"
)

// Exit codes of fsck, besides 1 for a check that could not be made, and wrongInput.
const (
	exitLeftOver = 3
	exitDamaged  = 4
)

// newFsckCommand checks a store.
func newFsckCommand() *cobra.Command {
	var check database.Fsck
	var output string
	command := &cobra.Command{
		Use:   "fsck (--data-dir DIR | --etcd-servers URL)",
		Short: "Check a store",
		Long: "Check that every record of a store decodes, every digest holds, every reference resolves, every inventory\n" +
			"belongs to an extension, and nothing is left over. The store may be served meanwhile: with --data-dir, the\n" +
			"running etcd is asked; when none runs, it is started for the check.\n\n" +
			"--repair deletes what is left over. That is safe beside a server. It repairs nothing that it would have to guess:\n" +
			"the table says what to do about the rest.\n\n" +
			"Exit codes: 0 the store is sound, 1 it could not be checked, 2 a flag is wrong, 3 something is left over, 4 something is damaged\n" +
			"or missing.",
		Example: "  penstock fsck --data-dir /var/lib/penstock\n" +
			"  kubectl exec -n penstock-system deploy/penstock -- penstock fsck --data-dir /var/lib/penstock\n" +
			"  penstock fsck --etcd-servers https://etcd:2379 --etcd-cafile ca.crt --etcd-certfile tls.crt --etcd-keyfile tls.key",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if (check.DataDir == "") == (len(check.Transport.ServerList) == 0) {
				return unusable(errors.New("say which store: --data-dir or --etcd-servers, one of them"))
			}
			if output != "" && output != "json" && output != "wide" {
				return unusable(fmt.Errorf("--output is %q, and may be json or wide", output))
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
	flags.StringVar(&check.DataDir, "data-dir", "", "Data directory of an embedded store.")
	flags.StringSliceVar(&check.Transport.ServerList, "etcd-servers", nil, "URLs of an etcd elsewhere.")
	flags.StringVar(&check.Transport.CertFile, "etcd-certfile", "", "Client certificate for it.")
	flags.StringVar(&check.Transport.KeyFile, "etcd-keyfile", "", "Key of the client certificate.")
	flags.StringVar(&check.Transport.TrustedCAFile, "etcd-cafile", "", "Authorities of its certificate.")
	flags.BoolVar(&check.Repair, "repair", false, "Delete what is left over.")
	flags.StringVarP(&output, "output", "o", "", "json, or wide for the sizes of all extensions.")
	return command
}

// outcome is the error that says how the program is to exit.
func outcome(report fsck.Report) error {
	switch {
	case report.Damaged():
		return &exitError{fmt.Errorf("the store is damaged: %s", text.Count(len(report.Problems)+report.Omitted, "problem")), exitDamaged}
	case len(report.Problems) > 0:
		return &exitError{fmt.Errorf("%s left over", text.Count(len(report.Problems)+report.Omitted, "record")), exitLeftOver}
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
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) } // Flush says what failed.
	if output == "wide" && len(report.Extensions) > 0 {
		line("EXTENSION\tREVISIONS\tBYTES\n")
		for _, extension := range report.Extensions {
			line("%s\t%d\t%d\n", extension.Name, extension.Revisions, extension.Bytes)
		}
		line("\n")
	}
	if len(report.Problems) > 0 {
		line("PROBLEM\tRECORD\tFOUND\tWHAT TO DO\n")
		for _, problem := range report.Problems {
			line("%s\t%s\t%s\t%s\n", problem.Kind, problem.Key, problem.Message, problem.Repair)
		}
		line("\n")
	}
	if err := table.Flush(); err != nil {
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
