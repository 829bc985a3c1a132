package directory

import "github.com/penstock-project/penstock/pkg/applycheck"

// position holds the line of a value in its file, and the positions of its children by key and by
// index. YAML and JSON are both parsed into positions, so that an error about a field can name its
// line.
type position struct {
	line int
	// keys has the position of each value, with the line of its key.
	keys  map[string]*position
	items []*position
}

// at returns the line of the deepest part of the path that exists.
func (p *position) at(path ...string) int {
	for _, key := range path {
		child := p.keys[key]
		if child == nil {
			break
		}
		p = child
	}
	return p.line
}

// place returns the line of the deepest existing part of a path. The path may have list items.
func (p *position) place(path applycheck.Path) int {
	for _, step := range path {
		var child *position
		if step.Field != "" {
			child = p.keys[step.Field]
		} else if step.Index < len(p.items) {
			child = p.items[step.Index]
		}
		if child == nil {
			break
		}
		p = child
	}
	return p.line
}

// element returns the position of a list element, or the nearest known position. An aliased list
// has no positions of its own.
func (p *position) element(key string, i int) *position {
	list := p.keys[key]
	if list == nil {
		return &position{line: p.line}
	}
	if i < len(list.items) {
		return list.items[i]
	}
	return &position{line: list.line}
}

// flaw is a problem in a document.
type flaw struct {
	line    int
	message string
	// tolerable is true for flaws that Helm accepts.
	tolerable bool
}
