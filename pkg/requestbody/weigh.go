package requestbody

import (
	"fmt"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The memory for decoding depends on the number of values more than on the length. `[{},{},…` takes
// twenty times its length, and `[{"a":1},…` fifty times. A ConfigMap with a long text takes little
// more than its text. TestWeigh measures it.
const (
	// textFactor is the number of simultaneous copies of the text: the received text, the canonical
	// manifests, and a doubling buffer for the replaced text.
	textFactor = 4

	// bytesPerJSONValue is the memory of a value in a tree. It includes the value's part of maps
	// and slices, and the garbage of growing them.
	bytesPerJSONValue = 128

	// bytesPerYAMLValue is the memory of a YAML value. Most of it is garbage: tokens, events and
	// nodes.
	bytesPerYAMLValue = 256
)

// weighJSON returns the approximate memory, in bytes, for decoding a JSON text. Every value follows
// one of four characters. They count within strings as well: the last-applied annotation of kubectl
// apply is JSON in a string, and is decoded too.
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

// weighYAML works like weighJSON, for a text that must be read as YAML. In YAML, a line or a dash
// can also begin a value. weighYAML does not count aliases: see checkAliases.
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
	// aliasFactor bounds the growth of a YAML text by its aliases.
	aliasFactor = 4
	// freeAliasBytes is the size that every expanded text may have.
	freeAliasBytes = 64 << 10
)

// checkAliases refuses a YAML text that is much longer when its aliases are expanded: 34 KiB can
// become 90 MiB. The libraries limit only the number of nodes, so long strings pass.
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

// mayHaveAliases reports whether a name occurs both after an asterisk and after an ampersand.
// Scripts contain both signs, but seldom with the same name. Text that is not UTF-8 always counts
// as one with aliases.
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

// maxAnchorNames bounds the memory for names of anchors. A body with more names counts as a body
// with aliases.
const maxAnchorNames = 1000

// eachName calls f for every name after a mark, until f returns false.
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

// expansion computes the length of a text with expanded aliases.
type expansion struct {
	limit int64
	// anchored holds the sizes of the nodes that have an anchor. An anchor precedes its aliases, so
	// its size is known at each alias, except at an alias within the node itself.
	anchored map[*yamlv3.Node]int64
}

// size returns the approximate length of a node, in bytes. It returns false if the length exceeds
// the limit or is infinite.
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
