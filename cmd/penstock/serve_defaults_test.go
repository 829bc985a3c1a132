package main

import (
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
		err        string
	}{
		"Environment":  {reason: "as for kubectl", kubeconfig: "/a", want: "/a", bind: "0.0.0.0"},
		"Flag":         {reason: "the flag wins", change: func(o *server.Options) { o.Kubeconfig = "/b" }, kubeconfig: "/a", want: "/b", bind: "0.0.0.0"},
		"InCluster":    {reason: "nothing is said", bind: "0.0.0.0"},
		"SeveralFiles": {reason: "the server has one host", kubeconfig: "/a:/b", bind: "0.0.0.0", err: "--kubeconfig"},
		"Localhost":    {reason: "only this machine comes by that name", change: func(o *server.Options) { o.Register = true }, bind: "127.0.0.1"},
		"Host":         {reason: "others come, too", change: func(o *server.Options) { o.Register, o.RegisterHost = true, "h" }, bind: "0.0.0.0"},
		"Service":      {reason: "others come by the Service", change: func(o *server.Options) { o.Register, o.RegisterServicePort = true, 443 }, bind: "0.0.0.0"},
		"BindAddress":  {reason: "the flag wins", change: func(o *server.Options) { o.Register = true }, given: "bind-address", bind: "0.0.0.0"},
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
			if err != nil || options.Kubeconfig != tc.want || options.Recommended.SecureServing.BindAddress.String() != tc.bind {
				t.Errorf("%s: kubeconfig %q, bind %s, error %v", tc.reason, options.Kubeconfig, options.Recommended.SecureServing.BindAddress, err)
			}
		})
	}
}
