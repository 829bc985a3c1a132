package fbc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/text"
)

// longestText limits the quoted text in an error, in bytes.
const longestText = 80

// yamlDocuments is a stream of YAML documents, separated by lines "---" or "...". It skips
// documents that contain only comments.
type yamlDocuments struct {
	in     *bufio.Reader
	limit  int
	line   int // lines read so far
	ended  bool
	buffer []byte
}

func (d *yamlDocuments) next() ([]byte, int, error) {
	for !d.ended {
		begin, err := d.read()
		if err != nil {
			return nil, begin, err
		}
		if err := checkValues(d.buffer); err != nil {
			return nil, begin, err
		}
		document := bytes.TrimPrefix(d.buffer, []byte(text.ByteOrderMark)) // a file that was concatenated with others has one
		converted := bytes.TrimSpace(document)
		if !bytes.HasPrefix(converted, []byte("{")) || !json.Valid(converted) {
			var err error
			if converted, err = yaml.YAMLToJSON(document); err != nil {
				line, err := moved(err, begin)
				return nil, line, err
			}
		}
		if len(converted) > d.limit {
			return nil, begin, tooLarge(d.limit) // aliases can multiply the size
		}
		if bytes.Equal(converted, []byte("null")) {
			continue
		}
		first := begin
		for line := range bytes.Lines(d.buffer) {
			if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' {
				break
			}
			first++
		}
		if converted[0] != '{' {
			return nil, first, errors.New("the document is no object: every file of a catalog is read, so a file that is something else belongs in " + ignoreFile)
		}
		return converted, first, nil
	}
	return nil, d.line, io.EOF
}

// read fills the buffer up to the next separator, and returns the first line number.
func (d *yamlDocuments) read() (int, error) {
	d.buffer = d.buffer[:0]
	begin := d.line + 1
	continued := false
	for {
		part, err := d.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return begin, err
		}
		if behind, is := separator(part); is && !continued {
			d.line++
			if len(behind) > 0 {
				return d.line, fmt.Errorf("found %q after %s: a document begins on the next line", text.Clip(string(behind), longestText), part[:3])
			}
			if d.ended = errors.Is(err, io.EOF); d.ended || len(bytes.TrimSpace(d.buffer)) > 0 {
				return begin, nil
			}
			begin = d.line + 1
			continue
		}
		if len(d.buffer)+len(part) > d.limit {
			return begin, tooLarge(d.limit)
		}
		d.buffer = append(d.buffer, part...)
		continued = errors.Is(err, bufio.ErrBufferFull)
		if !continued {
			d.line++
		}
		if errors.Is(err, io.EOF) {
			d.ended = true
			return begin, nil
		}
	}
}

// separator reports whether a line ends a document, and returns the text after the separator,
// except a comment. YAML allows a document there, but this reader would add it to the previous
// document, and lose it.
func separator(line []byte) (behind []byte, is bool) {
	line = bytes.TrimPrefix(line, []byte(text.ByteOrderMark))
	rest, is := bytes.CutPrefix(line, []byte("---"))
	if !is {
		rest, is = bytes.CutPrefix(line, []byte("..."))
	}
	if !is || len(rest) > 0 && !bytes.ContainsAny(rest[:1], " \t\r\n") {
		return nil, false
	}
	if behind = bytes.TrimSpace(rest); len(behind) > 0 && behind[0] == '#' {
		return nil, true
	}
	return behind, true
}

// moved converts the line of a YAML error within the document to the line within the file.
func moved(err error, begin int) (int, error) {
	parts := regexp.MustCompile(`(?s)^.*yaml: line (\d+): (.*)$`).FindStringSubmatch(err.Error())
	if parts == nil {
		return begin, fmt.Errorf("reading YAML: %w", err)
	}
	line, convertErr := strconv.Atoi(parts[1])
	if convertErr != nil {
		return begin, fmt.Errorf("reading YAML: %w", err)
	}
	return begin + line - 1, errors.New("reading YAML: " + parts[2])
}
