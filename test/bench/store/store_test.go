package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/storetest"
	"github.com/penstock-project/penstock/test/bench/measure"
)

// target is the factor by which all stored content should be smaller than with gzip.
const target = 6

// TestStore runs the whole benchmark.
func TestStore(t *testing.T) {
	if os.Getenv("BENCH") != "store" {
		t.Skip("a benchmark that takes a minute and wants the machine for itself: run it by `make bench SUITE=store`")
	}
	digester := manifest.Digester{SecretKey: []byte("a key of a benchmark, nobody else's")}
	all, report, began := histories(t, digester), &measure.Report{}, time.Now()
	fmt.Println(measure.Machine(began))
	etcd := storetest.Client(t)
	sizes(t, etcd, report, digester, all)
	latencies(t, etcd, report, digester, all)
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(began).Round(time.Second))
	if err := report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

type total struct {
	revisions, raw, zipped, helm, whole, deltas, rest int
}

func (s *total) add(o total) {
	s.revisions, s.raw, s.zipped, s.helm = s.revisions+o.revisions, s.raw+o.raw, s.zipped+o.zipped, s.helm+o.helm
	s.whole, s.deltas, s.rest = s.whole+o.whole, s.deltas+o.deltas, s.rest+o.rest
}

func (s total) row(name string) []string {
	row := []string{name, fmt.Sprint(s.revisions)}
	for _, bytes := range []int{s.raw, s.helm, s.zipped, s.whole, s.deltas, s.rest} {
		row = append(row, fmt.Sprintf("%.2f", float64(bytes)/1000/float64(s.revisions)))
	}
	return append(row, fmt.Sprintf("%.2f", float64(s.zipped)/float64(s.deltas)), fmt.Sprintf("%.2f", float64(s.zipped)/float64(s.deltas+s.rest)))
}

func sizes(t *testing.T, etcd *clientv3.Client, report *measure.Report, digester manifest.Digester, all [][]release) {
	t.Helper()
	columns := []string{"operator", "revisions", "JSON", "Helm", "gzip", "whole packs", "packs", "other records", "gzip / packs", "gzip / all"}
	ends := report.Table("KB for each revision that is kept, at the end of each history", columns...)
	means := report.Table("The same, on average over the histories", columns...)
	var end, mean total
	rebased, created := 0, 0
	for i, history := range all {
		whole := newDepot(t, etcd, fmt.Sprintf("/whole%d", i), digester, false)
		deltas := newDepot(t, etcd, fmt.Sprintf("/deltas%d", i), digester, true)
		measured := make([]total, len(history))
		var last, over total
		for at, r := range history {
			measured[at] = total{revisions: 1, raw: len(r.lines()), zipped: len(zipped(t, r)), helm: helmBytes(t, r)}
			last = total{}
			for _, one := range measured[max(0, at+1-kept) : at+1] {
				last.add(one)
			}
			whole.roll(history, at)
			deltas.roll(history, at)
			last.whole, _ = whole.sizes()
			last.deltas, last.rest = deltas.sizes()
			over.add(last)
		}
		ends.Row(last.row(history[0].operator)...)
		end.add(last)
		mean.add(over)
		rebased, created = rebased+deltas.rebased, created+deltas.created
	}
	ends.Row(end.row("sum")...)
	means.Row(mean.row("sum")...)
	fmt.Printf("%d packs were rebased for %d creates\n", rebased, created)
	report.AtMost("packs, by sum at the end, beside a sixth of gzip", float64(end.zipped/target/end.revisions), float64(end.deltas/end.revisions), "B a revision")
	report.AtMost("packs and all other records, by sum at the end, beside a sixth of gzip", float64(end.zipped/target/end.revisions), float64((end.deltas+end.rest)/end.revisions), "B a revision")
	report.AtMost("packs, by sum on average, beside a sixth of gzip", float64(mean.zipped/target/mean.revisions), float64(mean.deltas/mean.revisions), "B a revision")
}

func latencies(t *testing.T, etcd *clientv3.Client, report *measure.Report, digester manifest.Digester, all [][]release) {
	t.Helper()
	for _, history := range all {
		switch history[0].operator {
		case "archive-grafana-operator", "archive-strimzi-kafka-operator", "cert-manager", "argocd-operator":
		default:
			continue
		}
		earlier, r := history[len(history)-2], history[len(history)-1]
		name := fmt.Sprintf("%s, %d objects, %d KB", r.operator, len(r.objects), len(r.lines())/1000)
		s := newDepot(t, etcd, "/latency/"+r.operator, digester, true)
		_, err := s.packs.Put(t.Context(), earlier.objects)
		s.must(err)
		key, packs := s.keys.Pack(rootOf(r)), s.packs
		gone := func(ctx context.Context) error { _, err := etcd.Delete(ctx, key); return err }
		put := func(chain ...string) func(ctx context.Context) (int64, error) {
			return func(ctx context.Context) (int64, error) {
				if err := gone(ctx); err != nil {
					return 0, err
				}
				_, err := packs.PutInChain(ctx, r.objects, chain)
				return 0, err
			}
		}
		run := func(what, reference string, subjects ...measure.Subject) {
			result, err := measure.Run(t.Context(), measure.Case{Name: what, Rounds: 11, Burst: 10, Subjects: subjects})
			s.must(err)
			report.Result("Writing and reading the manifests of a revision: "+name, result, reference)
		}
		run("write", "a whole pack",
			measure.Subject{Name: "a whole pack", Do: put()},
			measure.Subject{Name: "a delta", Do: put(rootOf(earlier))},
			measure.Subject{Name: "gzip -9", Do: func(ctx context.Context) (int64, error) {
				if err := gone(ctx); err != nil {
					return 0, err
				}
				_, err := etcd.Put(ctx, s.prefix+"/zipped", string(zipped(t, r)))
				return 0, err
			}})
		_, err = pack.New(etcd, s.prefix+"/whole", digester).Put(t.Context(), r.objects)
		s.must(err)
		_, err = put(rootOf(earlier))(t.Context())
		s.must(err)
		read := func(packs *pack.Store) func(ctx context.Context) (int64, error) {
			return func(ctx context.Context) (int64, error) { _, err := packs.Objects(ctx, rootOf(r)); return 0, err }
		}
		run("read", "a whole pack",
			measure.Subject{Name: "a whole pack", Do: read(pack.New(etcd, s.prefix+"/whole", digester))},
			measure.Subject{Name: "a delta", Do: read(packs)},
			measure.Subject{Name: "gzip -9, not verified", Do: func(ctx context.Context) (int64, error) {
				found, err := etcd.Get(ctx, s.prefix+"/zipped")
				if err != nil {
					return 0, err
				}
				reader, err := gzip.NewReader(bytes.NewReader(found.Kvs[0].Value))
				if err != nil {
					return 0, err
				}
				return io.Copy(io.Discard, reader)
			}})
	}
}
