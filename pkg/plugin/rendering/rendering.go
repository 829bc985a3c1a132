// Package rendering creates a revision from files. It sorts plain manifests into phases itself. For
// any other input it runs the command render in a child process.
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

// Input names the input to render, and its revision.
type Input struct {
	// From is a directory, a file, "-" for standard input, or a source for penstock render. It is
	// empty if Arguments name the source.
	From  string
	Stdin io.Reader
	// Arguments are arguments of penstock render. If there are any, that program renders.
	Arguments []string
	// Cluster holds arguments with which penstock render reads the cluster, for charts.
	Cluster   []string
	Extension string
	Number    int64
	// Warn is called with each repaired defect.
	Warn func(string)
	// Program runs the program with arguments, and returns its standard output and standard error
	// (see Process).
	Program func(context.Context, io.Reader, ...string) (stdout, stderr []byte, err error)
}

// Revision renders a paused revision.
func (in Input) Revision(ctx context.Context) (*v1alpha1.ClusterExtensionRevision, error) {
	plain, err := in.plain()
	if err != nil {
		return nil, err
	}
	if !plain {
		return in.byProgram(ctx)
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

// plain is true for manifests, and false for charts, bundles and images.
func (in Input) plain() (bool, error) {
	if len(in.Arguments) > 0 {
		return false, nil
	}
	if in.From == "-" {
		return true, nil
	}
	info, err := os.Stat(in.From)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The input may be an image or the name of a chart: penstock render decides, and refuses
		// other input.
		if isPath(in.From) {
			return false, fmt.Errorf("%s: no such directory", in.From)
		}
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return filepath.Ext(in.From) != ".tgz", nil
	}
	for _, mark := range []string{"Chart.yaml", filepath.Join("metadata", "annotations.yaml")} {
		if _, err := os.Stat(filepath.Join(in.From, mark)); err == nil {
			return false, nil
		}
	}
	return true, nil
}

// isPath is true for text that can only be a path. The name of an image has a registry before a
// slash, a tag or a digest.
func isPath(from string) bool {
	return filepath.IsAbs(from) || strings.HasPrefix(from, ".") || !strings.ContainsAny(from, "/:@")
}

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
	// The root does not follow symbolic links out of the directory. So only content of the
	// directory is rendered.
	root, err := os.OpenRoot(in.From)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return directory.Render(ctx, root.FS(), options)
}

func (in Input) byProgram(ctx context.Context) (*v1alpha1.ClusterExtensionRevision, error) {
	args := []string{"render"}
	if in.From != "" {
		args = append(args, in.From)
	}
	args = append(args, "--extension", in.Extension, "--revision", strconv.FormatInt(in.Number, 10), "--paused", "--output", "json")
	args = append(args, in.Cluster...)
	args = append(args, in.Arguments...)
	out, said, err := in.Program(ctx, in.Stdin, args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(said)) {
		if warning, found := strings.CutPrefix(strings.TrimSpace(line), "warning: "); found {
			in.Warn(warning)
		}
	}
	revision := &v1alpha1.ClusterExtensionRevision{}
	if err := json.Unmarshal(out, revision); err != nil {
		return nil, fmt.Errorf("reading the rendered revision: %w", err)
	}
	return revision, nil
}

// Process returns a function that runs a program in a child process.
func Process(executable func() (string, error)) func(context.Context, io.Reader, ...string) (stdout, stderr []byte, err error) {
	return func(ctx context.Context, stdin io.Reader, args ...string) (_, said []byte, err error) {
		path, err := executable()
		if err != nil {
			return nil, nil, fmt.Errorf("looking for this program: %w", err)
		}
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return nil, nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(stderr.Bytes()))
		}
		return stdout.Bytes(), stderr.Bytes(), nil
	}
}
