package index

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// plainHub returns an uncompressed catalog as large as OperatorHub's, as catalogs are in images. It
// is not part of the repository.
func plainHub(b *testing.B) string {
	b.Helper()
	packed, err := os.Open("../../../../shared/data/catalogs/operatorhub.jsonl.zst")
	if os.IsNotExist(err) {
		b.Skip("no shared data")
	}
	if err != nil {
		b.Fatal(err)
	}
	defer packed.Close()
	plain, err := zstd.NewReader(packed)
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	name := filepath.Join(b.TempDir(), "catalog.jsonl")
	file, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	if _, err := plain.WriteTo(file); err != nil {
		b.Fatal(err)
	}
	return name
}

func documentsOf(name string) fbc.Documents {
	return func(ctx context.Context, found func(*fbc.Document) error) error {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		return fbc.Read(ctx, file, name, fbc.DefaultLimits(), found)
	}
}

// BenchmarkBuild also reports the peak resident memory of the process, including the heap, and the
// memory of an index afterwards. Run it alone, because the peak includes all other work of the
// process.
func BenchmarkBuild(b *testing.B) {
	name := plainHub(b)
	runtime.GC()
	before := heapInUse()
	var kept *Index
	peakBefore := resident(b, "VmHWM")
	for b.Loop() {
		store, err := Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		if kept, err = store.Update(b.Context(), "hub", digest(1), documentsOf(name)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(resident(b, "VmHWM"), "peak-MB")
	b.ReportMetric(peakBefore, "peak-before-MB")
	runtime.GC()
	b.ReportMetric(heapInUse()-before, "kept-MB")
	info, err := kept.file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/1e6, "disk-MB")
}

// BenchmarkPackage reads every package, and reports the median and the slowest time.
func BenchmarkPackage(b *testing.B) {
	store, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	kept, err := store.Update(b.Context(), "hub", digest(1), documentsOf(plainHub(b)))
	if err != nil {
		b.Fatal(err)
	}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, row := range kept.Packages() {
			began := time.Now()
			if _, err := kept.Package(row.Name); err != nil {
				b.Fatal(err)
			}
			took[row.Name] = append(took[row.Name], time.Since(began))
		}
	}
	var medians []time.Duration
	for _, times := range took {
		slices.Sort(times)
		medians = append(medians, times[len(times)/2])
	}
	slices.Sort(medians)
	b.ReportMetric(milliseconds(medians[len(medians)/2]), "median-ms")
	b.ReportMetric(milliseconds(medians[len(medians)-1]), "slowest-ms")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func heapInUse() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapInuse) / 1e6
}

// resident returns resident memory in MB on Linux, and 0 elsewhere.
func resident(b *testing.B, field string) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kilobytes / 1024
		}
	}
	return 0
}
