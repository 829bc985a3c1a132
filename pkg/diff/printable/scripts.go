package printable

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// lookalikes are letters of other scripts that look like Latin letters.
const lookalikes = "аеорсухіјѕһԁԛԝьѵӏвкмнтгАВЕКМНОРСТУХІЈЅԚԜҮ" + // Cyrillic
	"αικνορτυχωγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + // Greek
	"աոսցօհզքյ" + "ՕՍՏ" + // Armenian
	"ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᏔᏃ" // Cherokee

// misleading returns the letters of a text that a reader could confuse with Latin letters, or nil.
// These are letters of another script in a word with Latin letters, and compatibility forms of
// letters (fullwidth, mathematical). A word of only lookalikes also counts if the text has no other
// letters of that script.
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
	var foreign []rune // of words with only lookalikes
	genuine := false   // the text has letters that do not look like Latin letters
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

// Lookalikes names the misleading letters of a text, such as "U+0430". It is for text that is shown
// unescaped.
func Lookalikes(s string) []string {
	var names []string
	for _, r := range slices.Sorted(maps.Keys(misleading(s))) {
		names = append(names, fmt.Sprintf("%U", r))
	}
	return names
}

// isCompatible reports whether a character is a compatibility form of a letter or digit.
func isCompatible(r rune) bool {
	return r >= 0xff01 && r <= 0xff5e || r >= 0x1d400 && r <= 0x1d7ff
}

// isEastAsian reports whether a letter belongs to a script that is mixed with Latin letters in one
// word.
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
