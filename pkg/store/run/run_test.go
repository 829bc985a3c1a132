package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/run"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

func row(plan string, number int64, body string) run.Row {
	return run.Row{Plan: plan, Number: number, Body: json.RawMessage(body)}
}

func TestRuns(t *testing.T) {
	client := storetest.Client(t)
	runs := run.New(client, "/penstock")
	ctx := t.Context()
	for _, r := range []run.Row{row("a", 1, `1`), row("a", 2, `2`), row("b", 1, `3`), row("a", 2, `4`)} {
		if err := runs.Put(ctx, "rebalance", r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := runs.List(ctx, "rebalance")
	if err != nil {
		t.Fatal(err)
	}
	want := []run.Row{row("b", 1, `3`), row("a", 2, `4`), row("a", 1, `1`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the newest first, each once (-want +got):\n%s", diff)
	}
	if other, err := runs.List(ctx, "another"); err != nil || len(other) > 0 {
		t.Errorf("another name: %v, %v", other, err)
	}
	if err := runs.Put(ctx, "a b/c", row("c", 1, `5`)); err != nil {
		t.Fatal(err)
	}
	if names, err := runs.Names(ctx); err != nil || cmp.Diff([]string{"a b/c", "rebalance"}, names) != "" {
		t.Errorf("names: %q, %v", names, err)
	}
	if err := runs.Put(ctx, "rebalance", run.Row{Plan: "a"}); err == nil {
		t.Error("a row without a number was stored")
	}

	if _, err := client.Put(ctx, store.NewKeys("/penstock").Runs("broken"), "PKR\x01{"); err != nil {
		t.Fatal(err)
	}
	var damaged *store.DamagedError
	if _, err := runs.List(ctx, "broken"); !errors.As(err, &damaged) {
		t.Errorf("a damaged record: %v", err)
	}
}

// TestRunsConcurrently: concurrent writers lose no rows, and the oldest rows are removed.
func TestRunsConcurrently(t *testing.T) {
	runs := run.New(storetest.Client(t), "/penstock")
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			if err := runs.Put(t.Context(), "busy", row("a", int64(i+1), fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	got, err := runs.List(t.Context(), "busy")
	if err != nil || len(got) != 8 {
		t.Fatalf("%d rows, %v; want 8", len(got), err)
	}
	for i := range run.MaxRows + 5 {
		if err := runs.Put(t.Context(), "long", row("a", int64(i+1), "{}")); err != nil {
			t.Fatal(err)
		}
	}
	got, err = runs.List(t.Context(), "long")
	if err != nil || len(got) != run.MaxRows || got[0].Number != run.MaxRows+5 {
		t.Errorf("%d rows, %v; want %d, the newest first", len(got), err, run.MaxRows)
	}
}
