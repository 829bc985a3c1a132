package requestbody

import (
	"fmt"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The memory for decoding follows from the number of values more than from the
// length: `[{},{},…` becomes twenty times as much, `[{"a":1},…` fifty times, and a
// ConfigMap with a long text hardly more than its text. TestWeigh measures it.
const (
	// textFactor is the number of copies of the text in memory at the same time: the received text,
	// canonical manifests, and their replacement in a buffer that doubles.
	textFactor = 4

	// bytesPerJSONValue is the memory of a value in a tree, with its share of maps and slices and
	// of the garbage from when these grew.
	bytesPerJSONValue = 128

	// bytesPerYAMLValue is that for YAML, most of which is garbage: tokens,
	// events and nodes.
	bytesPerYAMLValue = 256
)

// weighJSON returns about how much memory decoding a JSON text takes, in bytes.
// Every value follows one of four characters. They count within strings as well:
// what client-side kubectl apply remembers is JSON in a string, and is decoded
// too.
func weighJSON(text []byte) int64 {
	var values int64
	for _, c := range text {
		switch c {
		case '{', '[', ',', ':':
			values++
		}
	}
	return int64(len(text))*textFactor + values*bytesPerJSONValue
}

// weighYAML is weighJSON for a text that has to be read as YAML, to whose values
// lines and dashes lead as well. It knows nothing of aliases: see checkAliases.
func weighYAML(text []byte) int64 {
	var values int64
	var last byte
	for _, c := range text {
		switch {
		case c == '{', c == '[', c == ',', c == ':', c == '\n', c == ' ' && last == '-':
			values++
		}
		last = c
	}
	return int64(len(text))*textFactor + values*bytesPerYAMLValue
}

const (
	// aliasFactor bounds the growth of a YAML text when its aliases are expanded.
	aliasFactor = 4
	// freeAliasBytes is the size that any text may expand to.
	freeAliasBytes = 64 << 10
)

// checkAliases refuses a YAML text that is much longer when its aliases are
// written out: 34 KiB can become 90 MiB. The libraries have a limit of their own,
// on the number of nodes, which long strings pass.
func checkAliases(text []byte) error {
	if !mayHaveAliases(text) {
		return nil
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(text, &document); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("reading YAML with aliases: %s", err))
	}
	limit := max(freeAliasBytes, aliasFactor*int64(len(text)))
	expansion := expansion{limit: limit, anchored: map[*yamlv3.Node]int64{}}
	if size, ok := expansion.size(&document); !ok || size > limit {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the aliases of this YAML expand its %d bytes to more than %d: write the values out, or send JSON", len(text), limit))
	}
	return nil
}

// mayHaveAliases is true when somewhere there is an asterisk before a name that
// somewhere else has an ampersand before it. Both are usual in scripts, though
// seldom of the same name. Text that is not UTF-8 is looked at closely.
func mayHaveAliases(text []byte) bool {
	if !utf8.Valid(text) {
		return true
	}
	anchors := map[string]bool{}
	eachName(text, '&', func(name string) bool {
		anchors[name] = true
		return len(anchors) < maxAnchorNames
	})
	if len(anchors) == 0 || len(anchors) == maxAnchorNames {
		return len(anchors) > 0
	}
	found := false
	eachName(text, '*', func(name string) bool {
		found = anchors[name]
		return !found
	})
	return found
}

// maxAnchorNames bounds the memory for names of anchors; a body with more of them counts
// as one with aliases.
const maxAnchorNames = 1000

// eachName calls f for every name that follows a mark, until f returns false.
func eachName(text []byte, mark byte, f func(name string) bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != mark {
			continue
		}
		end := i + 1
		for end < len(text) && isNameByte(text[end]) {
			end++
		}
		if end > i+1 && !f(string(text[i+1:end])) {
			return
		}
		i = end - 1
	}
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// expansion tells how long a text is with its aliases written out.
type expansion struct {
	limit int64
	// anchored are the sizes of nodes that aliases stand for: known before any
	// alias of them comes, because anchors come first. An alias within its own
	// node is not known yet.
	anchored map[*yamlv3.Node]int64
}

// size returns about how long a node is, in bytes, and false when that is beyond
// the limit, or without end.
func (e expansion) size(node *yamlv3.Node) (int64, bool) {
	if node.Kind == yamlv3.AliasNode {
		size, known := e.anchored[node.Alias]
		return size, known
	}
	const punctuation = 3
	size := int64(len(node.Value)) + punctuation
	for _, child := range node.Content {
		part, ok := e.size(child)
		if size += part; !ok || size > e.limit {
			return size, false
		}
	}
	if node.Anchor != "" {
		e.anchored[node] = size
	}
	return size, true
}
