package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newHistory(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:   "history EXTENSION",
		Short: "List the revisions of an extension, also deleted ones, and repairs: who, when and why",
		Long: "Show the revisions of an extension, deleted ones included, the newest last, and the 50 newest changes by other\n" +
			"clients that Penstock reverted. On a terminal that is too narrow for the cause, its end is left out; -o json has all of it.",
		Example:           "  kubectl penstock history lighthouse",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			history, err := cluster.OlmV1alpha1().RevisionHistories().Get(command.Context(), args[0], metav1.GetOptions{})
			if session.NotFound(err) {
				return cluster.Unknown(command.Context(), args[0])
			}
			if err != nil {
				return fmt.Errorf("reading the history of %s: %w", args[0], err)
			}
			if output != "" {
				return s.PrintObject(output, history)
			}
			s.Out.Table(historyTable(history.Revisions, s.Now()))
			for i := range history.Repairs {
				s.Out.Para(screen.Dim, screen.Waiting, repairText(&history.Repairs[i], s.Now()))
			}
			if hold := history.Hold; hold != nil {
				s.Out.Para(screen.Yellow, screen.Notice, fmt.Sprintf("the rollback %s holds the owner of the extension: the owner creates no revision until it is "+
					"changed, or you run kubectl penstock resume %s", hold.Revision, args[0]))
			}
			return nil
		},
	}
	output.Add(command.Flags())
	return command
}

func historyTable(rows []v1alpha1.RevisionRecord, now time.Time) screen.Table {
	out := screen.Table{Header: []string{"REVISION", "VERSION", "STATE", "RESULT", "CHANGES", "AGE", "BY", "CAUSE"}, Clip: true}
	for i := range rows {
		row := &rows[i]
		changed, age, cause := "", "", row.Cause
		if c := row.Changes; c != nil {
			changed = fmt.Sprintf("+%d ~%d -%d", c.Added, c.Changed, c.Removed)
		}
		if row.CreatedAt != nil {
			age = duration.HumanDuration(now.Sub(row.CreatedAt.Time))
		}
		if row.RollbackOf != "" {
			cause = "rollback to " + row.RollbackOf
			if row.Cause != "" {
				cause += ": " + row.Cause
			}
		}
		style := screen.Plain
		switch row.Result {
		case v1alpha1.ResultSucceeded:
			style = screen.Green
		case v1alpha1.ResultFailing, v1alpha1.ResultStalled:
			style = screen.Red
		}
		cells := []screen.Cell{{Text: fmt.Sprint(row.Revision)}, {Text: row.Version}, {Text: row.State}, {Text: row.Result, Style: style},
			{Text: changed}, {Text: age}, {Text: row.RequestedBy}, {Text: cause}}
		out.Rows = append(out.Rows, cells)
	}
	return out
}

func repairText(repair *v1alpha1.RepairRecord, now time.Time) string {
	times := ""
	if repair.Count > 1 {
		times = fmt.Sprintf("%d times, last ", repair.Count)
	}
	object := strings.TrimPrefix(repair.Object.Namespace+"/"+repair.Object.Name, "/")
	return fmt.Sprintf("repaired %s%s ago: %s %s of %s: %s", times, duration.HumanDuration(now.Sub(repair.LastAt.Time)), repair.Object.Kind, object, repair.Revision, repair.Message)
}
