package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// maxComplaint limits the kept standard error of a process, in bytes.
const maxComplaint = 64 << 10

// run renders in another process. It ends the process if it takes too long or its answer is too
// large.
func (r Renderer) run(ctx context.Context, request template.Request) (template.Answer, error) {
	var answer template.Answer
	encoded, err := json.Marshal(request)
	if err != nil {
		return answer, fmt.Errorf("asking for the chart: %w", err)
	}
	program, err := r.program()
	if err != nil {
		return answer, err
	}
	limits := r.Options.limits()
	ctx, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	command := exec.CommandContext(ctx, program, template.Arguments(limits)...)
	// Templates must not see this process's environment, and times are in UTC. With GOGC=400, the
	// program starts without garbage collections, which would take a third of the time of a small
	// chart.
	command.Env = []string{"TZ=UTC", "GOGC=400"}
	command.Stdin = bytes.NewReader(encoded)
	out := &bounded{limit: limits.Output, full: cancel}
	complaint := &bounded{limit: maxComplaint}
	command.Stdout, command.Stderr = out, complaint
	err = command.Run()
	switch {
	case out.exceeded:
		return answer, fmt.Errorf("the templates make more than %d MiB", limits.Output>>20)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return answer, fmt.Errorf("the templates were not rendered within %s", limits.Time)
	case ctx.Err() != nil:
		return answer, fmt.Errorf("rendering the templates: %w", ctx.Err())
	case err != nil && isOutOfMemory(complaint.buffer.String()):
		return answer, fmt.Errorf("the templates need more than %d MiB of memory", limits.Memory>>20)
	case err != nil:
		first, _, _ := strings.Cut(strings.TrimSpace(complaint.buffer.String()), "\n")
		return answer, fmt.Errorf("the process that renders the chart has ended (%w): %s", err, first)
	}
	if err := json.Unmarshal(out.buffer.Bytes(), &answer); err != nil {
		return answer, fmt.Errorf("reading what the chart makes: %w", err)
	}
	return answer, nil
}

func (r Renderer) program() (string, error) {
	if r.Options.Program != "" {
		return r.Options.Program, nil
	}
	if runtime.GOOS == "linux" {
		// The path works also after the file was replaced.
		return "/proc/self/exe", nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program, to render the chart with it: %w", err)
	}
	return program, nil
}

// isOutOfMemory recognises the error of the Go runtime.
func isOutOfMemory(complaint string) bool {
	return strings.Contains(complaint, "out of memory") || strings.Contains(complaint, "cannot allocate memory")
}

// bounded keeps the written data up to a limit, and reports when it is exceeded. The buffer is not
// embedded, because its ReadFrom would bypass the limit.
type bounded struct {
	buffer   bytes.Buffer
	limit    int64
	exceeded bool
	full     func()
}

func (b *bounded) Write(data []byte) (int, error) {
	if free := b.limit - int64(b.buffer.Len()); int64(len(data)) > free {
		b.exceeded = true
		if b.full != nil {
			b.full()
			return 0, io.ErrShortWrite
		}
		b.buffer.Write(data[:max(free, 0)])
		return len(data), nil
	}
	return b.buffer.Write(data)
}

// templatePlace matches Helm's notation for a line of a template.
var templatePlace = regexp.MustCompile(`([^\s():]+/(?:templates|charts)/[^\s():]+):(\d+)(?::\d+)?`)

// located adds the file and line to an error of Helm's engine. It uses the last place in the text;
// the earlier ones only include that template.
func located(text string) error {
	places := templatePlace.FindAllStringSubmatch(text, -1)
	message := strings.Join(strings.Fields(text), " ")
	if len(places) == 0 {
		return errors.New(message)
	}
	last := places[len(places)-1]
	_, file, _ := strings.Cut(last[1], "/")
	line, err := strconv.Atoi(last[2])
	if err != nil {
		return errors.New(message)
	}
	return &directory.Errors{List: []*directory.Error{{File: file, Line: line, Message: message}}}
}
