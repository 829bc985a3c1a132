package encoding

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"sigs.k8s.io/randfill"
)

// encoders returns the library's encoder of tables, and its replacement.
func encoders() (stock, ours runtime.Encoder) {
	codec := func(change func([]runtime.SerializerInfo)) runtime.Encoder {
		codecs := serializer.NewCodecFactory(metainternalversionscheme.Scheme)
		change(codecs.SupportedMediaTypes())
		info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
		return codecs.EncoderForVersion(info.Serializer, metav1.SchemeGroupVersion)
	}
	return codec(func([]runtime.SerializerInfo) {}), codec(streamTables)
}

type writes struct {
	bytes.Buffer
	count, first int
}

func (w *writes) Write(p []byte) (int, error) {
	if w.count == 0 {
		w.first = len(p)
	}
	w.count++
	return w.Buffer.Write(p)
}

// same fails the test unless both encoders write the same bytes or both return an error.
func same(t *testing.T, obj runtime.Object) *writes {
	t.Helper()
	stock, ours := encoders()
	var want bytes.Buffer
	wantErr := stock.Encode(obj, &want)
	got := &writes{}
	gotErr := ours.Encode(obj, got)
	if (wantErr == nil) != (gotErr == nil) {
		t.Fatalf("error %v, want %v", gotErr, wantErr)
	}
	if wantErr == nil && got.String() != want.String() {
		t.Fatalf("(-want +got):\n%s", cmp.Diff(want.String(), got.String()))
	}
	return got
}

// rows returns rows like those of revisions.
func rows(n int) []metav1.TableRow {
	created := metav1.NewTime(time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC))
	var all []metav1.TableRow
	for i := range n {
		name := fmt.Sprintf("operator-%d", i)
		all = append(all, metav1.TableRow{
			Cells: []any{name, int64(i), "Active", "True", "False", int64(13), "5m", "Succeeded", `all objects of phase "deploy" pass`},
			Object: runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
				ObjectMeta: metav1.ObjectMeta{
					Name: name, UID: "3b9ae6d2-7a35-4b54-8d2a-1f6f3d0e5a11", ResourceVersion: fmt.Sprint(1000 + i), Generation: 1, CreationTimestamp: created,
					Labels:      map[string]string{"penstock.dev/chain": "operator", "app.kubernetes.io/part-of": "tests"},
					Annotations: map[string]string{"penstock.dev/requester": `{"username":"alice"}`},
					Finalizers:  []string{"penstock.dev/teardown"},
					ManagedFields: []metav1.ManagedFieldsEntry{{
						Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "olm.operatorframework.io/v1alpha1", Time: &created, FieldsType: "FieldsV1",
						FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:penstock.dev/chain":{}}},"f:spec":{"f:lifecycleState":{},"f:phases":{"k:{\"name\":\"deploy\"}":{".":{},"f:name":{},"f:objects":{}}},"f:revision":{}}}`),
					}},
				},
			}},
		})
	}
	return all
}

func table(n int) *metav1.Table {
	return &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "<extension>"}}, Rows: rows(n)}
}

func list(n int) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	for _, row := range rows(n) {
		l.Items = append(l.Items, *row.Object.Object.(*metav1.PartialObjectMetadata))
	}
	return l
}

// TestSameBytes: the answers equal the library's answers.
func TestSameBytes(t *testing.T) {
	remaining := int64(7)
	with := func(change func(*metav1.TableRow, *metav1.ObjectMeta)) *metav1.Table {
		table := table(2)
		change(&table.Rows[1], &table.Rows[1].Object.Object.(*metav1.PartialObjectMetadata).ObjectMeta)
		return table
	}
	cases := map[string]runtime.Object{
		"Nothing":       &metav1.Table{},
		"NoRows":        &metav1.Table{Rows: []metav1.TableRow{}},
		"NoItems":       &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{}},
		"SomethingElse": &metav1.Status{Message: "<no> table"},
		"Rows":          table(3),
		"Items":         list(3),
		"ManyRows":      table(200),
		"ManyItems":     list(200),
		"Page":          &metav1.Table{ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "null}", RemainingItemCount: &remaining}, Rows: rows(1)},
		"NoHeaders":     &metav1.Table{Rows: rows(1)},
		"NoObject":      with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) { r.Object.Object = nil }),
		"NilObject":     with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) { r.Object.Object = (*metav1.PartialObjectMetadata)(nil) }),
		"Raw":           with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) { r.Object.Raw = []byte(` {"a" : "<b>"} `) }),
		"OtherObject":   with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) { r.Object.Object = &metav1.Status{Message: "m"} }),
		"Conditions": with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) {
			r.Conditions = []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue}}
		}),
		"NoCells":   with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) { r.Cells = nil }),
		"ZeroCells": with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) { r.Cells = []any{} }),
		"Cells": with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) {
			r.Cells = []any{nil, true, 1.5, 1e30, int32(7), uint8(8), "<a&b>", "é\u2028\x00\x7f", "\xff", []any{"a", int64(1)}, map[string]any{"b": "<", "a": nil}, metav1.Time{}, math.MaxInt64, int64(math.MinInt64)}
		}),
		"Unwritable": with(func(r *metav1.TableRow, _ *metav1.ObjectMeta) { r.Cells = []any{math.NaN()} }),
		"NoMetadata": with(func(_ *metav1.TableRow, m *metav1.ObjectMeta) { *m = metav1.ObjectMeta{} }),
		"Times": with(func(_ *metav1.TableRow, m *metav1.ObjectMeta) {
			m.DeletionTimestamp, m.ManagedFields[0].Time = &metav1.Time{}, &metav1.Time{}
			m.CreationTimestamp = metav1.NewTime(time.Date(12026, 1, 2, 3, 4, 5, 6, time.FixedZone("east", 3600)))
		}),
		"FieldSets": with(func(_ *metav1.TableRow, m *metav1.ObjectMeta) {
			for _, set := range []string{``, `{}`, `null`, `{"f:a b":{}}`, `{ "f:a":{} }`, `{"f:<&>":{}}`, "{\"f:\u2028é\":{}}", `[]`} {
				m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(set)})
			}
		}),
		"Neighbours": neighbours(),
		"NotJSON":    with(func(_ *metav1.TableRow, m *metav1.ObjectMeta) { m.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`no`) }),
	}
	for name, obj := range cases {
		t.Run(name, func(t *testing.T) { same(t, obj) })
	}
}

// neighbours returns rows that partly equal the row above.
func neighbours() *metav1.Table {
	all := table(6)
	plain, other := metav1.NewFieldsV1(`{"f:a":{}}`), metav1.NewFieldsV1(`{"f:<a>": {}}`)
	for i, row := range all.Rows {
		m := &row.Object.Object.(*metav1.PartialObjectMetadata).ObjectMeta
		m.Labels = map[string]string{"a": "1", "b": fmt.Sprint(i), []string{"c", "c", "d"}[i/2]: "3"}
		if i == 5 {
			delete(m.Labels, "d")
		}
		m.Annotations = map[string]string{"z": "1", "y": "2"}
		at := metav1.NewTime(m.CreationTimestamp.Add(time.Duration(i/2)*time.Second + time.Duration(i)))
		m.CreationTimestamp = at
		m.ManagedFields = nil
		for _, set := range []*metav1.FieldsV1{plain, other, plain, metav1.NewFieldsV1(fmt.Sprintf(`{"f:%d":{}}`, i))} {
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: "m", FieldsV1: set, Time: &at})
		}
	}
	return all
}

// TestSameBytesOfAnything: the answers are also equal for random values of all fields.
func TestSameBytesOfAnything(t *testing.T) {
	fill := randfill.New().NilChance(0.3).NumElements(0, 3).Funcs(metafuzzer.Funcs(serializer.NewCodecFactory(runtime.NewScheme()))...).Funcs(
		func(m *metav1.ObjectMeta, c randfill.Continue) { c.FillNoCustom(m) },
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString(fmt.Sprintf(`{"f:%d":{}}`, c.Intn(100))) },
		func(cell *any, c randfill.Continue) {
			*cell = []any{nil, c.String(0), c.Int63(), c.Bool(), c.Float64(), []any{c.String(0)}}[c.Intn(6)]
		},
		func(raw *runtime.RawExtension, c randfill.Continue) {
			object := &metav1.PartialObjectMetadata{}
			c.Fill(object)
			raw.Object = object
		},
	)
	for seed := range int64(300) {
		fill = fill.RandSource(rand.NewSource(seed))
		table, list := &metav1.Table{}, &metav1.PartialObjectMetadataList{}
		fill.Fill(table)
		fill.Fill(list)
		same(t, table)
		same(t, list)
	}
}

func FuzzSameBytes(f *testing.F) {
	f.Add("name", "key", "a value", `{"f:a":{}}`, int64(1), 0.5)
	f.Add("<", "\"\\", "\u2029", `{"f:\u003c":{}}`, int64(-1), -1e-7)
	f.Fuzz(func(t *testing.T, name, key, value, set string, number int64, other float64) {
		table := table(2)
		row := &table.Rows[1]
		meta := &row.Object.Object.(*metav1.PartialObjectMetadata).ObjectMeta
		row.Cells = []any{name, value, number, other}
		meta.Name, meta.Generation = name, number
		meta.Labels = map[string]string{key: value, name: key}
		meta.Finalizers = []string{value}
		// Decoded objects contain only valid JSON.
		if fieldSet := metav1.NewFieldsV1(set); json.Valid([]byte(set)) {
			meta.ManagedFields[0].FieldsV1 = fieldSet
		}
		same(t, table)
	})
}

// TestChunks: large answers are written in parts. The first part makes the library compress them.
func TestChunks(t *testing.T) {
	got := same(t, table(1000))
	if got.first != 1 || got.count < 10 {
		t.Errorf("%d bytes in %d writes, the first one of %d bytes", got.Len(), got.count, got.first)
	}
}

// TestCompression: large answers are compressed for clients that accept it. Small answers are not,
// like in the library.
func TestCompression(t *testing.T) {
	for name, obj := range map[string]*metav1.Table{"small": table(3), "large": table(1000)} {
		t.Run(name, func(t *testing.T) {
			stock, ours := encoders()
			want, got := respond(t, stock, obj), respond(t, ours, obj)
			if diff := cmp.Diff(want.Header(), got.Header()); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if plain(t, want) != plain(t, got) {
				t.Error("the bodies differ")
			}
			if compressed := got.Header().Get("Content-Encoding") == "gzip"; compressed != (name == "large") {
				t.Errorf("compressed: %t", compressed)
			}
		})
	}
}

func respond(t *testing.T, encoder runtime.Encoder, obj runtime.Object) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.Header.Set("Accept-Encoding", "gzip")
	recorder := httptest.NewRecorder()
	responsewriters.SerializeObject(runtime.ContentTypeJSON, encoder, recorder, req, http.StatusOK, obj)
	return recorder
}

func plain(t *testing.T, recorder *httptest.ResponseRecorder) string {
	t.Helper()
	var body io.Reader = bytes.NewReader(recorder.Body.Bytes())
	if recorder.Header().Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			t.Fatal(err)
		}
		body = unpacked
	}
	var text strings.Builder
	if _, err := io.Copy(&text, body); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestFailingWriter: encoding stops when the client has disconnected.
func TestFailingWriter(t *testing.T) {
	_, ours := encoders()
	for _, allowed := range []int{0, 1, 5} {
		w := &failing{allowed: allowed}
		if err := ours.Encode(table(1000), w); err == nil || w.writes != allowed+1 {
			t.Errorf("after %d writes: error %v, %d writes", allowed, err, w.writes)
		}
	}
}

type failing struct{ allowed, writes int }

func (f *failing) Write(p []byte) (int, error) {
	if f.writes++; f.writes > f.allowed {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func BenchmarkTable(b *testing.B) {
	stock, ours := encoders()
	for name, obj := range map[string]runtime.Object{"table": table(5000), "metadata": list(5000)} {
		for who, encoder := range map[string]runtime.Encoder{"stock": stock, "ours": ours} {
			b.Run(name+"/"+who, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := encoder.Encode(obj, io.Discard); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
