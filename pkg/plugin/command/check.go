package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/client/check"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newCheck(s *session.Session) *cobra.Command {
	var output session.Format
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "check",
		Short: "Check that Penstock is installed and healthy, and which rights you have",
		Long: "Check the installation of Penstock in the cluster: registration, certificates, Pods, store, controllers, versions,\n" +
			"and your rights. Exit code: 0 nothing is wrong, 1 something is. Facts that you cannot see are unknown, which is not a failure.",
		Example: "  kubectl penstock check\n  kubectl penstock check --timeout 3m\n  kubectl penstock check -o json",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := s.Config()
			if err != nil {
				return err
			}
			results, err := check.Await(command.Context(), check.Options{Config: config, Version: s.Version}, timeout, s.Clock, func(failed check.Result) {
				s.Err.Printf("waiting: %s: %s\n", failed.Name, failed.Found)
			})
			if err != nil {
				return fmt.Errorf("checking the installation: %w", err)
			}
			switch output {
			case "":
				if cluster, err := s.Connect(); err == nil {
					printFreeze(command.Context(), s, cluster)
				}
				s.Out.Lines(checkLines(results))
			case session.Name:
				for _, result := range results {
					s.Out.Printf("%s\n", result.Name)
				}
			default:
				if err := s.PrintValue(output, results); err != nil {
					return err
				}
			}
			if check.Failing(results) {
				return outcome.Quiet(outcome.No)
			}
			return nil
		},
	}
	output.Add(command.Flags())
	command.Flags().DurationVar(&timeout, "timeout", 0, "Repeat the checks until nothing is wrong, for at most this time. 0 checks once.")
	return command
}

func checkLines(results []check.Result) []screen.Line {
	var lines []screen.Line
	for _, result := range results {
		line := screen.Line{Glyph: screen.Waiting, Style: screen.Dim, Text: result.Name + ": " + result.Found}
		switch result.State {
		case check.OK:
			line.Glyph, line.Style = screen.Good, screen.Green
		case check.Failed:
			line.Glyph, line.Style = screen.Bad, screen.Red
		case check.Unknown:
			line.Glyph, line.Style = "?", screen.Yellow
		case check.Denied, check.Skipped:
		}
		lines = append(lines, line)
		if result.Next != "" {
			lines = append(lines, screen.Line{Indent: 2, Text: "→ " + result.Next})
		}
	}
	return lines
}
