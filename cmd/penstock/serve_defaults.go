package main

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/server"
)

// fillIn sets defaults that depend on the situation. changed reports whether a flag was given;
// getenv is os.Getenv.
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
	// A process that registers with the name localhost is only reachable from this machine.
	serving := options.Recommended.SecureServing
	if options.Register && options.RegisterHost == server.DefaultRegisterHost && options.RegisterServicePort == 0 && !changed("bind-address") {
		serving.BindAddress = net.IPv4(127, 0, 0, 1)
	}
	// On loopback, catalogs are served on any free port. So a second process needs only another
	// --secure-port.
	if serving.BindAddress.IsLoopback() && !changed("catalog-addr") {
		settings.Catalogs.Addr = net.JoinHostPort(serving.BindAddress.String(), "0")
	}
	return nil
}
