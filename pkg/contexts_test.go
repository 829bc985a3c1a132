package fences

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// TestNoStoredContexts: a context belongs to a call. One in a struct outlives the call that
// it came with, or ends what others began: what has to last is started with one of its own,
// and stopped. Tests, and packages for tests, may keep theirs.
func TestNoStoredContexts(t *testing.T) {
	root := os.DirFS("..")
	for _, top := range []string{"pkg", "cmd"} {
		err := fs.WalkDir(root, top, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "generated" || strings.HasSuffix(entry.Name(), "test")):
				return fs.SkipDir
			case entry.IsDir() || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
				return nil
			}
			source, err := fs.ReadFile(root, file)
			if err != nil {
				return err
			}
			for _, at := range storedContexts(t, file, source) {
				t.Errorf("%s: a struct has a context.Context: pass it to the call, or start what lasts with one of its own", at)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// storedContexts is where structs of a file have a field that is a context.
func storedContexts(t *testing.T, file string, source []byte) []token.Position {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []token.Position
	ast.Inspect(parsed, func(node ast.Node) bool {
		structure, ok := node.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range structure.Fields.List {
			if selected, ok := field.Type.(*ast.SelectorExpr); ok && selected.Sel.Name == "Context" {
				if pkg, ok := selected.X.(*ast.Ident); ok && pkg.Name == "context" {
					found = append(found, files.Position(field.Pos()))
				}
			}
		}
		return true
	})
	return found
}

func TestStoredContexts(t *testing.T) {
	for source, want := range map[string]int{
		"package p; type a struct { ctx context.Context }":              1,
		"package p; type a struct { context.Context }":                  1,
		"package p; var a = struct { b struct{ c context.Context } }{}": 1,
		"package p; type a struct { do func(context.Context) }":         0,
		"package p; type a struct { stop context.CancelFunc }":          0,
	} {
		if got := len(storedContexts(t, "p.go", []byte(source))); got != want {
			t.Errorf("%s: %d, want %d", source, got, want)
		}
	}
}
