package olm_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// hostile returns the most expensive accepted revision. It has the maximum of objects and phases,
// deep nesting, long lines and unusual characters. Nearly all of its text differs between
// revisions.
func hostile(name, mark string) object {
	phases := []any{}
	for p := range v1alpha1.MaxPhases {
		entries := []any{}
		for len(entries) < v1alpha1.MaxObjects*(p+1)/v1alpha1.MaxPhases-v1alpha1.MaxObjects*p/v1alpha1.MaxPhases {
			entries = append(entries, object{"object": hostileObject(p, len(entries), mark)})
		}
		phases = append(phases, object{"name": fmt.Sprintf("phase-%d", p), "objects": entries})
	}
	return with(file(name, nil), phases, "spec", "phases")
}

func hostileObject(phase, index int, mark string) object {
	name := fmt.Sprintf("%d-%d", phase, index)
	switch {
	case phase == 0 && index == 0:
		return custom(name, nest(hostileDepth, mark))
	case phase == 1 && index == 0:
		// The text is one line without a place to break it.
		return configMap(name, strings.Repeat("x", 1<<20)+mark)
	case phase == 2 && index == 0:
		return configMap(name, strings.Repeat(mark+"\n\x1b[2J\u202e", 50_000))
	case phase == 3 && index == 0:
		wide := object{}
		for i := range 20_000 {
			wide[fmt.Sprintf("key-%d-%s", i, mark)] = mark
		}
		return custom(name, wide)
	case phase == 4 && index == 0:
		list := []any{}
		for i := range 20_000 {
			list = append(list, object{"name": fmt.Sprint((i*7919 + len(mark)) % 20_000), "value": mark})
		}
		return custom(name, list)
	case index == 1:
		return secret(name, mark+strings.Repeat("s", 500))
	}
	return object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": "default", "labels": object{"a": mark}},
		"data": object{"a": strings.Repeat(mark+"\n", 100), "b-" + mark: "<&>\t\"" + mark, "c": strings.Repeat("\u00e9", 200)},
	}
}

// hostileDepth is the deepest nesting of a manifest within a revision: the encoders' limit minus
// the levels around the manifest.
const hostileDepth = 9_980

func nest(depth int, leaf any) any {
	for range depth / 2 {
		leaf = object{"a": []any{leaf}}
	}
	return leaf
}

func custom(name string, content any) object {
	return object{"apiVersion": "example.com/v1", "kind": "Hostile", "metadata": object{"name": name, "namespace": "default"}, "spec": object{"content": content}}
}

// TestHostileRevision: every read of a hostile revision is answered within limits of size and
// memory. The answers show what they omit.
func TestHostileRevision(t *testing.T) {
	s := newServer(t, settings{maxBodyBytes: 64 << 20})
	s.create(hostile("h-1", "one")).want(t, http.StatusCreated)
	s.create(hostile("h-2", "two")).want(t, http.StatusCreated)
	s.create(file("h-3", inline(configMap("a", "1")))).want(t, http.StatusCreated)

	const mib = 1 << 20
	for path, tc := range map[string]struct {
		// most is the largest allowed size of an answer, in bytes.
		most      int
		truncated bool
		// once means that the read uses only JSON, because another path reads the same as a Table.
		once bool
	}{
		revisions:                             {4 * mib, false, false},
		revisions + "/h-2":                    {2 * mib, false, false},
		revisions + "/h-2/diff":               {24 * mib, true, false},
		revisions + "/h-2/diff?unified=false": {16 * mib, true, true},
		revisions + "/h-2/diff?objectKind=Hostile.example.com": {2 * mib, true, false},
		diffs + "/h-2..h-1":                                {24 * mib, true, true},
		diffs + "/h-1..h-3":                                {24 * mib, true, true},
		diffs + "/..h-1":                                   {24 * mib, true, false},
		revisions + "/h-1/history":                         {mib, false, false},
		histories + "/h":                                   {mib, false, false},
		revisions + "/h-2/manifests":                       {v1alpha1.MaxManifestBytes + mib, false, false},
		manifests + "/h-2:Hostile.example.com:default:0-0": {mib, false, false},
		manifests + "/h-2:ConfigMap:default:1-0":           {4 * mib, false, false},
		revisions + "/h-2/manifests?objectKind=Secret&objectName=63-1": {mib, false, false},
	} {
		for form, accept := range map[string]string{"JSON": "application/json", "Table": asTable} {
			if tc.once && form == "Table" {
				continue
			}
			t.Run(form+path, func(t *testing.T) {
				got := s.subtest(t).do(call{method: http.MethodGet, path: path, accept: accept}).want(t, http.StatusOK)
				if size := len(got.raw); size > tc.most {
					t.Errorf("an answer of %d bytes, want at most %d", size, tc.most)
				}
				told := at(got.body, "truncated") != nil
				if form == "Table" {
					told = strings.Contains(strings.Join(got.warnings, " "), "are left out, because it is too large")
				}
				if told != tc.truncated {
					t.Errorf("it says that something is left out: %t, want %t", told, tc.truncated)
				}
				if header := len(strings.Join(got.warnings, "")); header > 8<<10 {
					t.Errorf("%d bytes of warnings", header)
				}
			})
		}
	}
	t.Run("AtOnce", func(t *testing.T) { checkReadsAtOnce(t, s) })
}

// checkReadsAtOnce: many simultaneous reads take no more memory than a few. Further reads wait, or
// get a Retry-After.
func checkReadsAtOnce(t *testing.T, s *server) {
	peak := watchHeap(t)
	var readers sync.WaitGroup
	for range 6 {
		readers.Go(func() {
			for _, path := range []string{revisions + "/h-2/diff", revisions + "/h-2/history", revisions + "/h-1"} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				if code := response.StatusCode; code != http.StatusOK && code != http.StatusTooManyRequests {
					t.Errorf("%s: status %d", path, code)
				}
			}
		})
	}
	readers.Wait()
	const most = 512 << 20
	if found := peak(); found > most {
		t.Errorf("the heap grew to %d MiB, want at most %d", found>>20, most>>20)
	} else {
		t.Logf("the heap grew to %d MiB", found>>20)
	}
}

// TestMain reduces garbage collection, which takes a fifth of the processor time, at the cost of
// memory. watchHeap collects as the program does.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(m.Run())
}

// watchHeap samples the live heap. The returned function returns the maximum.
func watchHeap(t *testing.T) func() uint64 {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	stop, done := make(chan struct{}), make(chan struct{})
	var most uint64
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return most
	}
}
