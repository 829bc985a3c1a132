package main

import (
	"net"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/server"
)

func TestFillIn(t *testing.T) {
	cases := map[string]struct {
		reason     string
		change     func(*server.Options)
		given      string
		kubeconfig string
		want       string
		bind       string
		catalogs   string
		err        string
	}{
		"Environment":  {reason: "as for kubectl", kubeconfig: "/a", want: "/a", bind: "0.0.0.0", catalogs: ":8444"},
		"Flag":         {reason: "the flag wins", change: func(o *server.Options) { o.Kubeconfig = "/b" }, kubeconfig: "/a", want: "/b", bind: "0.0.0.0", catalogs: ":8444"},
		"InCluster":    {reason: "nothing is said", bind: "0.0.0.0", catalogs: ":8444"},
		"SeveralFiles": {reason: "the server has one host", kubeconfig: "/a:/b", bind: "0.0.0.0", err: "--kubeconfig"},
		"Localhost":    {reason: "only this machine comes by that name", change: func(o *server.Options) { o.Register = true }, bind: "127.0.0.1", catalogs: "127.0.0.1:0"},
		"Host":         {reason: "others come, too", change: func(o *server.Options) { o.Register, o.RegisterHost = true, "h" }, bind: "0.0.0.0", catalogs: ":8444"},
		"Service":      {reason: "others come by the Service", change: func(o *server.Options) { o.Register, o.RegisterServicePort = true, 443 }, bind: "0.0.0.0", catalogs: ":8444"},
		"Loopback":     {reason: "only this machine comes by that address", change: func(o *server.Options) { o.Recommended.SecureServing.BindAddress = net.IPv6loopback }, given: "bind-address", bind: "::1", catalogs: "[::1]:0"},
		"CatalogAddr":  {reason: "the flag wins", change: func(o *server.Options) { o.Register = true }, given: "catalog-addr", bind: "127.0.0.1", catalogs: ":8444"},
		"BindAddress":  {reason: "the flag wins", change: func(o *server.Options) { o.Register = true }, given: "bind-address", bind: "0.0.0.0", catalogs: ":8444"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options, err := server.NewOptions()
			if err != nil {
				t.Fatal(err)
			}
			if tc.change != nil {
				tc.change(options)
			}
			settings := &app.Settings{Catalogs: app.NewCatalogs()}
			err = fillIn(options, settings, func(flag string) bool { return flag == tc.given }, func(string) string { return tc.kubeconfig })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || settings.Catalogs.Addr != tc.catalogs {
				t.Errorf("%s: catalogs at %q, error %v", tc.reason, settings.Catalogs.Addr, err)
			}
			if options.Kubeconfig != tc.want || options.Recommended.SecureServing.BindAddress.String() != tc.bind {
				t.Errorf("%s: kubeconfig %q, bind %s, error %v", tc.reason, options.Kubeconfig, options.Recommended.SecureServing.BindAddress, err)
			}
		})
	}
}
