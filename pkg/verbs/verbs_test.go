package verbs

import "github.com/penstock-project/penstock/pkg/client"

// program returns the program that has the commands in tests.
func program() Program { return Program{Name: "penstock", Cluster: &client.Flags{}} }
