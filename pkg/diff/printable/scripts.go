package printable

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// lookalikes are letters of other scripts that look like Latin ones.
const lookalikes = "аеорсухіјѕһԁԛԝьѵӏвкмнтгАВЕКМНОРСТУХІЈЅԚԜҮ" + // Cyrillic
	"αικνορτυχωγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + // Greek
	"աոսցօհզքյ" + "ՕՍՏ" + // Armenian
	"ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᏔᏃ" // Cherokee

// misleading returns the letters of a text that a reader could take for others, nil for none: those
// of another script within a word of Latin letters, a word of nothing but lookalikes of Latin
// letters in a text that has no other letters of that script, and forms of letters that exist
// for compatibility (fullwidth, mathematical).
func misleading(s string) map[rune]bool {
	if isASCII(s) {
		return nil
	}
	var found map[rune]bool
	note := func(letters []rune) {
		for _, r := range letters {
			if found == nil {
				found = map[rune]bool{}
			}
			found[r] = true
		}
	}
	var foreign []rune // of words that are nothing but lookalikes
	genuine := false   // there are letters that look like no Latin ones
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) }) {
		latin := false
		var others []rune
		all := true
		for _, r := range word {
			switch {
			case isCompatible(r):
				note([]rune{r})
			case unicode.Is(unicode.Latin, r):
				latin = true
			case unicode.IsLetter(r) && !isEastAsian(r):
				others = append(others, r)
				if !strings.ContainsRune(lookalikes, r) {
					all, genuine = false, true
				}
			}
		}
		switch {
		case latin:
			note(others)
		case all:
			foreign = append(foreign, others...)
		}
	}
	if !genuine {
		note(foreign)
	}
	return found
}

// Lookalikes names the letters of a text that a reader could take for others, such as "U+0430". It is for
// text that is shown as it is; in any other they are escaped.
func Lookalikes(s string) []string {
	var names []string
	for _, r := range slices.Sorted(maps.Keys(misleading(s))) {
		names = append(names, fmt.Sprintf("%U", r))
	}
	return names
}

// isCompatible is true for another form of a letter or digit.
func isCompatible(r rune) bool {
	return r >= 0xff01 && r <= 0xff5e || r >= 0x1d400 && r <= 0x1d7ff
}

// isEastAsian is true for scripts that stand beside Latin letters in one word.
func isEastAsian(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
