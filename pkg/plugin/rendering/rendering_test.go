package rendering

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRevision: the plugin sorts plain manifests itself. penstock renders other sources, with the
// revision's name and number.
func TestRevision(t *testing.T) {
	manifests := folder(t, map[string]string{"a.yaml": configMap})
	for name, tc := range map[string]struct {
		reason, from string
		arguments    []string
		program      bool
	}{
		"directory": {"manifests are plain", manifests, nil, false},
		"file":      {"one file is too", filepath.Join(manifests, "a.yaml"), nil, false},
		"input":     {"and what comes from elsewhere", "-", nil, false},
		"arguments": {"somebody asks for more", manifests, []string{"--layout", "release"}, true},
		"chart":     {"templates are no manifests", folder(t, map[string]string{"Chart.yaml": "name: a"}), nil, true},
		"bundle":    {"nor are bundles", folder(t, map[string]string{"metadata/annotations.yaml": "{}"}), nil, true},
		"image":     {"nor is what is not here", "registry.example.com/lighthouse:v1", nil, true},
		"catalog":   {"the arguments say what to render", "", []string{"--catalog", "catalog", "--package", "lighthouse"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var called, warned []string
			revision, err := Input{
				From: tc.from, Arguments: tc.arguments, Stdin: strings.NewReader(configMap), Extension: "lighthouse", Number: 7, Warn: func(warning string) { warned = append(warned, warning) },
				Program: func(_ context.Context, _ io.Reader, args ...string) (_, _ []byte, _ error) {
					called = args
					return []byte(`{"metadata":{"name":"lighthouse-7"},"spec":{"revision":7,"lifecycleState":"Paused","phases":[{"name":"all","objects":[{"object":{"kind":"ConfigMap"}}]}]}}`), []byte("lighthouse-7: 1 object\nwarning: it is deprecated\nnote: what it is\n"), nil
				},
			}.Revision(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if (called != nil) != tc.program {
				t.Errorf("%s: penstock was called with %v", tc.reason, called)
			}
			want := slices.Concat([]string{"render", tc.from, "--extension", "lighthouse", "--revision", "7", "--paused", "--output", "json"}, tc.arguments)
			if want = slices.DeleteFunc(want, func(argument string) bool { return argument == "" }); tc.program && !slices.Equal(called, want) {
				t.Errorf("penstock %v, want %v", called, want)
			}
			if tc.program != slices.Equal(warned, []string{"it is deprecated"}) {
				t.Errorf("warnings: %q", warned)
			}
			if revision.Name != "lighthouse-7" || revision.Spec.LifecycleState != v1alpha1.LifecycleStatePaused || len(revision.Spec.Phases) != 1 || revision.Spec.Phases[0].Objects[0].Object == nil {
				t.Errorf("%+v", revision)
			}
		})
	}
}

func TestMissingProgram(t *testing.T) {
	program := Process(func() (string, error) { return filepath.Join(t.TempDir(), "kubectl-penstock"), nil })
	_, err := Input{From: "example.com/nothing:v1", Extension: "a", Number: 1, Program: program}.Revision(t.Context())
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
