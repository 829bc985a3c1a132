package fences

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// retired are words that identifiers, files and folders do not use any more, with
// the one that took their place: docs/reference/glossary.md.
func retired() map[string]string {
	return map[string]string{
		"difves": "diffs",
		"brake":  "deletion budget, or freeze", "losses": "drift", "discreet": "redaction",
		"meter": "metrics, or cost budget", "unmetered": "metrics", "signals": "metrics",
		"excuse": "tolerance", "excuses": "tolerance", "carried": "task result",
		"provide": "create-only", "provides": "create-only", "provided": "create-only",
		"astray": "target error", "recollections": "memory", "mind": "memory",
		"sighted": "watched", "overreach": "conflicts", "unowned": "conflicts",
		"powers": "privilege", "deaf": "unreachable",
		"aim": "check the target", "aimed": "recorded for a target", "sight": "findings", "shelf": "what it keeps",
		"story": "history, log or scenario", "stories": "histories", "tell": "notify, report, print", "telling": "notify, report",
		"teller": "sender", "world": "what it is: a cluster, a plane, a host", "worlds": "what they are", "unseen": "unknown",
		"wayback": "rollback",
	}
}

// TestRetiredWords: one thing has one word. An identifier is split where its words
// begin: storedRights is stored and rights.
func TestRetiredWords(t *testing.T) {
	words := retired()
	root := os.DirFS("..")
	for _, top := range []string{"pkg", "cmd", "test", "hack"} {
		err := fs.WalkDir(root, top, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "vendor"):
				return fs.SkipDir // what others have named
			}
			for _, word := range termsOf(strings.TrimSuffix(entry.Name(), ".go")) {
				if instead, found := words[word]; found {
					t.Errorf("%s: %q is retired: %s", file, word, instead)
				}
			}
			if entry.IsDir() || path.Ext(file) != ".go" {
				return nil
			}
			return identifiers(root, file, func(at token.Position, name string) {
				for _, word := range termsOf(name) {
					if instead, found := words[word]; found {
						t.Errorf("%s: %s: %q is retired: %s", at, name, word, instead)
					}
				}
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// identifiers calls found for what a file declares, and not for what it uses:
// libraries have words of their own.
func identifiers(root fs.FS, file string, found func(token.Position, string)) error {
	source, err := fs.ReadFile(root, file)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	say := func(name *ast.Ident) {
		if name != nil {
			found(files.Position(name.Pos()), name.Name)
		}
	}
	say(parsed.Name)
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch declared := node.(type) {
		case *ast.FuncDecl:
			say(declared.Name)
		case *ast.TypeSpec:
			say(declared.Name)
		case *ast.Field:
			for _, name := range declared.Names {
				say(name)
			}
		case *ast.ValueSpec:
			for _, name := range declared.Names {
				say(name)
			}
		case *ast.ImportSpec:
			say(declared.Name)
		case *ast.AssignStmt:
			if declared.Tok != token.DEFINE {
				break
			}
			for _, left := range declared.Lhs {
				if name, ok := left.(*ast.Ident); ok {
					say(name)
				}
			}
		case *ast.RangeStmt:
			if declared.Tok != token.DEFINE {
				break
			}
			for _, each := range []ast.Expr{declared.Key, declared.Value} {
				if name, ok := each.(*ast.Ident); ok {
					say(name)
				}
			}
		}
		return true
	})
	return nil
}

func TestWordsOf(t *testing.T) {
	for name, want := range map[string]string{
		"storedRights": "stored rights", "RESTStorage": "rest storage", "newAPI": "new api", "_": "",
		"write_test": "write test", "x509": "x509", "preview2Item": "preview2 item", "kube-apiserver": "kube apiserver",
	} {
		if got := strings.Join(wordsOf(name), " "); got != want {
			t.Errorf("words of %s: %q, want %q", name, got, want)
		}
	}
}

// termsOf are the words of a name, and what two that follow each other are together: wayBack
// has wayback too.
func termsOf(name string) []string {
	words := wordsOf(name)
	for i := range len(words) - 1 {
		words = append(words, words[i]+words[i+1])
	}
	return words
}

// wordsOf splits an identifier or a name of a file, in lower case.
func wordsOf(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = nil
	}
	runes := []rune(name)
	for i, r := range runes {
		begins := unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) ||
			i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		switch {
		case r == '_' || r == '-' || r == '.':
			end()
		case begins:
			end()
			word = append(word, r)
		default:
			word = append(word, r)
		}
	}
	end()
	return words
}

// mostTerms is how many terms a newcomer reads in one sitting, and ten for those who come
// for catalogs.
const mostTerms = 60

// TestGlossary: each term has one row and one sentence, and the package that owns it exists.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| ([^|]+) \\| ([^|]+) \\| `([^`]+)` \\|$").FindAllStringSubmatch(string(text), -1)
	if len(rows) == 0 || len(rows) > mostTerms {
		t.Errorf("%d terms, want 1 to %d", len(rows), mostTerms)
	}
	if lines := regexp.MustCompile(`(?m)^\| [^|]+ \|`).FindAllString(string(text), -1); len(lines) != len(rows)+strings.Count(string(text), "| term | what it is | package |") {
		t.Errorf("%d lines of tables, %d terms: a line is not a term, a sentence and a package", len(lines), len(rows))
	}
	seen := map[string]bool{}
	for _, row := range rows {
		term, folder := row[1], row[3]
		if seen[term] {
			t.Errorf("%s has two rows", term)
		}
		seen[term] = true
		if strings.Contains(row[2], ". ") {
			t.Errorf("%s has more than one sentence", term)
		}
		if info, err := os.Stat("../" + folder); err != nil || !info.IsDir() {
			t.Errorf("%s belongs to %s, which is no package", term, folder)
		}
		if _, found := retired()[strings.ToLower(term)]; found {
			t.Errorf("%s is retired", term)
		}
	}
}
