package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/text"
)

func newRestoreCommand() *cobra.Command {
	var dataDir string
	command := &cobra.Command{
		Use:   "restore SNAPSHOT --data-dir DIR",
		Short: "Restore a store from a snapshot",
		Long: "Create a store in a data directory from a snapshot that penstock serve --snapshot-dir took.\n" +
			"The directory must not have a store. The command neither reads nor changes anything in the cluster.\n\n" +
			"A snapshot lacks all later changes. So penstock serve does not serve the restored store\n" +
			"until you set the value of --accept-identity that it asks for. Then active revisions are\n" +
			"rolled out as they were at the time of the snapshot. Nothing is deleted because of this.",
		Example: "  penstock restore /backup/penstock-20261121T160000Z.db --data-dir /var/lib/penstock",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			restored, err := database.Restore(command.Context(), args[0], dataDir)
			if err != nil {
				return fmt.Errorf("nothing restored: %w", err)
			}
			_, err = fmt.Fprintf(command.ErrOrStderr(), "store %s, with %s, is in %s\n"+
				"penstock serve asks you to confirm the store: it says which --accept-identity to set\n",
				restored.StoreID, text.Count(int(restored.Revisions), "revision"), dataDir)
			return err
		},
	}
	command.Flags().StringVar(&dataDir, "data-dir", "", "Directory to restore to, created when absent. No penstock serve may use it.")
	// The flag is defined above.
	_ = command.MarkFlagRequired("data-dir")
	return command
}
