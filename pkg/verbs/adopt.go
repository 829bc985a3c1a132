package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock-project/penstock/pkg/adopt"
	"github.com/penstock-project/penstock/pkg/client"
)

type adoptFlags struct {
	program Program
	dryRun  bool
	timeout time.Duration
}

// addTo defines the flags. forWhat is the purpose of the timeout.
func (f *adoptFlags) addTo(flags *pflag.FlagSet, forWhat string) {
	f.program.addCluster(flags)
	flags.BoolVar(&f.dryRun, "dry-run", false, "Print what would be done, and write nothing.")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, forWhat)
}

func (f *adoptFlags) begin(command *cobra.Command) (adoption, error) {
	config, err := f.program.Cluster.Config()
	if err != nil {
		return adoption{}, err
	}
	clients, heard, err := f.program.Cluster.Client()
	if err != nil {
		return adoption{}, err
	}
	adopter, err := adopt.New(config, clients)
	if err != nil {
		return adoption{}, err
	}
	return adoption{adopter, f, command.OutOrStdout(), command.ErrOrStderr(), heard}, nil
}

type adoption struct {
	*adopt.Adopter
	*adoptFlags
	out, side io.Writer
	heard     *client.Warnings
}

func (a *adoption) warn() {
	for _, warning := range a.heard.Take() {
		fmt.Fprintf(a.side, "warning: %s\n", warning)
	}
}

func (a *adoption) succeeds(ctx context.Context, revision string) error {
	waiting, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return a.Await(waiting, revision)
}

// undo returns the objects of a plan to the other program.
func (a *adoption) undo(ctx context.Context, back *adopt.Return) (forgotten bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	forgotten, err = a.Undo(waiting, back)
	a.warn()
	return forgotten, toFinish(err)
}

func toFinish(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; to finish the adoption, run the command again", err)
}

// takeEach calls take for each plan, except in a dry run. It then returns an error with the refused
// installations.
func takeEach[P any](a *adoption, plans []P, refused []string, take func(P) error) error {
	if a.dryRun {
		fmt.Fprintln(a.out, "\nnothing was written")
		plans = nil
	}
	for _, plan := range plans {
		if err := take(plan); err != nil {
			return toFinish(err)
		}
	}
	if len(refused) > 0 {
		return errors.New("not adopted:\n  " + strings.Join(refused, "\n  "))
	}
	return nil
}
