package directory

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
)

func TestRendererOfFolder(t *testing.T) {
	files := fstest.MapFS{
		"etc/passwd":             {Data: []byte("root")},
		"opt/manifests/a.yaml":   {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
		"opt/manifests/b/b.yaml": {Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: b}\n")},
		"opt/broken/c.yaml":      {Data: []byte("a: [")},
	}
	rendered, err := Renderer{Folder: "opt/manifests"}.Render(context.Background(), files)
	if err != nil || len(rendered.Phases) != 2 {
		t.Errorf("got %d phases and %v, want configuration and infrastructure", len(rendered.Phases), err)
	}
	for folder, want := range map[string]string{"opt/broken": "opt/broken/c.yaml:1: not valid YAML", "opt/none": "opt/none: is not a folder", "../x": "../x: is not a folder"} {
		if _, err := (Renderer{Folder: folder}).Render(context.Background(), files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", folder, err, want)
		}
	}
}
