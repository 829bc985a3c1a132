package fbc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Document is one document of a catalog, not decoded.
type Document struct {
	// File and Line are the place where it begins.
	File string
	Line int
	// Schema, Package and Name are empty if the document has none. The package of an olm.package is
	// its name.
	Schema, Package, Name string
	// JSON is the whole document. It is valid only until the next document is read, so copy it to
	// keep it. It may be invalid JSON until Decode or Check accepts it.
	JSON []byte
}

// Decode decodes the document into one of the types of this package.
func (d *Document) Decode(into any) error {
	if err := json.Unmarshal(d.JSON, into); err != nil {
		return d.failed(inWords(err))
	}
	return nil
}

// Check reports whether the document is valid JSON.
func (d *Document) Check() error {
	if json.Valid(d.JSON) {
		return nil
	}
	return d.Decode(&json.RawMessage{})
}

func (d *Document) failed(err error) error {
	return &Error{File: d.File, Line: d.Line, Schema: d.Schema, Package: d.Package, Name: d.Name, Err: err}
}

// identify reads schema, package and name. It ignores the case of keys. A duplicate key is an
// error, because readers would disagree on which one counts.
func (d *Document) identify() error {
	seen := map[string]string{}
	targets := map[string]*string{"schema": &d.Schema, "package": &d.Package, "name": &d.Name}
	err := members(d.JSON, func(key string, value []byte) error {
		folded := strings.ToLower(key)
		target, known := targets[folded]
		if !known {
			return nil
		}
		if first, twice := seen[folded]; twice {
			return fmt.Errorf("keys %q and %q are the same key: remove one", first, key)
		}
		seen[folded] = key
		if bytes.Equal(value, []byte("null")) {
			return nil
		}
		if err := json.Unmarshal(value, target); err != nil {
			return fmt.Errorf("field %s: %w", folded, inWords(err))
		}
		return nil
	})
	if d.Schema == SchemaPackage {
		d.Package = d.Name
	}
	if err != nil {
		return d.failed(err)
	}
	return nil
}

var errMalformed = errors.New("is no valid JSON object")

// members calls found for every member of an object. It does not parse the values, which may be
// large; Decode checks them.
func members(object []byte, found func(key string, value []byte) error) error {
	rest := bytes.TrimLeft(object, " \t\r\n")
	if len(rest) == 0 || rest[0] != '{' {
		return errMalformed
	}
	rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	for len(rest) > 0 && rest[0] == '"' {
		end := valueEnd(rest)
		if end < 0 {
			return errMalformed
		}
		var key string
		if err := json.Unmarshal(rest[:end], &key); err != nil {
			return errMalformed
		}
		rest = bytes.TrimLeft(rest[end:], " \t\r\n")
		if len(rest) == 0 || rest[0] != ':' {
			return errMalformed
		}
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
		if end = valueEnd(rest); end < 0 {
			return errMalformed
		}
		if err := found(key, bytes.TrimRight(rest[:end], " \t\r\n")); err != nil {
			return err
		}
		rest = bytes.TrimLeft(rest[end:], " \t\r\n")
		if len(rest) == 0 || rest[0] != ',' {
			break
		}
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
	}
	if len(rest) == 0 || rest[0] != '}' {
		return errMalformed
	}
	return nil
}

// valueEnd returns the length of the JSON value at the beginning; negative if the value is
// incomplete.
func valueEnd(text []byte) int {
	var s nesting
	for i := 0; i < len(text); i++ {
		if i += s.plain(text[i:]); i == len(text) {
			break
		}
		c := text[i]
		if s.depth == 0 && !s.inString && (c == ',' || c == '}' || c == ']') {
			return i // the end of a number or of a literal
		}
		if s.step(c); s.closed {
			return i + 1
		}
	}
	return -1
}

// nesting tracks a JSON text far enough to find the end of a value.
type nesting struct {
	depth             int
	inString, escaped bool
	// closed is true if the last character ended a top-level string, object or array.
	closed bool
}

// plain returns the number of following bytes inside a string that have no special meaning. They
// are most of a catalog.
func (n *nesting) plain(text []byte) int {
	if !n.inString || n.escaped {
		return 0
	}
	for i, c := range text {
		if c == '"' || c == '\\' {
			return i
		}
	}
	return len(text)
}

func (n *nesting) step(c byte) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.inString:
		switch c {
		case '\\':
			n.escaped = true
		case '"':
			n.inString, n.closed = false, n.depth == 0
		}
	case c == '"':
		n.inString = true
	case c == '{' || c == '[':
		n.depth++
	case c == '}' || c == ']':
		n.depth--
		n.closed = n.depth == 0
	}
}
