package main

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/server"
)

// fillIn sets what a person left out and the situation tells. Changed says which flags
// were given, getenv is os.Getenv.
func fillIn(options *server.Options, settings *app.Settings, changed func(flag string) bool, getenv func(string) string) error {
	if named := getenv("KUBECONFIG"); options.Kubeconfig == "" && named != "" {
		files := filepath.SplitList(named)
		if len(files) != 1 {
			return fmt.Errorf("$KUBECONFIG names %d files: say with --kubeconfig which one leads to the host cluster", len(files))
		}
		options.Kubeconfig = files[0]
	}
	if settings.Catalogs.Dir == "" && options.DataDir != "" {
		settings.Catalogs.Dir = filepath.Join(options.DataDir, "catalogs")
	}
	// A process that registers by the name localhost is reached from this machine alone.
	serving := options.Recommended.SecureServing
	if options.Register && options.RegisterHost == server.DefaultRegisterHost && options.RegisterServicePort == 0 && !changed("bind-address") {
		serving.BindAddress = net.IPv4(127, 0, 0, 1)
	}
	// On loopback the content of catalogs takes any free port, so that a second process finds
	// its ports free with another --secure-port.
	if serving.BindAddress.IsLoopback() && !changed("catalog-addr") {
		settings.Catalogs.Addr = net.JoinHostPort(serving.BindAddress.String(), "0")
	}
	return nil
}
