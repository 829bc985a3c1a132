package measure

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpreadOf(t *testing.T) {
	cases := map[string]struct {
		reason  string
		samples []float64
		want    Spread
	}{
		"None":   {reason: "nothing was measured"},
		"One":    {"all percentiles are the one sample", []float64{7}, Spread{7, 7, 7, 7, 1}},
		"Even":   {"the median is between the two in the middle", []float64{4, 1, 3, 2}, Spread{2.5, 1.3, 3.7, 3.97, 4}},
		"Eleven": {"the order does not matter", []float64{11, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6}, Spread{6, 2, 10, 10.9, 11}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := SpreadOf(tc.samples)
			near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
			if diff := cmp.Diff(tc.want, got, near); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunInterleaves(t *testing.T) {
	var order strings.Builder
	subject := func(name string) Subject {
		return Subject{Name: name, Do: func(context.Context) (int64, error) {
			order.WriteString(name)
			return 5, nil
		}}
	}
	result, err := Run(t.Context(), Case{Name: "x", Rounds: 2, Burst: 2, Subjects: []Subject{subject("a"), subject("b")}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "aabb" + "bbaa" + "aabb"; order.String() != want {
		t.Errorf("the turns are %s, want %s: a round to warm up, then two, each begun by another", &order, want)
	}
	for _, name := range []string{"a", "b"} {
		if got := result.Of(name).Samples; got != 2 || result.Bytes[name] != 5 {
			t.Errorf("%s has %d samples and %d bytes, want 2 and 5: one for each round", name, got, result.Bytes[name])
		}
	}
}

func TestRunFails(t *testing.T) {
	failure := errors.New("broken")
	_, err := Run(t.Context(), Case{Name: "x", Rounds: 1, Subjects: []Subject{
		{Name: "a", Do: func(context.Context) (int64, error) { return 0, failure }},
	}})
	if !errors.Is(err, failure) {
		t.Errorf("got error %v, want the subject's", err)
	}
}

func TestVerdicts(t *testing.T) {
	result := &Result{Millis: map[string][]float64{"ours": {10, 20, 30}, "peer": {20, 40, 60}}}
	var r Report
	r.AtLeast("twice", 2, result, "ours", "peer")
	r.AtLeast("thrice", 3, result, "ours", "peer")
	r.AtMost("exactly", 5, 5, "MB")
	r.AtMost("more", 5, 5.1, "MB")
	var missed []string
	for _, v := range r.Missed() {
		missed = append(missed, v.What)
	}
	if diff := cmp.Diff([]string{"thrice", "more"}, missed); diff != "" {
		t.Errorf("missed: -want +got:\n%s", diff)
	}
}

func TestPrint(t *testing.T) {
	var r Report
	r.Table("Sizes", "what", "bytes").Row("record", "4.1 KB")
	r.Table("Sizes").Row("r", "1 B")
	r.AtMost("memory", 120, 99.6, "MB")
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `
Sizes

| what   | bytes  |
|--------|--------|
| record | 4.1 KB |
| r      | 1 B    |

Targets

| what   | target         | measured | verdict |
|--------|----------------|----------|---------|
| memory | at most 120 MB | 100 MB   | met     |
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMemoryOf(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skipf("this system has no /proc: %v", err)
	}
	m, err := MemoryOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if m.RSS == 0 || m.Anon == 0 || m.Peak < m.Anon {
		t.Errorf("this process has %+v", m)
	}
}
