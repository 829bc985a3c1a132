package fences

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestNoStoredContexts: no struct has a field that is a context. A stored context outlives its
// call, or ends work of other callers. Lasting work gets its own context and is stopped explicitly.
// Tests and test packages are exempt.
func TestNoStoredContexts(t *testing.T) {
	sources(t, func(file string, source []byte) {
		for _, at := range storedContexts(t, file, source) {
			t.Errorf("%s: a struct has a context.Context: pass it to the call, or start what lasts with one of its own", at)
		}
	})
}

func storedContexts(t *testing.T, file string, source []byte) []token.Position {
	t.Helper()
	return positions(t, file, source, func(node ast.Node) []ast.Node {
		structure, ok := node.(*ast.StructType)
		if !ok {
			return nil
		}
		var contexts []ast.Node
		for _, field := range structure.Fields.List {
			if selected, ok := field.Type.(*ast.SelectorExpr); ok && selected.Sel.Name == "Context" {
				if pkg, ok := selected.X.(*ast.Ident); ok && pkg.Name == "context" {
					contexts = append(contexts, field)
				}
			}
		}
		return contexts
	})
}

func TestStoredContexts(t *testing.T) {
	finds(t, storedContexts, map[string]int{
		"package p; type a struct { ctx context.Context }":              1,
		"package p; type a struct { context.Context }":                  1,
		"package p; var a = struct { b struct{ c context.Context } }{}": 1,
		"package p; type a struct { do func(context.Context) }":         0,
		"package p; type a struct { stop context.CancelFunc }":          0,
	})
}
