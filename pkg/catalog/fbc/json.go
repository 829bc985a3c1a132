package fbc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// jsonDocuments is a stream of JSON objects, separated by optional white space. It copies each
// object once; Decode checks whether it is valid JSON.
type jsonDocuments struct {
	in    *bufio.Reader
	limit int
	line  int
	// buffer has the last document.
	buffer []byte
}

func (d *jsonDocuments) next() ([]byte, int, error) {
	if err := d.skipSpace(); err != nil {
		return nil, d.line, err
	}
	begin := d.line
	d.buffer = d.buffer[:0]
	var state nesting
	for !state.closed {
		chunk, err := d.in.Peek(max(1, d.in.Buffered()))
		if len(chunk) == 0 {
			if errors.Is(err, io.EOF) {
				err = errors.New("the file ends within a JSON object")
			}
			return nil, begin, err
		}
		taken := 0
		for taken < len(chunk) && !state.closed {
			if taken += state.plain(chunk[taken:]); taken == len(chunk) {
				break
			}
			if chunk[taken] == '\n' {
				d.line++
			}
			state.step(chunk[taken])
			taken++
		}
		if len(d.buffer)+taken > d.limit {
			return nil, begin, tooLarge(d.limit)
		}
		d.buffer = append(d.buffer, chunk[:taken]...)
		if _, err := d.in.Discard(taken); err != nil {
			return nil, begin, err
		}
	}
	return d.buffer, begin, checkValues(d.buffer)
}

// errYAML reports that a document after --- is not a JSON object. Then the rest of the stream is
// YAML.
var errYAML = errors.New("the rest is YAML")

// skipSpace skips to the next object. A line --- may separate JSON objects, because YAML readers
// accept it.
func (d *jsonDocuments) skipSpace() error {
	for separated := false; ; {
		c, err := d.in.ReadByte()
		if err != nil {
			return err
		}
		switch c {
		case '\n':
			d.line++
		case ' ', '\t', '\r':
		case '{':
			return d.in.UnreadByte()
		case '-':
			line, err := d.in.ReadSlice('\n')
			if err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(bytes.TrimSpace(line), []byte("--")) {
				return errors.New("found - where a JSON object should begin")
			}
			d.line++
			separated = true
		default:
			if separated {
				if err := d.in.UnreadByte(); err != nil {
					return err
				}
				return errYAML
			}
			return fmt.Errorf("found %q where a JSON object should begin", c)
		}
	}
}

func tooLarge(limit int) error {
	return fmt.Errorf("the document has more than %d bytes, which is the most that is read", limit)
}
