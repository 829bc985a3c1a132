package main

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/console/web"
)

// TestConsoleProvider: the flags of OpenID Connect are required together. The issuer becomes a
// source of the Content-Security-Policy.
func TestConsoleProvider(t *testing.T) {
	for name, tc := range map[string]struct {
		provider web.Provider
		says     string
	}{
		"none":             {web.Provider{}, ""},
		"whole":            {web.Provider{Issuer: "https://id.example.com:8443/realms/a", ClientID: "penstock", Scopes: []string{"groups"}}, ""},
		"no client":        {web.Provider{Issuer: "https://id.example.com"}, "--oidc-client-id is required"},
		"no issuer":        {web.Provider{ClientID: "penstock"}, "--oidc-issuer-url is required"},
		"scope alone":      {web.Provider{Scopes: []string{"groups"}}, "--oidc-issuer-url is required"},
		"without TLS":      {web.Provider{Issuer: "http://id.example.com", ClientID: "penstock"}, "begins with https://"},
		"script":           {web.Provider{Issuer: "javascript:alert(1)", ClientID: "penstock"}, "begins with https://"},
		"another source":   {web.Provider{Issuer: "https://id.example.com;script-src", ClientID: "penstock"}, "with a host in lower case"},
		"any host":         {web.Provider{Issuer: "https://*", ClientID: "penstock"}, "with a host in lower case"},
		"two hosts":        {web.Provider{Issuer: "https://a.example.com https://b.example.com", ClientID: "penstock"}, "--oidc-issuer-url"},
		"user":             {web.Provider{Issuer: "https://id.example.com@evil.test", ClientID: "penstock"}, "without user"},
		"query":            {web.Provider{Issuer: "https://id.example.com?x=y", ClientID: "penstock"}, "without user, query"},
		"empty fragment":   {web.Provider{Issuer: "https://id.example.com/#", ClientID: "penstock"}, "fragment"},
		"default port":     {web.Provider{Issuer: "https://id.example.com:443", ClientID: "penstock"}, "port 443"},
		"no port":          {web.Provider{Issuer: "https://id.example.com:", ClientID: "penstock"}, "--oidc-issuer-url"},
		"scopes in one":    {web.Provider{Issuer: "https://id.example.com", ClientID: "penstock", Scopes: []string{"a b"}}, "--oidc-extra-scope"},
		"scope with quote": {web.Provider{Issuer: "https://id.example.com", ClientID: "penstock", Scopes: []string{`a"`}}, "--oidc-extra-scope"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkProvider(tc.provider)
			switch {
			case tc.says == "" && err != nil:
				t.Error(err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}
