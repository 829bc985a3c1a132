package reads

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
)

const profileTime = 5 * time.Second

// profileHeap writes Penstock's heap profile into the directory in PROFILE, for `go tool pprof`.
// Without PROFILE it does nothing, because a profile forces a garbage collection.
func (b *bench) profileHeap(state string) {
	b.t.Helper()
	if dir := os.Getenv("PROFILE"); dir != "" {
		b.profile(b.t.Context(), dir, "heap "+state, "/debug/pprof/heap?gc=1")
	}
}

// profileCase runs each subject of Penstock in the case, and profiles Penstock meanwhile.
func (b *bench) profileCase(title string, c measure.Case) {
	b.t.Helper()
	dir := os.Getenv("PROFILE")
	if dir == "" {
		return
	}
	for _, subject := range c.Subjects {
		if !strings.HasPrefix(subject.Name, aggregated) {
			continue
		}
		ctx, cancel := context.WithTimeout(b.t.Context(), profileTime)
		go func() {
			for ctx.Err() == nil {
				// The measurement has reported failures already.
				_, _ = subject.Do(ctx)
			}
		}()
		name := strings.Join([]string{"cpu", title, c.Name, subject.Name}, " ")
		b.profile(b.t.Context(), dir, name, fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", profileTime.Seconds()))
		cancel()
	}
}

func (b *bench) profile(ctx context.Context, dir, name, path string) {
	b.t.Helper()
	response, err := b.direct.do(ctx, http.MethodGet, path, "*/*", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil {
		file := strings.NewReplacer(" ", "-", ",", "", "/", "").Replace(name) + ".pprof"
		err = os.WriteFile(filepath.Join(dir, file), content, 0o600)
	}
	if err != nil {
		b.t.Fatalf("writing the profile of %s: %v", name, err)
	}
}
