package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/text"
)

func TestWrap(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		width  int
		indent string
		want   []string
	}{
		"fits": {"what fits stays as it is", "NAME   AGE", 10, "  ", []string{"NAME   AGE"}},
		"at a space": {
			"nothing is lost, and what goes on is indented",
			"one two three four", 9, "  ", []string{"one two", "  three", "  four"},
		},
		"long word": {
			"a word without a space is cut rather than let out",
			"abcdefghijkl", 5, "", []string{"abcde", "fghij", "kl"},
		},
		"long word behind an indentation": {
			"the indentation is no place to break at",
			"a bcdefghij", 5, "  ", []string{"a", "  bcd", "  efg", "  hij"},
		},
		"leading spaces": {"they belong to the text", "    four and five", 12, "      ", []string{"    four and", "      five"}},
		"runes":          {"columns are characters, not bytes", "── ── ──", 5, "", []string{"── ──", "──"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := wrap(tc.text, tc.width, tc.indent)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
			for _, line := range got {
				if utf8.RuneCountInString(line) > tc.width {
					t.Errorf("%q is wider than %d", line, tc.width)
				}
			}
		})
	}
}

func TestBroken(t *testing.T) {
	cases := map[string]struct {
		reason  string
		command string
		want    string
	}{
		"short":          {"nothing to do", "kubectl get cer", "kubectl get cer"},
		"before options": {"an option stays with its value", "kubectl get events --watch -o wide", "kubectl get events --watch \\\n-o wide"},
		"anywhere":       {"better than too wide", "kubectl delete deployment lighthouse-webhook", "kubectl delete deployment \\\nlighthouse-webhook"},
		"quotes":         {"a backslash would be part of the text", "sed 's# a b c d e f g h i j k l m#n#'", "sed \\\n's# a b c d e f g h i j k l m#n#'"},
		"lines":          {"each is on its own", "penstock render dir --name x |\nkubectl apply -f -", "penstock render dir --name x |\nkubectl apply -f -"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, broken(tc.command, 31)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWords(t *testing.T) {
	cases := map[string]struct{ reason, got, want string }{
		"one":          {"singular", text.Count(1, "object"), "1 object"},
		"many":         {"plural", text.Count(0, "object"), "0 objects"},
		"seconds":      {"short times are not rounded to nothing", seconds(42 * time.Millisecond), "0.04 s"},
		"some":         {"the rest is counted", some([]string{"a", "b", "c", "d"}, 2), "a, b, and 2 more"},
		"all":          {"one more is not worth counting", some([]string{"a", "b", "c"}, 2), "a, b, c"},
		"clip":         {"characters, not bytes", clip("──────", 4), "───…"},
		"plain word":   {"needs no quotes", quoted("../manifests/1.19.5"), "../manifests/1.19.5"},
		"quoted word":  {"a shell takes it as it is", quoted("it's $HOME"), `'it'\''s $HOME'`},
		"last lines":   {"the end matters", lastLines("a\nb\nc\n", 2), "b\nc"},
		"more lines":   {"there may be fewer", lastLines("a\n", 2), "a"},
		"first clause": {"up to the first comma", firstClause("1 of 2 replicas updated, 1 available"), "1 of 2 replicas updated"},
		"whole clause": {"there may be only one", firstClause("not found"), "not found"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, tc.got, tc.want)
			}
		})
	}
}

func TestMissingFrom(t *testing.T) {
	screen := "Annotations:  penstock.dev/summary:\n                RollingOut: phase deploy (2 of 3): Deployment.apps a/b:   1 of 2"
	if got := missingFrom(screen, "phase deploy", "Deployment.apps a/b: 1 of 2"); len(got) > 0 {
		t.Errorf("where lines break makes a difference: %s", got)
	}
	if got := strings.Join(missingFrom(screen, "phase deploy", "pulled"), ""); got != `"pulled"` {
		t.Errorf("what is missing is %s, want %q", got, "pulled")
	}
}
