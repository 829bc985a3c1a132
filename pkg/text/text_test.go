package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		limit        int
		want         string
	}{
		"short":     {"what fits stays", "abc", 3, "abc"},
		"long":      {"the ellipsis counts", "abcdef", 5, "ab…"},
		"character": {"none is left half", "aäbcdef", 5, "a…"},
		"broken":    {"what fits is not looked at", "\xff", 3, "\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Clip(tc.text, tc.limit); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	for limit := range 40 {
		if got := Clip(strings.Repeat("añ漢🙂", 20), limit+3); len(got) > limit+3 || !utf8.ValidString(got) {
			t.Errorf("at most %d bytes: %q has %d", limit+3, got, len(got))
		}
	}
}

func TestCut(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		limit        int
		want         string
	}{
		"short":     {"what fits stays", "abc", 3, "abc"},
		"long":      {"nothing says that there was more", "abcdef", 5, "abcde"},
		"character": {"none is left half", "aä", 2, "a"},
		"nothing":   {"no character fits", "🙂", 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Cut(tc.text, tc.limit); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestMiddle(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		limit        int
		want         string
	}{
		"short":  {"what fits stays", "abc", 3, "abc"},
		"long":   {"begin and end stay", "abcdefghijklmnop", 9, "ab…mnop"},
		"within": {"no character is left half", "ääbcdefghijkñññ", 9, "ä…ññ"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Middle(tc.text, tc.limit); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPunctuated(t *testing.T) {
	for given, want := range map[string]string{
		"it is refused.; try again": "it is refused; try again", "no right.: grant it": "no right: grant it",
		"1.2.3; more": "1.2.3; more", "It is done.": "It is done.", "a..b; c": "a..b; c",
	} {
		if got := Punctuated(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	if got := Count(1, "object") + ", " + Count(int64(0), "object") + ", " + Count(int32(8), "object"); got != "1 object, 0 objects, 8 objects" {
		t.Error(got)
	}
}

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		limit        int
		want         string
	}{
		"plain":    {"what prints stays", "Keeps Beacons – burning.", 40, "Keeps Beacons – burning."},
		"gaps":     {"each is one space, and none at the ends", " \ta\n\u2028 b\r\n", 9, "a b"},
		"terminal": {"nothing moves the cursor or turns text", "a\x1b[2Jb\u202ec\u200bd\x00", 20, "a[2Jbcd"},
		"broken":   {"it is UTF-8", "a\xffb", 9, "ab"},
		"long":     {"it is clipped", strings.Repeat("x", 1000), 5, "xx…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(tc.text, tc.limit); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
