package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/test/framework/registry"
)

const pageAddress = "127.0.0.1:5443"

// TestUseACatalog runs the commands of docs/how-to/use-a-catalog.md that need no cluster, and
// compares their output with the page.
func TestUseACatalog(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	r := registry.Serve(t)
	t.Setenv("R", r.Dir)
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(r.Dir, registry.AuthFile))
	t.Setenv("CONTAINERS_REGISTRIES_CONF", filepath.Join(r.Dir, registry.MirrorsFile))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, version := range []string{"v1.0.0", "v1.1.0", "v1.2.0"} {
		r.Push(t, filepath.Join("artifacts", "examples", "lighthouse-bundles", version), "lighthouse/bundle:"+version)
	}
	r.Push(t, filepath.Join("artifacts", "examples", "catalog"), "catalogs/examples:latest")
	page, err := os.ReadFile(filepath.Join("docs", "how-to", "use-a-catalog.md"))
	if err != nil {
		t.Fatal(err)
	}
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			step = strings.ReplaceAll(step, "\\\n", " ")
			line, want, _ := strings.Cut(step, "\n")
			args, isOurs := strings.CutPrefix(line, "penstock ")
			if !isOurs {
				continue
			}
			ran++
			got := digest.ReplaceAllString(strings.ReplaceAll(ranLine(t, strings.ReplaceAll(args, pageAddress, r.Host)), r.Host, pageAddress), "sha256:…")
			if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
				t.Errorf("%s\nsays something else: -page, +program:\n%s", line, diff)
			}
		}
	}
	if ran < 5 {
		t.Errorf("%d commands of the page were run; 5 are there", ran)
	}
}

// ranLine runs a line of a shell, and returns the output of both streams, except redirected output.
func ranLine(t *testing.T, line string) string {
	t.Helper()
	line, _, intoFile := strings.Cut(line, " > ")
	var args []string
	for _, word := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		if quoted, found := strings.CutPrefix(word, "'"); found {
			args = append(args, strings.TrimSuffix(quoted, "'"))
			continue
		}
		args = append(args, os.ExpandEnv(strings.Trim(word, `"`)))
	}
	var out, discarded bytes.Buffer
	command := newCommand()
	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&out)
	if intoFile {
		command.SetOut(&discarded)
	}
	command.SilenceErrors, command.SilenceUsage = true, true
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Errorf("penstock %s: %v", line, err)
	}
	return out.String()
}
