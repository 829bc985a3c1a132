// Package rendering makes a revision of files. Plain manifests are sorted into phases
// here; everything else is rendered by the program penstock.
package rendering

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// Input is what to render, as which revision.
type Input struct {
	// From is a directory, a file, or "-" for standard input; or what penstock render takes.
	From  string
	Stdin io.Reader
	// Arguments are those of penstock render. With any, that program renders.
	Arguments []string
	Extension string
	Number    int64
	// Warn is told what was mended.
	Warn func(string)
	// Program runs penstock with arguments and returns what it prints; nil runs the one on
	// PATH.
	Program func(context.Context, io.Reader, ...string) ([]byte, error)
}

// Revision renders a paused revision.
func (in Input) Revision(ctx context.Context) (*v1alpha1.ClusterExtensionRevision, error) {
	kind, err := in.kind()
	if err != nil {
		return nil, err
	}
	if kind != manifests || len(in.Arguments) > 0 {
		return in.byProgram(ctx, kind)
	}
	phases, err := in.phases(ctx)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", in.From, err)
	}
	revision := &v1alpha1.ClusterExtensionRevision{}
	revision.Name = olm.RevisionName(in.Extension, in.Number)
	revision.Spec.Revision = in.Number
	revision.Spec.LifecycleState = v1alpha1.LifecycleStatePaused
	for _, phase := range phases {
		rendered := v1alpha1.RevisionPhase{Name: phase.Name}
		for _, object := range phase.Objects {
			rendered.Objects = append(rendered.Objects, v1alpha1.RevisionObject{Object: &v1alpha1.Manifest{Raw: object.JSON}})
		}
		revision.Spec.Phases = append(revision.Spec.Phases, rendered)
	}
	return revision, nil
}

// kind is what the input is.
type kind int

const (
	manifests kind = iota
	chart
	bundle
	// other is what penstock render may know, or refuses.
	other
)

// kind looks for the files by which charts and bundles are known.
func (in Input) kind() (kind, error) {
	if in.From == "-" {
		return manifests, nil
	}
	info, err := os.Stat(in.From)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return other, nil
	case err != nil:
		return other, err
	case !info.IsDir() && filepath.Ext(in.From) == ".tgz":
		return chart, nil
	case !info.IsDir():
		return manifests, nil
	}
	for mark, is := range map[string]kind{"Chart.yaml": chart, filepath.Join("metadata", "annotations.yaml"): bundle} {
		if _, err := os.Stat(filepath.Join(in.From, mark)); err == nil {
			return is, nil
		}
	}
	return manifests, nil
}

// phases reads manifests.
func (in Input) phases(ctx context.Context) ([]source.Phase, error) {
	options := directory.Options{Warn: func(one directory.Error) { in.Warn(one.Error()) }}
	if in.From == "-" {
		return directory.RenderStream(ctx, in.Stdin, "stdin", options)
	}
	info, err := os.Stat(in.From)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		file, err := os.Open(in.From)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return directory.RenderStream(ctx, file, in.From, options)
	}
	// A root that symbolic links do not lead out of: what is rendered is what is in the
	// directory.
	root, err := os.OpenRoot(in.From)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return directory.Render(ctx, root.FS(), options)
}

// byProgram has the program penstock render.
func (in Input) byProgram(ctx context.Context, kind kind) (*v1alpha1.ClusterExtensionRevision, error) {
	from := []string{in.From}
	switch kind {
	case chart:
		from = []string{"--chart", in.From}
	case bundle:
		from = []string{"--bundle", in.From}
	case manifests, other:
	}
	args := append(append([]string{"render"}, from...), append([]string{"--extension", in.Extension, "--revision", strconv.FormatInt(in.Number, 10), "--paused", "--output", "json"}, in.Arguments...)...)
	run := in.Program
	if run == nil {
		run = in.onPath
	}
	out, err := run(ctx, in.Stdin, args...)
	if err != nil {
		return nil, err
	}
	revision := &v1alpha1.ClusterExtensionRevision{}
	if err := json.Unmarshal(out, revision); err != nil {
		return nil, fmt.Errorf("reading what penstock render printed: %w", err)
	}
	return revision, nil
}

// onPath runs the program penstock, and passes its warnings on.
func (in Input) onPath(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	path, err := exec.LookPath("penstock")
	if err != nil {
		return nil, fmt.Errorf("%s is no directory and no file of plain manifests; charts, bundles and other layouts are rendered by the program penstock, which is not on PATH", in.From)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("penstock render: %w\n%s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	for line := range strings.Lines(stderr.String()) {
		if warning, is := strings.CutPrefix(strings.TrimSpace(line), "warning: "); is {
			in.Warn(warning)
		}
	}
	return stdout.Bytes(), nil
}
