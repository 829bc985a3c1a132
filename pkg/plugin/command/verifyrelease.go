package command

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/release"
	"github.com/penstock-project/penstock/pkg/sigstore"
)

func newVerifyRelease(s *session.Session) *cobra.Command {
	var (
		output session.Format
		key    string
		wanted release.Wanted
	)
	command := &cobra.Command{
		Use:   "verify-release DIR",
		Short: "Verify the files of a release of Penstock",
		Long: "Verify a folder with downloaded files of a release: the signature of checksums.txt, each file, the SLSA provenance, and the\n" +
			"signature of the image. No request leaves this machine. Before the first installation there is no plugin that you trust:\n" +
			"cosign verifies the same files (docs/reference/releases.md).\n\n" +
			"Exit code: 0 everything is verified, 1 something is not, 2 the key cannot be read.",
		Example: "  kubectl penstock verify-release . --key penstock.pub\n" +
			"  kubectl penstock verify-release . --key penstock.pub --source https://github.com/penstock-project/penstock",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			content, err := os.ReadFile(key)
			if err != nil {
				return outcome.Errorf(outcome.Unknown, "reading the public key of the signer (--key): %w", err)
			}
			by, err := sigstore.ByKey(content)
			if err != nil {
				return outcome.Errorf(outcome.Unknown, "verifying a release: %w", err)
			}
			steps := release.Verify(args[0], by, wanted)
			switch output {
			case "":
				var lines []screen.Line
				for _, step := range steps {
					line := screen.Line{Glyph: screen.Good, Style: screen.Green, Text: step.Name + ": " + step.Found}
					if step.Err != nil {
						line = screen.Line{Glyph: screen.Bad, Style: screen.Red, Text: step.Name + ": " + step.Error}
					}
					lines = append(lines, line)
				}
				s.Out.Lines(lines)
			case session.Name:
				for _, step := range steps {
					s.Out.Printf("%s\n", step.Name)
				}
			default:
				if err := s.PrintValue(output, steps); err != nil {
					return err
				}
			}
			if release.Failing(steps) {
				return outcome.Quiet(outcome.No)
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&key, "key", "", "Public key of the signer, in PEM.")
	flags.StringVar(&wanted.Source, "source", "", "Repository that the provenance must name.")
	flags.StringVar(&wanted.Builder, "builder", "", "Builder that the provenance must name.")
	output.Add(flags)
	return command
}
