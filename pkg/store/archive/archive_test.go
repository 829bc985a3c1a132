package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func digester() manifest.Digester {
	return manifest.Digester{SecretKey: []byte("0123456789abcdef0123456789abcdef")}
}

func object(t testing.TB, kind, name, value string) manifest.Object {
	t.Helper()
	made, err := digester().FromJSON(fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":"default"},"data":{"k":%q}}`, kind, name, value))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// sample returns the items of a store with two chains.
func sample(t testing.TB) []Item {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shared := object(t, "ConfigMap", "a", "<1>")
	return []Item{
		{Chain: &Chain{
			Name: "argocd", Revisions: []int64{4, 2}, Highest: 4, Hold: &Hold{Revision: 4, OwnerGeneration: 7},
			History: []Row{
				{Revision: 1, CreatedAt: created, DeletedAt: created.Add(time.Hour), Result: "Incomplete"},
				{Revision: 2, CreatedAt: created, CompletedAt: created.Add(time.Minute), Result: "Succeeded", RequestedBy: "alice"},
				{Revision: 4, CreatedAt: created, RollbackOf: 2, Cause: "3 & 4 <slow>", Counts: &Counts{Objects: 2, Added: 1}},
			},
		}},
		{Revision: &Revision{
			Number: 4, Labels: map[string]string{"b": "2", "a": "1"}, Annotations: map[string]string{"x": "<y>"}, CreatedAt: created, RequestedBy: "bob",
			Owners: []Owner{{APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: "argocd", UID: "u", Controller: true}},
			Spec:   json.RawMessage(`{"revision":4}`),
		}, Objects: []manifest.Object{shared, object(t, "Secret", "s", "x")}},
		{Revision: &Revision{Number: 2, CreatedAt: created, Succeeded: true, CompletedAt: created.Add(time.Minute), Spec: json.RawMessage(`{"revision":2}`)},
			Objects: []manifest.Object{shared}},
		{Chain: &Chain{Name: "flux", Highest: 9, History: []Row{{Revision: 9, DeletedAt: created}}}},
	}
}

func written(t testing.TB, items ...Item) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		if item.Chain != nil {
			err = w.Chain(*item.Chain)
		} else {
			err = w.Revision(*item.Revision, item.Objects)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(data []byte, limits Limits) (items []Item, digest string, err error) {
	r, err := NewReader(bytes.NewReader(data), limits)
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	for {
		item, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return items, r.Digest(), nil
		}
		if err != nil {
			return items, r.Digest(), err
		}
		items = append(items, item)
	}
}

func TestRoundTrip(t *testing.T) {
	want := sample(t)
	data := written(t, want...)
	got, digest, err := read(data, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if err := manifest.Digest(digest).Validate(); err != nil {
		t.Error(err)
	}
	if again := written(t, got...); !bytes.Equal(data, again) {
		t.Error("the same content makes another archive")
	}
	_, other, err := read(written(t, want[3]), DefaultLimits())
	if err != nil || other == digest {
		t.Errorf("another archive has digest %s, error %v", other, err)
	}
}

// TestForm: the form of an archive is fixed, because all readers must find the same content. A
// changed form needs a new format.
func TestForm(t *testing.T) {
	var got []string
	eachEntry(t, written(t, sample(t)...), func(header *tar.Header, data []byte) {
		if header.Mode != 0o600 || header.Uid != 0 || !header.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s says who wrote it, or lets others read it: %+v", header.Name, header)
		}
		if header.Name != sumsName {
			data, _, _ = bytes.Cut(data, []byte("\n"))
			got = append(got, header.Name+" "+string(data))
		}
	})
	plain, secret := object(t, "ConfigMap", "a", "<1>"), object(t, "Secret", "s", "x")
	want := []string{
		`penstock.json {"format":1}`,
		`chains/argocd/chain.json {"name":"argocd","revisions":[4,2],"highest":4,"hold":{"revision":4,"ownerGeneration":7},"history":[` +
			`{"revision":1,"result":"Incomplete","createdAt":"2026-01-02T03:04:05Z","deletedAt":"2026-01-02T04:04:05Z"},` +
			`{"revision":2,"result":"Succeeded","createdAt":"2026-01-02T03:04:05Z","completedAt":"2026-01-02T03:05:05Z","requestedBy":"alice"},` +
			`{"revision":4,"createdAt":"2026-01-02T03:04:05Z","rollbackOf":2,"cause":"3 & 4 <slow>","counts":{"objects":2,"added":1,"changed":0,"removed":0}}]}`,
		`chains/argocd/4/revision.json {"number":4,"labels":{"a":"1","b":"2"},"annotations":{"x":"<y>"},` +
			`"owners":[{"apiVersion":"olm.operatorframework.io/v1","kind":"ClusterExtension","name":"argocd","uid":"u","controller":true}],` +
			`"createdAt":"2026-01-02T03:04:05Z","requestedBy":"bob","spec":{"revision":4}}`,
		`chains/argocd/4/manifests.jsonl {"digest":"` + string(plain.Digest) + `","manifest":{"apiVersion":"v1","data":{"k":"<1>"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}}`,
		`chains/argocd/2/revision.json {"number":2,"createdAt":"2026-01-02T03:04:05Z","succeeded":true,"completedAt":"2026-01-02T03:05:05Z","spec":{"revision":2}}`,
		`chains/argocd/2/manifests.jsonl {"digest":"` + string(plain.Digest) + `","manifest":{"apiVersion":"v1","data":{"k":"<1>"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}}`,
		`chains/flux/chain.json {"name":"flux","highest":9,"history":[{"revision":9,"deletedAt":"2026-01-02T03:04:05Z"}]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if !secret.Digest.Keyed() {
		t.Error("the sample has no Secret")
	}
}

// file is an entry of a hand-made archive.
type file struct {
	header tar.Header
	data   []byte
}

func eachEntry(t testing.TB, data []byte, do func(*tar.Header, []byte)) {
	t.Helper()
	decompressor, err := zstd.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer decompressor.Close()
	in := tar.NewReader(decompressor)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		do(header, content)
	}
}

// forged returns the sample with changed entries. A careful forger computes the checksums again.
func forged(t testing.TB, careful bool, change func([]file) []file) []byte {
	t.Helper()
	var files []file
	eachEntry(t, written(t, sample(t)...), func(header *tar.Header, data []byte) {
		files = append(files, file{tar.Header{Typeflag: header.Typeflag, Name: header.Name, Mode: header.Mode, Linkname: header.Linkname}, data})
	})
	files = change(files)
	var plain, out bytes.Buffer
	w := Writer{}
	pack := tar.NewWriter(&plain)
	w.tar, w.limits = tar.NewWriter(io.Discard), DefaultLimits()
	for _, f := range files {
		if careful && f.header.Name == sumsName {
			f.data = w.sums.Bytes()
		} else if err := w.entry(f.header.Name, f.data, 1<<40); err != nil {
			t.Fatal(err)
		}
		if f.header.Typeflag == tar.TypeReg {
			f.header.Size = int64(len(f.data))
		}
		if err := pack.WriteHeader(&f.header); err != nil {
			t.Fatal(err)
		}
		if f.header.Size > 0 {
			if _, err := pack.Write(f.data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	compressor, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<17))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compressor.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := compressor.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func find(t testing.TB, files []file, name string) *file {
	t.Helper()
	for i := range files {
		if files[i].header.Name == name {
			return &files[i]
		}
	}
	t.Fatalf("there is no entry %s", name)
	return nil
}

func replacing(t testing.TB, name, old, new string) func([]file) []file {
	return func(files []file) []file {
		f := find(t, files, name)
		if !bytes.Contains(f.data, []byte(old)) {
			t.Fatalf("%s has no %s", name, old)
		}
		f.data = bytes.Replace(f.data, []byte(old), []byte(new), 1)
		return files
	}
}

func TestHostile(t *testing.T) {
	named := func(name, to string) func([]file) []file {
		return func(files []file) []file {
			find(t, files, name).header.Name = to
			return files
		}
	}
	cases := map[string]struct {
		reason  string
		change  func([]file) []file
		careful bool
		limits  func(*Limits)
		want    string
	}{
		"Damaged":      {reason: "a byte is another one", change: replacing(t, "chains/argocd/2/revision.json", "03:04:05", "03:04:06"), want: "chains/argocd/2/revision.json does not have the checksum"},
		"Newer":        {reason: "nothing else of it is read", change: replacing(t, headerName, `1}`, `2,"more":true}`), careful: true, want: "format 2, written by a newer Penstock"},
		"NoFormat":     {reason: "there is no format 0", change: replacing(t, headerName, `1`, `0`), careful: true, want: "not a Penstock archive"},
		"OtherTar":     {reason: "a tar file of somebody", change: func(f []file) []file { return f[1:] }, careful: true, want: "not a Penstock archive"},
		"UnknownField": {reason: "it would be lost", change: replacing(t, "chains/flux/chain.json", `"highest"`, `"lowest":1,"highest"`), careful: true, want: `unknown field "lowest"`},
		"Traversal":    {reason: "a path that leads out", change: named("chains/flux/chain.json", "chains/../chain.json"), careful: true, want: "is about extension"},
		"Absolute":     {reason: "another path", change: named("chains/flux/chain.json", "/etc/passwd"), careful: true, want: "not allowed at this place of an archive"},
		"OtherName":    {reason: "the entry says another chain", change: named("chains/flux/chain.json", "chains/fluy/chain.json"), careful: true, want: `is about extension "flux"`},
		"NameInside": {reason: "both say what is no name", change: func(f []file) []file {
			return replacing(t, "chains/../chain.json", `"flux"`, `".."`)(named("chains/flux/chain.json", "chains/../chain.json")(f))
		}, careful: true, want: "the name of extension"},
		"Symlink": {reason: "only plain files", change: func(f []file) []file {
			l := find(t, f, "chains/argocd/4/manifests.jsonl")
			l.header.Typeflag, l.header.Linkname, l.data = tar.TypeSymlink, "/etc/passwd", nil
			return f
		}, careful: true, want: "not a plain file"},
		"Sparse": {reason: "a file that says to have more than it has", change: func(f []file) []file {
			find(t, f, "chains/flux/chain.json").header.PAXRecords = map[string]string{"comment": "x"}
			return f
		}, careful: true, want: "not a plain file"},
		"Swapped":        {reason: "the order is part of the form", change: func(f []file) []file { f[2], f[4] = f[4], f[2]; return f }, careful: true, want: "is in the place of chains/argocd/4/revision.json"},
		"Missing":        {reason: "an announced revision", change: func(f []file) []file { return append(f[:4:4], f[6:]...) }, careful: true, want: "is in the place of chains/argocd/2/revision.json"},
		"Unannounced":    {reason: "a revision of the chain before", change: replacing(t, "chains/argocd/chain.json", `[4,2]`, `[4]`), careful: true, want: "must either be deleted or in the archive"},
		"Twice":          {reason: "a chain twice", change: func(f []file) []file { return append(f[:7:7], f[6:]...) }, careful: true, want: "each once"},
		"Rising":         {reason: "numbers fall", change: replacing(t, "chains/argocd/chain.json", `[4,2]`, `[2,4]`), careful: true, want: "and fall"},
		"AboveHighest":   {reason: "a number that was never used", change: replacing(t, "chains/argocd/chain.json", `"highest":4`, `"highest":3`), careful: true, want: "the highest one (3)"},
		"OtherNumber":    {reason: "the revision says another number", change: replacing(t, "chains/argocd/2/revision.json", `"number":2`, `"number":3`), careful: true, want: "is about number 3"},
		"EmptyRecord":    {reason: "the end of a record is not that of the archive", change: func(f []file) []file { find(t, f, "chains/argocd/2/revision.json").data = nil; return f }, careful: true, want: "it is empty"},
		"HalfRecord":     {reason: "neither is its middle", change: func(f []file) []file { r := find(t, f, "chains/argocd/2/revision.json"); r.data = r.data[:9]; return f }, careful: true, want: "ends in the middle"},
		"NoSpec":         {reason: "nothing to import", change: replacing(t, "chains/argocd/2/revision.json", `{"revision":2}`, `null`), careful: true, want: "has no spec"},
		"OtherBody":      {reason: "a manifest has its digest", change: replacing(t, "chains/argocd/2/manifests.jsonl", `<1>`, `<2>`), careful: true, want: "has digest sha256:"},
		"NotCanonical":   {reason: "one content has one form", change: replacing(t, "chains/argocd/2/manifests.jsonl", `"kind"`, ` "kind"`), careful: true, want: "canonical form"},
		"KeyedConfigMap": {reason: "only Secrets have keyed digests", change: replacing(t, "chains/argocd/2/manifests.jsonl", `"sha256:`, `"hmac-sha256:`), careful: true, want: "keyed"},
		"SameTwice": {reason: "each content once", change: func(f []file) []file {
			m := find(t, f, "chains/argocd/2/manifests.jsonl")
			m.data = bytes.Repeat(m.data, 2)
			return f
		}, careful: true, want: "occurs twice"},
		"NoNewline": {reason: "a line has an end", change: func(f []file) []file {
			m := find(t, f, "chains/argocd/2/manifests.jsonl")
			m.data = m.data[:len(m.data)-1]
			return f
		}, careful: true, want: "does not end"},
		"Behind":          {reason: "nothing follows the checksums", change: func(f []file) []file { return append(f, f[0]) }, careful: true, want: "continues after its end"},
		"NoSums":          {reason: "an archive that was cut at an entry", change: func(f []file) []file { return f[:len(f)-1] }, want: "cut off"},
		"MoreSums":        {reason: "checksums of what is not there", change: func(f []file) []file { s := find(t, f, sumsName); s.data = append(s.data, s.data...); return f }, want: "lists more than the archive has"},
		"TooManyChains":   {reason: "chains", limits: func(l *Limits) { l.Chains = 1 }, want: "more than the 1 extensions"},
		"TooManyRows":     {reason: "rows", limits: func(l *Limits) { l.Rows = 2 }, want: "has 3 rows, 2 are allowed"},
		"TooManyNumbers":  {reason: "revisions", limits: func(l *Limits) { l.Revisions = 1 }, want: "has 2 revisions, 1 are allowed"},
		"LargeRecord":     {reason: "a record", limits: func(l *Limits) { l.RecordBytes = 100 }, want: "100 are allowed"},
		"LargeManifests":  {reason: "manifests", limits: func(l *Limits) { l.ManifestBytes = 100 }, want: "100 are allowed"},
		"LargeAltogether": {reason: "all of it", limits: func(l *Limits) { l.Bytes = 5000 }, want: "more than the 5000 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change == nil {
				tc.change, tc.careful = func(f []file) []file { return f }, true
			}
			limits := DefaultLimits()
			if tc.limits != nil {
				tc.limits(&limits)
			}
			_, digest, err := read(forged(t, tc.careful, tc.change), limits)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got error %v, want one with %q", tc.reason, err, tc.want)
			}
			if digest != "" {
				t.Errorf("%s: it has a digest", tc.reason)
			}
		})
	}
	t.Run("Untouched", func(t *testing.T) {
		if _, _, err := read(forged(t, true, func(f []file) []file { return f }), DefaultLimits()); err != nil {
			t.Errorf("the forger's tools are wrong: %v", err)
		}
	})
}

// TestCutOff: a truncated archive, and a file that is no archive, is an error.
func TestCutOff(t *testing.T) {
	data := written(t, sample(t)...)
	for n := range data {
		if _, _, err := read(data[:n], DefaultLimits()); err == nil {
			t.Fatalf("%d of %d bytes are an archive", n, len(data))
		}
	}
	if _, _, err := read(data[:len(data)/2], DefaultLimits()); !strings.Contains(err.Error(), "cut off") {
		t.Errorf("half an archive: %v, want that it is cut off", err)
	}
	for _, other := range []string{"", "hello", strings.Repeat("\x00", 2048), string(data) + "x", string(data) + string(data)} {
		if _, _, err := read([]byte(other), DefaultLimits()); err == nil {
			t.Errorf("%.20q… is an archive", other)
		}
	}
}

// TestEndsWithContext: reading ends with its context: before the next entry, and before the next
// manifest of an entry. This holds even if the whole archive is in memory.
func TestEndsWithContext(t *testing.T) {
	r, err := NewReader(bytes.NewReader(written(t, sample(t)...)), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := r.Next(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	for range 2 {
		if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("the next entry: got error %v, want %v", err, context.Canceled)
		}
	}
	if _, err := parseManifests(ctx, "manifests.jsonl", []byte("{}\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("the next manifest: got error %v, want %v", err, context.Canceled)
	}
}

// TestBomb: reading a compressed bomb takes no more memory than the limits allow, even if the
// archive claims other sizes.
func TestBomb(t *testing.T) {
	bomb := forged(t, true, func(files []file) []file {
		find(t, files, "chains/argocd/4/manifests.jsonl").data = make([]byte, 256<<20)
		return files
	})
	if len(bomb) > 1<<20 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	if _, _, err := read(bomb, DefaultLimits()); err == nil || !strings.Contains(err.Error(), "are allowed") {
		t.Errorf("got error %v", err)
	}
	many := forged(t, true, func(files []file) []file {
		find(t, files, "chains/argocd/2/manifests.jsonl").data = fmt.Appendf(nil, `{"digest":"sha256:%064d","manifest":{"a":[%s0]}}`+"\n", 0, strings.Repeat("0,", 2<<20))
		return files
	})
	if _, _, err := read(many, DefaultLimits()); err == nil || !strings.Contains(err.Error(), "values that are allowed") {
		t.Errorf("many values: got error %v", err)
	}
}

// TestHeaderBomb: headers of a tar file may describe the next entry, any number of times. They are
// no entries, so no limit of an entry applies to them.
func TestHeaderBomb(t *testing.T) {
	var text bytes.Buffer
	compressor, err := zstd.NewWriter(&text)
	if err != nil {
		t.Fatal(err)
	}
	// The archive has a header of PAX records for a missing entry: one long record, or many
	// records.
	comment := fmt.Sprintf("%d comment=%s\n", 1<<20-16, strings.Repeat("x", 1<<20-16-len("1048560 comment=\n")))
	header := make([]byte, 512)
	block := &tar.Header{Typeflag: tar.TypeXHeader, Name: "x", Size: int64(len(comment)), Format: tar.FormatUSTAR}
	copy(header, block.Name)
	copy(header[100:], "0000644\x000000000\x000000000\x00")
	copy(header[124:], fmt.Sprintf("%011o\x0000000000000\x00        ", block.Size))
	header[156] = block.Typeflag
	copy(header[257:], "ustar\x0000")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	const headers = 1 << 10
	padding := make([]byte, (512-len(comment)%512)%512)
	for range headers {
		for _, part := range [][]byte{header, []byte(comment), padding} {
			if _, err := compressor.Write(part); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := compressor.Close(); err != nil {
		t.Fatal(err)
	}
	if text.Len() > 1<<20 {
		t.Fatalf("the bomb has %d bytes", text.Len())
	}
	if _, err := NewReader(bytes.NewReader(text.Bytes()), DefaultLimits()); !errors.Is(err, errHeaders) {
		t.Errorf("%d headers of 1 MiB: got error %v, want that one is too long", headers, err)
	}
}

func TestWriterRefuses(t *testing.T) {
	items := sample(t)
	cases := map[string]struct {
		reason string
		do     func(w *Writer) error
	}{
		"OtherOrder": {"chains are sorted", func(w *Writer) error {
			return errors.Join(w.Chain(*items[3].Chain), w.Chain(Chain{Name: "a", Highest: 1}))
		}},
		"NoChain": {"a revision belongs to a chain", func(w *Writer) error { return w.Revision(*items[1].Revision, nil) }},
		"OtherNumber": {"as announced", func(w *Writer) error {
			return errors.Join(w.Chain(*items[0].Chain), w.Revision(*items[2].Revision, nil))
		}},
		"Unfinished":   {"all that was announced", func(w *Writer) error { return errors.Join(w.Chain(*items[0].Chain), w.Close()) }},
		"NextTooEarly": {"all that was announced, before the next", func(w *Writer) error { return errors.Join(w.Chain(*items[0].Chain), w.Chain(*items[3].Chain)) }},
		"WrongDigest": {"what could not be read", func(w *Writer) error {
			wrong := items[1].Objects[0]
			wrong.Digest = items[1].Objects[1].Digest
			return errors.Join(w.Chain(*items[0].Chain), w.Revision(*items[1].Revision, []manifest.Object{wrong}))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := NewWriter(io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if tc.do(w) == nil {
				t.Errorf("%s: got no error", tc.reason)
			}
		})
	}
}

// FuzzRead: an archive that can be read is written again with the same bytes. No input panics or
// takes unbounded memory.
func FuzzRead(f *testing.F) {
	f.Add(written(f, sample(f)...))
	f.Add(written(f))
	f.Add(written(f, sample(f)[3]))
	f.Add([]byte{})
	limits := DefaultLimits()
	limits.Bytes, limits.ManifestBytes = 1<<20, 1<<18
	f.Fuzz(func(t *testing.T, data []byte) {
		items, digest, err := read(data, limits)
		if err != nil {
			return
		}
		again := written(t, items...)
		back, same, err := read(again, limits)
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if diff := cmp.Diff(items, back); diff != "" {
			t.Errorf("read again (-first +again):\n%s", diff)
		}
		if same == "" || digest == "" {
			t.Error("an archive without a digest")
		}
	})
}

// FuzzEntries works like FuzzRead, on decompressed entries with correct checksums.
func FuzzEntries(f *testing.F) {
	for _, name := range []string{headerName, "chains/argocd/chain.json", "chains/argocd/4/revision.json", "chains/argocd/4/manifests.jsonl"} {
		eachEntry(f, written(f, sample(f)...), func(header *tar.Header, data []byte) {
			if header.Name == name {
				f.Add(name, data)
			}
		})
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		changed := forged(t, true, func(files []file) []file {
			for i := range files {
				if files[i].header.Name == name {
					files[i].data = data
				}
			}
			return files
		})
		items, _, err := read(changed, DefaultLimits())
		if err != nil {
			return
		}
		if _, _, err := read(written(t, items...), DefaultLimits()); err != nil {
			t.Errorf("what was read cannot be written and read: %v", err)
		}
	})
}
