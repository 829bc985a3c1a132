// Package directory parses plain manifests from a directory or a stream into phased objects.
//
// It reads every file named *.yaml, *.yml or *.json, including subdirectories, in lexical order. It
// skips other files, and files and folders whose names begin with a dot. A symbolic link to a file
// is read like a file, because mounted ConfigMaps use such links. A link to a folder is an error,
// because the folder could be missing elsewhere, or the link could be circular. The caller's file
// system decides whether a link may leave the directory (os.Root does not allow it).
//
// It does not render templates and overlays. A kustomization or a chart is an error that names the
// command to render it.
package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

const (
	// maxFileBytes limits the size of one file. A revision can have 16 MiB of canonical JSON; YAML
	// with comments is larger.
	maxFileBytes     = 64 << 20
	defaultMaxErrors = 50
)

// Options configure Render and RenderStream.
type Options struct {
	// MaxErrors limits the returned errors; further errors are counted. 0 means 50.
	MaxErrors int
	// Keep reports whether an object is wanted. It is called before the search for duplicates, so
	// unwanted objects may be duplicates. Its error is reported with the object's place. Nil keeps
	// all objects.
	Keep func(Located) (bool, error)
	// Warn is called, with file and line, for each change that server-side apply needs, and for
	// content that a cluster may refuse; it may be nil.
	Warn func(Error)
	// AnyName reads all files except hidden ones as manifests.
	AnyName bool
	// Unchecked skips the check for server-side apply. It is for objects that the caller converts
	// and then passes to Check.
	Unchecked bool
	// AsHelm accepts input that Helm accepts: a rendered chart, or a stored release. Duplicate
	// keys, and keys whose value differs from their text, are only warnings, and the last value
	// counts. Duplicate container ports are warnings, too, and the first port is kept.
	AsHelm bool
}

// Located is an object with its place in a file.
type Located struct {
	manifest.Object
	// File is the slash-separated path below the directory.
	File string
	// Line in the file, counted from 1.
	Line int

	at *position
}

// LineAt returns the line of the deepest part of a path that exists in the file. The path has field
// names and list indexes.
func (l Located) LineAt(path ...any) int {
	return l.part(path).line
}

// Made returns an object that was generated from l. Its field key has the line of l's field at
// path; everything else has the line of l.
func (l Located) Made(object manifest.Object, key string, path ...any) Located {
	at := &position{line: l.Line, keys: map[string]*position{key: l.part(path)}}
	return Located{Object: object, File: l.File, Line: l.Line, at: at}
}

// InNamespace returns the object in another namespace; empty removes the namespace.
func (l Located) InNamespace(namespace string) (Located, error) {
	content, err := applycheck.Decode(l.JSON)
	if err != nil {
		return l, fmt.Errorf("%s: %w", l.ID, err)
	}
	content = runtime.DeepCopyJSON(content)
	metadata := content["metadata"].(map[string]any)
	if metadata["namespace"] = namespace; namespace == "" {
		delete(metadata, "namespace")
	}
	object, err := manifest.Canonical(content)
	if err != nil {
		return l, &Errors{List: []*Error{{File: l.File, Line: l.Line, Message: fmt.Sprintf("%s: %v", l.ID, err)}}}
	}
	l.Object = object
	return l, nil
}

// part returns the position of a field, or of the deepest existing field around it.
func (l Located) part(path []any) *position {
	p := l.at
	if p == nil {
		return &position{line: l.Line}
	}
	for _, step := range path {
		var child *position
		switch step := step.(type) {
		case string:
			child = p.keys[step]
		case int:
			if step >= 0 && step < len(p.items) {
				child = p.items[step]
			}
		}
		if child == nil {
			// The field is below a value without positions, such as an alias.
			return &position{line: p.line}
		}
		p = child
	}
	return p
}

func (o Options) collector() *collector {
	limit := o.MaxErrors
	if limit <= 0 {
		limit = defaultMaxErrors
	}
	c := newCollector(limit)
	c.keep, c.warn, c.unchecked, c.asHelm = o.Keep, o.Warn, o.Unchecked, o.AsHelm
	return c
}

// Render reads all manifests of a file system and sorts them into phases. Errors in them are an
// *Errors. A file system without manifests is an error, too.
func Render(ctx context.Context, fsys fs.FS, options Options) ([]source.Phase, error) {
	located, err := Read(ctx, fsys, options)
	if err != nil {
		return nil, err
	}
	return sorted(located)
}

// Read returns the objects in the order of files and documents, without phases.
func Read(ctx context.Context, fsys fs.FS, options Options) ([]Located, error) {
	collector := options.collector()
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("reading manifests: %w", err)
		}
		return visit(fsys, name, entry, options.AnyName, collector)
	})
	if err != nil {
		return nil, err
	}
	return collector.found("no manifests found: looked for *.yaml, *.yml and *.json")
}

// Text is a file in memory.
type Text struct {
	// Name is the slash-separated path, for errors.
	Name string
	Data []byte
}

// ReadTexts reads files in memory, in order. Any file name is read; .json means JSON. No objects is
// not an error.
func ReadTexts(ctx context.Context, texts []Text, options Options) ([]Located, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	collector := options.collector()
	for _, one := range texts {
		collector.file(one.Name, one.Data)
	}
	if collector.read == 0 && collector.problems.err() == nil {
		return nil, nil
	}
	return collector.found("")
}

// RenderStream reads all manifests of a YAML or JSON stream. Errors contain its name.
func RenderStream(ctx context.Context, stream io.Reader, name string, options Options) ([]source.Phase, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, err := readBounded(stream)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	collector := options.collector()
	collector.file(name, text)
	located, err := collector.found("no manifests found in " + name)
	if err != nil {
		return nil, err
	}
	return sorted(located)
}

func sorted(located []Located) ([]source.Phase, error) {
	objects := make([]manifest.Object, len(located))
	for i := range located {
		objects[i] = located[i].Object
	}
	return source.Sort(objects)
}

// visit reads one entry of the walk if it is a manifest file.
func visit(fsys fs.FS, name string, entry fs.DirEntry, anyName bool, collector *collector) error {
	if isHidden(name) {
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if entry.IsDir() {
		return nil
	}
	if hint := toolHint(path.Base(name)); hint != "" && !anyName {
		collector.problems.add(name, 0, "%s", hint)
		// The files next to it are its input, and have no meaning by themselves.
		return fs.SkipDir
	}
	if entry.Type()&fs.ModeSymlink != 0 {
		target, err := fs.Stat(fsys, name)
		if err != nil {
			collector.problems.add(name, 0, "following the symbolic link: %v", reason(err))
			return nil
		}
		if target.IsDir() {
			collector.problems.add(name, 0, "is a symbolic link to a folder, which is not followed: copy the folder, or remove the link")
			return nil
		}
	}
	if !anyName && !isManifestFile(name) {
		return nil
	}
	text, err := readFile(fsys, name)
	if err != nil {
		collector.problems.add(name, 0, "reading the file: %v", reason(err))
		return nil
	}
	collector.file(name, text)
	return nil
}

func isHidden(name string) bool {
	base := path.Base(name)
	return base != "." && strings.HasPrefix(base, ".")
}

func isManifestFile(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// toolHint returns the command for a folder that is the input of another tool.
func toolHint(base string) string {
	switch base {
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		return "a kustomization is not rendered here: run `kustomize build` on its folder and give the output to `penstock render -`"
	case "Chart.yaml":
		return "a chart is not rendered here: give its folder to `penstock render --chart`"
	}
	return ""
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file)
}

func readBounded(stream io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(stream, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("larger than %d MiB", maxFileBytes>>20)
	}
	return text, nil
}

// reason returns an error without the path that the place already names.
func reason(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
