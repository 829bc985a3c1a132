package image

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
)

// TestFair: a user whose registry never answers blocks no other user. The blocking user requests
// the same image that another user pulls from elsewhere, images with the same lock file, and more
// images than there are places for pulls.
func TestFair(t *testing.T) {
	content := func(i int) made {
		return made{layers: [][]byte{layer(t, entry{name: "a", content: fmt.Sprint(i)})}}
	}
	for name, silent := range map[string]func(path string) bool{
		"AtOnce":     func(string) bool { return true },
		"AtTheLayer": func(path string) bool { return strings.Contains(path, "/blobs/") },
	} {
		t.Run(name, func(t *testing.T) {
			quick, slow := serve(t), serve(t)
			pinned := quick.push("v0", content(0))
			var asked []digest.Digest
			for i := range 6 {
				asked = append(asked, slow.push(fmt.Sprint("v", i), content(i)))
			}
			for i := range 6 {
				asked = append(asked, digest.Digest(fmt.Sprintf("%s%062x", string(pinned)[:len("sha256:")+2], i)))
			}
			began := make(chan struct{}, len(asked))
			slow.answer(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !silent(r.URL.Path) {
					return false
				}
				select {
				case began <- struct{}{}:
				default:
				}
				<-r.Context().Done()
				return true
			})
			options := quick.options(new(atomic.Int64))
			trusted := filepath.Join(slow.options(new(atomic.Int64)).Registries.Certs, slow.host)
			if err := os.Symlink(trusted, filepath.Join(options.Registries.Certs, slow.host)); err != nil {
				t.Fatal(err)
			}
			store := opened(t, t.TempDir(), options)
			ctx, end := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			defer waiting.Wait()
			defer end()
			for _, one := range asked {
				waiting.Go(func() {
					if image, err := store.Fetch(ctx, Request{Reference: slow.host + "/ns/thing@" + one.String(), User: "erin"}); err == nil {
						_ = image.Close()
						t.Errorf("%s came from a registry that does not answer", one)
					}
				})
			}
			<-began
			found, err := store.Fetch(t.Context(), Request{Reference: quick.host + "/ns/thing@" + pinned.String(), User: "ian"})
			if err != nil {
				t.Fatal(err)
			}
			if got := files(t, found.FS); got["a"] != "0" {
				t.Errorf("found %v", got)
			}
			if err := found.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
