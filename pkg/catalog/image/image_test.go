package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

func files(t *testing.T, from fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// nothingLeft checks that only lock files are left on disk.
func nothingLeft(t *testing.T, root string) {
	t.Helper()
	left, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if !strings.HasPrefix(entry.Name(), lockPrefix) {
			t.Errorf("%s is left on disk", entry.Name())
		}
	}
}

func TestKinds(t *testing.T) {
	s := serve(t)
	store := opened(t, t.TempDir(), s.options(new(atomic.Int64)))
	content := layer(t,
		entry{name: "etc/shadow", link: "/run/shadow", kind: tar.TypeSymlink},
		entry{name: "dev/null", kind: tar.TypeChar},
		entry{name: "configs/lamp/catalog.json", content: "{}", mode: 0o4000},
		entry{name: "configs/axe.json", link: "/configs/lamp/catalog.json", kind: tar.TypeSymlink},
		entry{name: "manifests/csv.yaml", content: "kind: x"},
		entry{name: "metadata/annotations.yaml", content: "a: b"},
	)
	for name, c := range map[string]struct {
		reason string
		labels map[string]string
		kind   Kind
		want   map[string]string
	}{
		"catalog": {
			reason: "only the folder of the label is unpacked; devices and links elsewhere do no harm",
			labels: map[string]string{catalogLabel: "/configs"}, kind: Catalog,
			want: map[string]string{"lamp/catalog.json": "{}", "axe.json": "{}"},
		},
		"bundle": {
			reason: "the two folders of a bundle are unpacked",
			labels: map[string]string{manifestsLabel: "manifests/", metadataLabel: "metadata/"}, kind: Bundle,
			want: map[string]string{"manifests/csv.yaml": "kind: x", "metadata/annotations.yaml": "a: b"},
		},
		"bundle-format": {
			reason: "the format alone says that it is a bundle, with the usual folders",
			labels: map[string]string{formatLabel: registryV1}, kind: Bundle,
			want: map[string]string{"manifests/csv.yaml": "kind: x", "metadata/annotations.yaml": "a: b"},
		},
		"plain": {
			reason: "plain manifests are in one folder, the usual one or that of a label",
			labels: map[string]string{formatLabel: plainV0}, kind: Plain,
			want: map[string]string{"csv.yaml": "kind: x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pinned := s.push(name, made{labels: c.labels, layers: [][]byte{content}})
			got := fetched(t.Context(), t, store, s.host+"/ns/thing:"+name)
			if got.Kind != c.kind || got.Reference != s.host+"/ns/thing@"+pinned.String() {
				t.Errorf("%s: found %s %s", c.reason, got.Kind, got.Reference)
			}
			if diff := cmp.Diff(c.want, files(t, got.FS)); diff != "" {
				t.Errorf("%s:\n%s", c.reason, diff)
			}
			err := filepath.WalkDir(store.root, func(name string, entry fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				if info, err := entry.Info(); err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeDevice) != 0 {
					t.Errorf("%s has mode %s (%v)", name, info.Mode(), err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestChart: the archive of a chart is stored unchanged, and nothing else of its image is
// requested.
func TestChart(t *testing.T) {
	s := serve(t)
	store := opened(t, t.TempDir(), s.options(new(atomic.Int64)))
	archive := layer(t, entry{name: "foghorn/Chart.yaml", content: "name: foghorn"})
	provenance := s.blob([]byte("signed"))
	provenance.MediaType = chartProvenanceType
	s.push("v1", made{layers: [][]byte{archive}, manifest: func(m *specs.Manifest) {
		m.Config.MediaType, m.Layers[0].MediaType = chartConfigType, chartLayerType
		m.Layers = append(m.Layers, provenance)
	}})
	got := fetched(t.Context(), t, store, s.host+"/ns/thing:v1")
	want := map[string]string{ChartFile: string(gzipped(t, archive))}
	if diff := cmp.Diff(want, files(t, got.FS)); got.Kind != Chart || diff != "" {
		t.Errorf("found %s\n%s", got.Kind, diff)
	}
	if asked := s.requests.Load(); asked != 1 {
		t.Errorf("%d blobs were downloaded; the archive is 1", asked)
	}
}

// TestLayers: later layers replace and remove content of earlier layers.
func TestLayers(t *testing.T) {
	s := serve(t)
	store := opened(t, t.TempDir(), s.options(new(atomic.Int64)))
	s.push("v1", made{layers: [][]byte{
		layer(t, entry{name: "a/old", content: "1"}, entry{name: "b/old", content: "1"}, entry{name: "c", content: "1"}, entry{name: "d", content: "1"}, entry{name: "e/f", content: "1"}),
		layer(t, entry{name: "a/.wh.old"}, entry{name: "b/new", content: "2"}, entry{name: "b/.wh..wh..opq"}, entry{name: "c", content: "2"},
			entry{name: "link", link: "d", kind: tar.TypeLink}, entry{name: ".wh.e"}),
	}})
	want := map[string]string{"b/new": "2", "c": "2", "d": "1", "link": "1"}
	if diff := cmp.Diff(want, files(t, fetched(t.Context(), t, store, s.host+"/ns/thing:v1").FS)); diff != "" {
		t.Error(diff)
	}
}

func TestHostile(t *testing.T) {
	s := serve(t)
	options := s.options(new(atomic.Int64))
	options.Limits = Limits{Layers: 3, Config: 4096, Download: 1 << 20, Unpacked: 4 << 20, Entries: 100, Kept: 50, KeptBytes: 1 << 20, File: 1 << 19, Path: 64, Depth: 8}
	store := opened(t, t.TempDir(), options)
	many := make([]entry, 101)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("f%d", i)}
	}
	zeros := strings.Repeat("\x00", 1<<19)
	good := layer(t, entry{name: "a", content: "1"})
	one := func(e ...entry) made { return made{layers: [][]byte{layer(t, e...)}} }
	changed := func(f func(*specs.Manifest)) made { return made{layers: [][]byte{good}, manifest: f} }
	for name, c := range map[string]struct {
		image made
		want  []string
	}{
		"traversal":             {one(entry{name: "a/../../b"}), []string{`layer sha256:`, `"a/../../b"`, `".."`}},
		"link out":              {one(entry{name: "l", link: "../../etc/passwd", kind: tar.TypeSymlink}), []string{`"l"`, `links to "../../etc/passwd"`}},
		"link out of the kept":  {made{labels: map[string]string{catalogLabel: "configs"}, layers: [][]byte{layer(t, entry{name: "configs/l", link: "/etc/passwd", kind: tar.TypeSymlink})}}, []string{`"configs/l"`, "must stay in"}},
		"kept folder is a link": {made{labels: map[string]string{catalogLabel: "a/configs"}, layers: [][]byte{layer(t, entry{name: "a", link: "/etc", kind: tar.TypeSymlink})}}, []string{`"a"`, "a folder is expected"}},
		"hard link out":         {one(entry{name: "l", link: "../../etc/passwd", kind: tar.TypeLink}), []string{`"l"`, "hard link"}},
		"hard link to nothing":  {one(entry{name: "l", link: "nothing", kind: tar.TypeLink}), []string{`"l"`, "no file of the image"}},
		"through a loop":        {one(entry{name: "l", link: "m", kind: tar.TypeSymlink}, entry{name: "m", link: "l", kind: tar.TypeSymlink}, entry{name: "l/f", content: "1"}), []string{`"l"`}},
		"device":                {one(entry{name: "sda", kind: tar.TypeBlock}), []string{`"sda"`, "device"}},
		"pipe":                  {one(entry{name: "p", kind: tar.TypeFifo}), []string{`"p"`, "named pipe"}},
		"entries":               {made{labels: map[string]string{catalogLabel: "configs"}, layers: [][]byte{layer(t, many...)}}, []string{"more than 100 entries"}},
		"kept":                  {one(many[:60]...), []string{"more than 50 files"}},
		"file":                  {one(entry{name: "big", content: zeros + "1"}), []string{`"big"`, "at most 524288"}},
		"files":                 {one(entry{name: "1", content: zeros}, entry{name: "2", content: zeros}, entry{name: "3", content: "1"}), []string{`"3"`, "at most 1048576"}},
		"bomb":                  {made{labels: map[string]string{catalogLabel: "configs"}, layers: [][]byte{layer(t, entry{name: "x", content: strings.Repeat(zeros, 9)})}}, []string{"decompressed", "more than 4194304"}},
		"depth":                 {one(entry{name: strings.Repeat("d/", 9) + "f"}), []string{"10 elements; at most 8"}},
		"path":                  {one(entry{name: strings.Repeat("d", 65)}), []string{"65 bytes; at most 64"}},
		"whiteout of all":       {one(entry{name: "a/.wh..."}), []string{"whiteout"}},
		"no tar":                {made{layers: [][]byte{[]byte(strings.Repeat("x", 2000))}}, []string{"tar archive"}},
		"layers":                {made{layers: [][]byte{good, good, good, good}}, []string{"4 layers; at most 3"}},
		"gigabyte layer":        {changed(func(m *specs.Manifest) { m.Layers[0].Size = 1 << 30 }), []string{"layer sha256:", "at most 1048576"}},
		"negative size":         {changed(func(m *specs.Manifest) { m.Layers[0].Size = -1 }), []string{"-1 bytes"}},
		"size too small":        {changed(func(m *specs.Manifest) { m.Layers[0].Size-- }), []string{"layer sha256:", "the manifest says"}},
		"size too large":        {changed(func(m *specs.Manifest) { m.Layers[0].Size++ }), []string{"layer sha256:", "the manifest says"}},
		"digest that is none":   {changed(func(m *specs.Manifest) { m.Layers[0].Digest = "sha256:../../x" }), []string{"names an invalid digest"}},
		"layer type":            {changed(func(m *specs.Manifest) { m.Layers[0].MediaType = "application/zip" }), []string{`"application/zip"`}},
		"foreign layer":         {changed(func(m *specs.Manifest) { m.Layers[0].MediaType = specs.MediaTypeImageLayerNonDistributableGzip }), []string{"nondistributable"}}, //nolint:staticcheck // deprecated, and refused for it
		"configuration type":    {changed(func(m *specs.Manifest) { m.Config.MediaType = "application/vnd.wasm.config.v1+json" }), []string{"wasm.config"}},
		"chart without one":     {changed(func(m *specs.Manifest) { m.Config.MediaType = chartConfigType }), []string{"layer sha256:", specs.MediaTypeImageLayerGzip, chartLayerType}},
		"two charts": {made{layers: [][]byte{good, layer(t, entry{name: "b"})}, manifest: func(m *specs.Manifest) {
			m.Config.MediaType, m.Layers[0].MediaType, m.Layers[1].MediaType = chartConfigType, chartLayerType, chartLayerType
		}}, []string{"does not have exactly one layer"}},
		"chart too large": {changed(func(m *specs.Manifest) {
			m.Config.MediaType, m.Layers[0].MediaType, m.Layers[0].Size = chartConfigType, chartLayerType, 1<<19+1
		}), []string{"layer sha256:", "524289 bytes", "at most 524288"}},
		"chart that lies": {changed(func(m *specs.Manifest) {
			m.Config.MediaType, m.Layers[0].MediaType = chartConfigType, chartLayerType
			m.Layers[0].Size++
		}), []string{"layer sha256:", "the manifest says"}},
		"format":             {made{labels: map[string]string{formatLabel: "helm"}, layers: [][]byte{good}}, []string{`"helm"`, formatLabel, "registry+v1 and plain+v0"}},
		"operating system":   {one(entry{name: "etc/mtab", link: "/proc/mounts/../../..", kind: tar.TypeSymlink}, entry{name: "dev/sda", kind: tar.TypeBlock}), []string{"has no label of a catalog or a bundle"}},
		"configuration size": {changed(func(m *specs.Manifest) { m.Config.Size = 5000 }), []string{"5000 bytes; at most 4096"}},
		"other layers": {made{layers: [][]byte{good}, config: func(c *specs.Image) { c.RootFS.DiffIDs = nil }},
			[]string{"its manifest has 1 layers, and its configuration 0"}},
		"other content": {made{layers: [][]byte{good}, config: func(c *specs.Image) { c.RootFS.DiffIDs[0] = digest.FromString("x") }},
			[]string{"another digest than the configuration says"}},
		"label out":        {made{labels: map[string]string{catalogLabel: "../.."}, layers: [][]byte{good}}, []string{`"../.."`, catalogLabel}},
		"label of nothing": {made{labels: map[string]string{catalogLabel: "/configs"}, layers: [][]byte{good}}, []string{`"configs"`, "no such folder"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.push("hostile", c.image)
			_, err := store.Fetch(t.Context(), Request{Reference: s.host + "/ns/thing:hostile"})
			var refused *Refused
			if !errors.As(err, &refused) {
				t.Fatalf("it is not refused: %v", err)
			}
			for _, want := range append(c.want, s.host+"/ns/thing:hostile") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			nothingLeft(t, store.root)
		})
	}
	// The registry sends other content than requested.
	pinned := s.push("other", changed(nil))
	s.answer(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", specs.MediaTypeImageManifest)
		_, _ = w.Write([]byte(`{"schemaVersion":2}`))
		return true
	})
	var refused *Refused
	if _, err := store.Fetch(t.Context(), Request{Reference: s.host + "/ns/thing@" + pinned.String()}); !errors.As(err, &refused) {
		t.Errorf("a manifest with another digest is not refused: %v", err)
	}
}

// TestOnce: a digest is downloaded once, for concurrent callers, by tag and by digest. After a
// restart the registry is not needed. Collect removes the image when no caller names the digest.
func TestOnce(t *testing.T) {
	s := serve(t)
	root, options := t.TempDir(), s.options(new(atomic.Int64))
	store := opened(t, root, options)
	pinned := s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: "1"})}})
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			ref := s.host + "/ns/thing:v1"
			if i%2 == 0 {
				ref = s.host + "/ns/thing@" + pinned.String()
			}
			got, err := store.Fetch(t.Context(), Request{Reference: ref})
			if err != nil {
				t.Error(err)
				return
			}
			if err := got.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if got := s.requests.Load(); got != 2 {
		t.Errorf("%d blobs were downloaded; its configuration and its layer are 2", got)
	}
	s.Close()
	store = opened(t, root, options)
	held, err := store.Fetch(t.Context(), Request{Reference: s.host + "/ns/thing@" + pinned.String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Collect(nil); err != nil {
		t.Fatal(err)
	}
	if got := files(t, held.FS); got["a"] != "1" {
		t.Errorf("an open image was collected: %v", got)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Collect(nil); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, root)
}

// TestOutage: a broken download of a layer is repeated, and a lasting outage is reported.
func TestOutage(t *testing.T) {
	s := serve(t)
	var waits, broken atomic.Int64
	store := opened(t, t.TempDir(), s.options(&waits))
	s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: "1"}), layer(t, entry{name: "b", content: strings.Repeat("2", 1<<16)})}})
	s.answer(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") || broken.Add(1) > 2 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	if got := files(t, fetched(t.Context(), t, store, s.host+"/ns/thing:v1").FS); len(got) != 2 || waits.Load() != 2 {
		t.Errorf("found %d files after %d pauses; 2 and 2 are expected", len(got), waits.Load())
	}
	s.push("v2", made{layers: [][]byte{layer(t, entry{name: "c", content: "3"})}})
	s.answer(func(w http.ResponseWriter, r *http.Request, inner http.Handler) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", "100000")
		inner.ServeHTTP(w, r)
		panic(http.ErrAbortHandler)
	})
	var refused *Refused
	if _, err := store.Fetch(t.Context(), Request{Reference: s.host + "/ns/thing:v2"}); err == nil || errors.As(err, &refused) && !strings.Contains(err.Error(), "the manifest says") {
		t.Errorf("found %v", err)
	}
}

func TestAccess(t *testing.T) {
	s := serve(t)
	options := s.options(new(atomic.Int64))
	s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: "1"})}})
	s.answer(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if user, password, _ := r.BasicAuth(); user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	written := func(content string) string {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	auth := written(fmt.Sprintf(`{"auths":{%q:{"auth":"bWU6c2VjcmV0"},"mirrored.example":{"auth":"bWU6c2VjcmV0"}}}`, s.host))
	for name, c := range map[string]struct {
		ref, auth string
		with      func(*Options)
		want      string
	}{
		"credentials":   {ref: s.host + "/ns/thing:v1", auth: auth},
		"none":          {ref: s.host + "/ns/thing:v1", want: "authentic"},
		"helper":        {ref: s.host + "/ns/thing:v1", auth: written(`{"credHelpers":{"x":"../../evil"}}`), want: "credHelpers"},
		"secret":        {ref: s.host + "/ns/thing:v1", auth: written(`secret`), want: "no JSON"},
		"unknown CA":    {ref: s.host + "/ns/thing:v1", auth: auth, with: func(o *Options) { o.Registries.Certs = "" }, want: "certificate"},
		"short name":    {ref: "thing:v1", want: "registry"},
		"nothing there": {ref: s.host + "/ns/thing:v9", auth: auth, want: "v9"},
		"mirror": {ref: "mirrored.example/thing:v1", auth: auth, with: func(o *Options) {
			o.Registries.Conf = written(fmt.Sprintf("[[registry]]\nprefix=%q\nlocation=%q\n[[registry.mirror]]\nlocation=%q\n", "mirrored.example/thing", "127.0.0.1:1/thing", s.host+"/ns/thing"))
		}},
		"blocked": {ref: s.host + "/ns/thing:v1", auth: auth, with: func(o *Options) {
			o.Registries.Conf = written(fmt.Sprintf("[[registry]]\nlocation=%q\nblocked=true\n", s.host))
		}, want: "blocked"},
		"rejected":          {ref: s.host + "/ns/thing:v1", auth: auth, with: func(o *Options) { o.Registries.Policy = written(`{"default":[{"type":"reject"}]}`) }, want: "polic"},
		"policy is no file": {ref: s.host + "/ns/thing:v1", auth: auth, with: func(o *Options) { o.Registries.Policy = "/nothing" }, want: "/nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := options
			if c.with != nil {
				c.with(&changed)
			}
			got, err := opened(t, t.TempDir(), changed).Fetch(t.Context(), Request{Reference: c.ref, Auth: c.auth})
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want == "":
				_ = got.Close()
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("found %v; %q is expected", err, c.want)
			case strings.Contains(err.Error(), "secret"):
				t.Errorf("the error has a secret in it: %v", err)
			}
		})
	}
}

// TestCheck: an image that a policy allowed for one tag is not allowed for another tag or under
// another policy.
func TestCheck(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.json")
	asked := func(s *Store, ref string) string {
		named, _, err := parse(ref)
		if err != nil {
			t.Fatal(err)
		}
		check, _, err := s.check(named, "")
		if err != nil {
			t.Fatal(err)
		}
		return check
	}
	s := &Store{}
	if asked(s, "r.example/a:v1") != asked(s, "r.example/a:v2") {
		t.Error("without a policy, a repository is asked for each tag")
	}
	s.options.Registries.Policy = policy
	seen := map[string]bool{}
	for _, content := range []string{"{}", "{ }"} {
		if err := os.WriteFile(policy, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		seen[asked(s, "r.example/a:v1")], seen[asked(s, "r.example/a:v2")] = true, true
	}
	if len(seen) != 4 {
		t.Errorf("two tags under two policies are %d checks", len(seen))
	}
}

func fileOf(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
