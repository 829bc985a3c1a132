package screen

import (
	"bytes"
	"strings"
	"testing"
)

// on returns a screen on a terminal; with 0 columns, without a terminal.
func on(out *bytes.Buffer, columns, lines int, colour Colour, env map[string]string) *Screen {
	return New(out, func(any) (Size, bool) { return Size{columns, lines}, columns > 0 }, colour, func(name string) string { return env[name] })
}

func TestSafe(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"colour":    {"a terminal obeys no escape of others", "a\x1b[31mb", "a[31mb"},
		"title":     {"nor one that ends with a bell", "\x1b]0;evil\x07x", "]0;evilx"},
		"c1":        {"nor the short form of them", "a\u009b31mb", "a31mb"},
		"bidi":      {"text is read in the order in which it is", "user\u202egnp.exe\u2066", "usergnp.exe"},
		"invisible": {"nothing hides", "a\u200bb\ufeffc", "abc"},
		"lines":     {"one line stays one", "a\r\nb\tc", "a  b c"},
		"broken":    {"bytes that are no text are left out", "a\xffb", "ab"},
		"letters":   {"letters of all people stay", "Größe 値 ☕", "Größe 値 ☕"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Safe(tc.text); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	if got := SafeLines("a\x1b[2J\nb\u202e"); got != "a[2J\nb" {
		t.Errorf("%q", got)
	}
}

// TestPrintf: printed text is safe, and painted text keeps its colour.
func TestPrintf(t *testing.T) {
	var out bytes.Buffer
	s := on(&out, 80, 24, ColourAuto, nil)
	s.Printf("%s %s\n", s.Paint(Red, "a\x1b[0m"), "b\x1b[31m\n")
	if got := out.String(); got != "\x1b[31ma[0m\x1b[0m b[31m \n" {
		t.Errorf("%q", got)
	}
}

func TestColour(t *testing.T) {
	for name, tc := range map[string]struct {
		columns int
		colour  Colour
		env     map[string]string
		want    bool
	}{
		"terminal":     {80, ColourAuto, nil, true},
		"pipe":         {0, ColourAuto, nil, false},
		"no colour":    {80, ColourAuto, map[string]string{"NO_COLOR": "1"}, false},
		"dumb":         {80, ColourAuto, map[string]string{"TERM": "dumb"}, false},
		"never":        {80, ColourNever, nil, false},
		"always":       {0, ColourAlways, map[string]string{"NO_COLOR": "1"}, true},
		"dumb, always": {80, ColourAlways, map[string]string{"TERM": "dumb"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if got := strings.Contains(string(on(&out, tc.columns, 24, tc.colour, tc.env).Paint(Green, "x")), "\x1b"); got != tc.want {
				t.Errorf("colours: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestTable: widths are computed from the plain text, including wide characters. The last column
// wraps below.
func TestTable(t *testing.T) {
	table := Table{Header: []string{"NAME", "STATE", "WHY"}, Rows: [][]Cell{
		{{Text: "値段"}, {Text: "Active", Style: Green}, {Text: "all is as it should be"}},
		{{Text: "web"}, {Text: "", Style: Red}, {}},
	}}
	var plain, painted, narrow bytes.Buffer
	on(&plain, 0, 0, ColourNever, nil).Table(table)
	if want := "NAME   STATE    WHY\n値段   Active   all is as it should be\nweb\n"; plain.String() != want {
		t.Errorf("%q, want %q", plain.String(), want)
	}
	on(&painted, 0, 0, ColourAlways, nil).Table(table)
	bare := painted.String()
	for _, style := range []Style{Bold, Green, reset} {
		bare = strings.ReplaceAll(bare, string(style), "")
	}
	if bare != plain.String() {
		t.Errorf("with colours the columns are elsewhere: %q", bare)
	}
	on(&narrow, 24, 24, ColourNever, nil).Table(table)
	for line := range strings.Lines(narrow.String()) {
		if width := Width(strings.TrimSuffix(line, "\n")); width > 24 {
			t.Errorf("%d columns: %q", width, line)
		}
	}
	if !strings.Contains(narrow.String(), "Active\n    all is as it should\n    be\n") {
		t.Errorf("what has no room does not go on below: %q", narrow.String())
	}
}

func TestWrap(t *testing.T) {
	if got := strings.Join(Wrap("a few words, and onelongword", 8), "|"); got != "a few|words,|and|onelongword" {
		t.Error(got)
	}
	var out bytes.Buffer
	on(&out, 30, 24, ColourNever, nil).Para(Red, Bad, "what goes on goes on below its text")
	if want := "✗ what goes on goes on below\n  its text\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestLive: a picture replaces the previous one, is at most as high as the terminal, and keeps
// important lines.
func TestLive(t *testing.T) {
	var out bytes.Buffer
	live := &Live{Screen: on(&out, 20, 5, ColourNever, nil)}
	live.Draw([]Line{{Text: "one"}, {Text: "two"}})
	live.Draw([]Line{{Text: "one"}, {Text: "two"}})
	live.Draw([]Line{{Text: "one"}, {Text: "three, which is longer than the terminal"}})
	if want := "one\ntwo\n\x1b[2A\x1b[Jone\nthree, which is lo…\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	live = &Live{Screen: on(&out, 20, 5, ColourNever, nil)}
	live.Draw([]Line{{Text: "head"}, {Text: "a"}, {Text: "b"}, {Text: "c"}, {Text: "fails", Keep: true}, {Text: "d"}})
	if want := "head\na\nfails\n… and 3 more lines\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
