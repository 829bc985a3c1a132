package verbs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func runCatalog(args ...string) (stdout string, status int, err error) {
	var out bytes.Buffer
	command := NewCatalog(program())
	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&bytes.Buffer{})
	command.SilenceErrors, command.SilenceUsage = true, true
	if err = command.Execute(); err != nil {
		status = ExitStatus(err)
	}
	return out.String(), status, err
}

const (
	catalogBefore = "testdata/catalog/before"
	catalogAfter  = "testdata/catalog/after"
)

func TestCatalogCommands(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		status int
		// stdout is the expected output. err is a part of the expected error.
		stdout, err string
	}{
		"resolve": {args: []string{"resolve", "--catalog", catalogBefore, "--package", "lamp"},
			stdout: "lamp.v1.2.0 1.2.0 from catalog before\n1.2.0 is the highest version\n"},
		"resolve for machines": {args: []string{"resolve", "--catalog", catalogBefore, "--package", "lamp", "--version", "1.1.x", "--channel", "stable", "-o", "json"},
			stdout: "{\n  \"bundle\": \"lamp.v1.1.0\",\n  \"version\": \"1.1.0\",\n  \"channel\": \"stable\",\n  \"reason\": \"1.1.0 is the highest version in the range 1.1.x in channel stable\"\n}\n"},
		"resolve to nothing": {args: []string{"resolve", "--catalog", catalogBefore, "--package", "lamp", "--version", "1.2.0", "--installed", "lamp.v1.0.0=1.0.0"}, status: 1,
			err: `error upgrading from currently installed version "1.0.0": no bundles found for package "lamp" matching version "1.2.0": ` +
				`1.2.0 exists in channel stable but is no successor of 1.0.0: it replaces 1.1.0, skips lamp.v1.1.1; go to 1.1.0 first`},
		"resolve, forced": {args: []string{"resolve", "--catalog", catalogBefore, "--package", "lamp", "--version", "1.2.0", "--installed", "lamp.v1.0.0=1.0.0", "--self-certified"},
			stdout: "lamp.v1.2.0 1.2.0 from catalog before\n1.2.0 is the highest version in the range 1.2.0\n"},
		"resolve in two": {args: []string{"resolve", "--catalog", "a=" + catalogBefore, "--catalog", "b=" + catalogAfter, "--priority", "a=3", "--package", "lamp"},
			stdout: "lamp.v1.2.0 1.2.0 from catalog a\n1.2.0 is the highest version\n"},
		"resolve without a catalog":      {args: []string{"resolve", "--package", "lamp"}, status: 2, err: "--catalog is required: name a file, a directory or an image"},
		"resolve without a package":      {args: []string{"resolve", "--catalog", catalogBefore}, status: 2, err: "--package is required"},
		"resolve from something":         {args: []string{"resolve", "--catalog", catalogBefore, "--package", "lamp", "--installed", "1.0.0"}, status: 2, err: `--installed "1.0.0": want BUNDLE=VERSION, for instance argocd-operator.v0.14.0=0.14.0`},
		"resolve in a catalog twice":     {args: []string{"resolve", "--catalog", catalogBefore, "--catalog", catalogBefore, "--package", "lamp"}, status: 2, err: "--catalog " + catalogBefore + ": there are two catalogs named before: write NAME=" + catalogBefore},
		"resolve with a priority":        {args: []string{"resolve", "--catalog", catalogBefore, "--package", "lamp", "--priority", "x=1"}, status: 2, err: "--priority x: there is no catalog of that name"},
		"resolve in what is not there":   {args: []string{"resolve", "--catalog", "testdata/none", "--package", "lamp"}, status: 2, err: "reading catalog testdata/none: stat testdata/none: no such file or directory"},
		"resolve with a flag of nobody":  {args: []string{"resolve", "--near", "x"}, status: 2, err: "unknown flag: --near"},
		"resolve as XML":                 {args: []string{"resolve", "-o", "xml"}, status: 2, err: `--output "xml": want text or json`},
		"nothing":                        {status: 2, err: "say what to do with the catalog: resolve, lint, graph or diff"},
		"lint":                           {args: []string{"lint", catalogBefore, "-o", "json"}, stdout: "[]\n"},
		"lint twice the same":            {args: []string{"lint", catalogBefore, catalogBefore}, status: 1, stdout: "error: package lamp: there are 2 documents olm.package of this name\nerror: package lamp, bundle lamp.v1.0.0: the package has two bundles of this name\nerror: package lamp, bundle lamp.v1.1.0: the package has two bundles of this name\nerror: package lamp, bundle lamp.v1.2.0: the package has two bundles of this name\nerror: package lamp, channel stable: the package has two channels of this name\n", err: "the catalog has 5 errors"},
		"lint what is no catalog":        {args: []string{"lint", "verbs.go"}, status: 2, err: "reading catalog verbs.go: verbs.go:"},
		"lint nothing":                   {args: []string{"lint"}, status: 2, err: "requires at least 1 arg(s), only received 0"},
		"graph":                          {args: []string{"graph", catalogAfter, "--package", "lamp", "--installed", "lamp.v1.0.0=1.0.0", "--to", "1.3.0"}, stdout: "channel stable (default): 4 bundles\n  1.3.0  replaces 1.2.0; skips the range >=1.1.0 <1.3.0\n  1.2.0  replaces 1.1.0; skips lamp.v1.1.1\n  1.1.0  replaces 1.0.0\n* 1.0.0  deprecated: lamp 1.0.0 gets no fixes any more\n\nfrom 1.0.0: 1.1.0, 1.3.0\n"},
		"graph without a way":            {args: []string{"graph", catalogBefore, "--package", "lamp", "--channel", "none", "--installed", "lamp.v1.0.0=1.0.0", "--to", "1.1.0"}, status: 1, err: "no upgrade path leads from lamp.v1.0.0 to lamp.v1.1.0"},
		"graph of another package":       {args: []string{"graph", catalogBefore, "--package", "torch"}, status: 2, err: `the catalog has no package "torch"`},
		"graph to a version of nobody":   {args: []string{"graph", catalogBefore, "--package", "lamp", "--installed", "lamp.v1.0.0=1.0.0", "--to", "9.0.0"}, status: 2, err: `--to "9.0.0": the package has no such version or bundle`},
		"graph from where":               {args: []string{"graph", catalogBefore, "--package", "lamp", "--to", "1.1.0"}, status: 2, err: "--to needs --installed: the bundle where the path begins"},
		"diff":                           {args: []string{"diff", catalogBefore, catalogAfter}, stdout: "lamp:\n  new versions: 1.3.0\n  now deprecated: bundle lamp.v1.0.0\n  a new installation: 1.3.0, before: 1.2.0\n  with 1.2.0 installed: 1.3.0, before: stays\n  with 1.1.0 installed: 1.3.0, before: 1.2.0\n  a new installation in channel stable: 1.3.0, before: 1.2.0\n  with 1.2.0 installed in channel stable: 1.3.0, before: stays\n  with 1.1.0 installed in channel stable: 1.3.0, before: 1.2.0\n"},
		"diff of the same":               {args: []string{"diff", catalogBefore, catalogBefore}, stdout: "nothing changes\n"},
		"diff of the same, for machines": {args: []string{"diff", catalogBefore, catalogBefore, "-o", "json"}, stdout: "{}\n"},
		"diff of one":                    {args: []string{"diff", catalogBefore}, status: 2, err: "accepts 2 arg(s), received 1"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, status, err := runCatalog(c.args...)
			if diff := cmp.Diff(c.stdout, stdout); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if status != c.status || (c.err == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("status %d, %v\nwant   %d, %s", status, err, c.status, c.err)
			}
		})
	}
}

// TestCatalogHostile: text of a catalog is printed, and cannot control a terminal.
func TestCatalogHostile(t *testing.T) {
	const name = `v1\u001b[2J`
	content := `{"schema":"olm.package","name":"p","defaultChannel":"a\u001b[2J"}
{"schema":"olm.channel","package":"p","name":"a\u001b[2J","entries":[{"name":"` + name + `"},{"name":"v2","replaces":"` + name + `"}]}
{"schema":"olm.bundle","package":"p","name":"` + name + `","image":"\u001b[2J"}
{"schema":"olm.bundle","package":"p","name":"v2","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"v2"},"message":"\u001b[2J gone\nchannel b: 5 bundles"}]}
`
	file := filepath.Join(t.TempDir(), "catalog.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"resolve", "--catalog", file, "--package", "p"}, {"resolve", "--catalog", file, "--package", "p", "--version", "1.0.0"}, {"graph", file, "--package", "p"}, {"lint", file},
		{"diff", catalogBefore, file}, {"diff", file, catalogBefore},
	} {
		stdout, _, err := runCatalog(args...)
		if strings.Contains(stdout, "\x1b") || strings.Contains(stdout, "\nchannel b: ") || stdout == "" && err == nil {
			t.Errorf("%v prints %q, %v", args, stdout, err)
		}
	}
}

// TestCatalogGraphJSON checks the output for tools.
func TestCatalogGraphJSON(t *testing.T) {
	stdout, status, err := runCatalog("graph", catalogAfter, "--package", "lamp", "-o", "json", "--installed", "lamp.v1.0.0=1.0.0", "--to", "lamp.v1.3.0")
	if status != 0 {
		t.Fatal(err)
	}
	var drawn struct {
		Package, DefaultChannel string
		Channels, Path          []string
		Versions                []struct{ Version string }
		Upgrades                []struct{ From, To, Channel, By string }
	}
	if err := json.Unmarshal([]byte(stdout), &drawn); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(drawn)
	want := "{lamp stable [stable] [lamp.v1.1.0 lamp.v1.3.0] [{1.3.0} {1.2.0} {1.1.0} {1.0.0}] [{lamp.v1.0.0 lamp.v1.1.0 stable replaces} " +
		"{lamp.v1.1.0 lamp.v1.2.0 stable replaces} {lamp.v1.1.1 lamp.v1.2.0 stable skips} {lamp.v1.1.0 lamp.v1.3.0 stable skipRange} {lamp.v1.2.0 lamp.v1.3.0 stable replaces}]}"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// sharedCatalogs is a folder outside of the repository, with real catalogs, and requests with
// upstream's answers.
const sharedCatalogs = "../../../shared/data/catalogs"

// TestCatalogResolveUpstream: the command gives OLM v1's answers.
func TestCatalogResolveUpstream(t *testing.T) {
	file, err := os.Open(filepath.Join(sharedCatalogs, "small-cases.jsonl"))
	if os.IsNotExist(err) {
		t.Skip("no shared data")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tried := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var c struct {
			ID       string
			Catalogs []struct {
				Name, File  string
				Priority    int32
				Unavailable bool
			}
			Package, Version, Policy string
			Channels                 []string
			Selector                 *struct{}
			Installed                *struct{ Name, Version string }
			Want                     struct{ Bundle, Version, Error string }
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Selector != nil {
			continue // a selector needs a cluster; this command gets its catalogs by name
		}
		tried++
		args := []string{"resolve", "--package", c.Package, "--version", c.Version, "-o", "json"}
		for _, one := range c.Catalogs {
			if !one.Unavailable {
				args = append(args, "--catalog", one.Name+"="+filepath.Join(sharedCatalogs, one.File), "--priority", fmt.Sprintf("%s=%d", one.Name, one.Priority))
			}
		}
		for _, channel := range c.Channels {
			args = append(args, "--channel", channel)
		}
		if c.Installed != nil {
			args = append(args, "--installed", c.Installed.Name+"="+c.Installed.Version)
		}
		if c.Policy == "SelfCertified" {
			args = append(args, "--self-certified")
		}
		stdout, status, _ := runCatalog(args...)
		var got resolved
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		// This command chooses a bundle with dependencies: a ClusterExtension waits for them.
		if bundle, _, dependent := strings.Cut(strings.TrimPrefix(c.Want.Error, `validating bundle "`), `": bundle "`); dependent {
			c.Want.Bundle, c.Want.Version, c.Want.Error = bundle, got.Version, ""
		}
		if got.Bundle != c.Want.Bundle || got.Version != c.Want.Version || (status == 1) != (c.Want.Error != "") || !strings.HasPrefix(got.Reason, c.Want.Error) {
			t.Errorf("%s: got %+v, status %d; want %+v", c.ID, got, status, c.Want)
		}
		if got.Reason == "" {
			t.Errorf("%s: an answer without a reason", c.ID)
		}
	}
	if tried < 50 {
		t.Errorf("tried %d requests, want 50", tried)
	}
}
