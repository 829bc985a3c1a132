package directory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// jsonDocuments splits a stream of JSON values.
func jsonDocuments(text []byte) ([]document, *flaw) {
	var documents []document
	lines := lineCounter{text: text}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return documents, &flaw{line: lines.at(jsonErrorOffset(text, err)), message: "not valid JSON: " + err.Error()}
		}
		start := int(decoder.InputOffset()) - len(value)
		documents = append(documents, document{line: lines.at(start), text: value, json: true})
	}
}

// jsonErrorOffset returns the offset of the byte at which parsing failed.
func jsonErrorOffset(text []byte, err error) int {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return max(int(syntax.Offset)-1, 0)
	}
	return len(bytes.TrimRight(text, " \t\r\n"))
}

// readJSON returns the positions of a valid document.
func readJSON(doc document) (content []byte, root *position, flaws []flaw) {
	if string(doc.text) == "null" {
		return nil, nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(doc.text))
	// A number that is too large for a float would be refused otherwise.
	decoder.UseNumber()
	reader := jsonReader{decoder: decoder, lines: lineCounter{text: doc.text}, offset: doc.line - 1}
	root, err := reader.position()
	if err != nil {
		return nil, nil, []flaw{{line: doc.line, message: "not valid JSON: " + err.Error()}}
	}
	return doc.text, root, reader.flaws
}

type jsonReader struct {
	decoder *json.Decoder
	lines   lineCounter
	offset  int
	flaws   []flaw
}

func (r *jsonReader) position() (*position, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	p := &position{line: r.line()}
	switch token {
	case json.Delim('{'):
		p.keys = map[string]*position{}
		for r.decoder.More() {
			if err := r.member(p); err != nil {
				return nil, err
			}
		}
		_, err = r.decoder.Token()
	case json.Delim('['):
		for r.decoder.More() {
			child, err := r.position()
			if err != nil {
				return nil, err
			}
			p.items = append(p.items, child)
		}
		_, err = r.decoder.Token()
	}
	return p, err
}

func (r *jsonReader) member(p *position) error {
	token, err := r.decoder.Token()
	if err != nil {
		return err
	}
	key, line := token.(string), r.line()
	child, err := r.position()
	if err != nil {
		return err
	}
	child.line = line
	if first, twice := p.keys[key]; twice {
		r.flaws = append(r.flaws, flaw{line, fmt.Sprintf("key %q is already on line %d", key, first.line), true})
	}
	p.keys[key] = child
	return nil
}

// line returns the line of the last token. No JSON token spans lines, so this is also the line
// where the token begins.
func (r *jsonReader) line() int {
	return r.offset + r.lines.at(int(r.decoder.InputOffset())-1)
}

// lineCounter counts lines for increasing offsets.
type lineCounter struct {
	text          []byte
	offset, lines int
}

// at returns the line of a byte, counted from 1.
func (c *lineCounter) at(offset int) int {
	offset = min(offset, len(c.text))
	if offset > c.offset {
		c.lines += bytes.Count(c.text[c.offset:offset], []byte("\n"))
		c.offset = offset
	}
	return c.lines + 1
}

// looksLikeJSON guesses whether a file is JSON, as kubectl does.
func looksLikeJSON(text []byte) bool {
	return strings.HasPrefix(string(bytes.TrimLeft(text[:min(len(text), 1024)], " \t\r\n")), "{")
}
