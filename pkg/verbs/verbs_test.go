package verbs

import "github.com/penstock-project/penstock/pkg/client"

func program() Program { return Program{Name: "penstock", Cluster: &client.Flags{}} }
