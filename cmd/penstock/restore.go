package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/text"
)

// newRestoreCommand makes a store of a snapshot.
func newRestoreCommand() *cobra.Command {
	var dataDir string
	command := &cobra.Command{
		Use:   "restore SNAPSHOT --data-dir DIR",
		Short: "Make a store of a snapshot",
		Long: "Make the store of a data directory of a snapshot that penstock serve --snapshot-dir took.\n" +
			"The directory must not have a store. Nothing in the cluster is looked at or changed.\n\n" +
			"What happened after the snapshot is not in it. So penstock serve does not serve the restored store\n" +
			"before it is told to, with the value of --accept-identity that it asks for. Active revisions are\n" +
			"rolled out then, as they were at the time of the snapshot; nothing is deleted for it.",
		Example: "  penstock restore /backup/penstock-20261121T160000Z.db --data-dir /var/lib/penstock",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			restored, err := server.Restore(command.Context(), args[0], dataDir)
			if err != nil {
				return fmt.Errorf("nothing restored: %w", err)
			}
			_, err = fmt.Fprintf(command.ErrOrStderr(), "store %s, with %s, is in %s\n"+
				"penstock serve asks you to confirm it: it says which --accept-identity to start it with\n",
				restored.StoreID, text.Count(int(restored.Revisions), "revision"), dataDir)
			return err
		},
	}
	command.Flags().StringVar(&dataDir, "data-dir", "", "Directory to restore to, created when absent. No penstock serve may use it.")
	// It is defined above.
	_ = command.MarkFlagRequired("data-dir")
	return command
}
