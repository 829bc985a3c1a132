package reads

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/test/bench/measure"
)

const (
	aggregated = "penstock"
	direct     = "penstock, direct"
	small      = "small CRs"
	inline     = "inline CRs"

	pageSize = 500
)

type target struct {
	name   string
	client *client
	path   string
}

// targets returns the compared targets. It includes the custom resources with inline manifests only
// if they exist and withInline is true.
func (b *bench) targets(withInline bool) []target {
	all := []target{
		{aggregated, b.host, revisions},
		{direct, b.direct, revisions},
		{small, b.host, smallPeers},
	}
	if b.inline && withInline {
		all = append(all, target{inline, b.host, inlinePeers})
	}
	return all
}

func subjects(targets []target, do func(ctx context.Context, t target) (int64, error)) []measure.Subject {
	var all []measure.Subject
	for _, t := range targets {
		all = append(all, measure.Subject{Name: t.name, Do: func(ctx context.Context) (int64, error) { return do(ctx, t) }})
	}
	return all
}

func (b *bench) lists() {
	b.t.Helper()
	title := b.title("LIST")
	for _, c := range []struct {
		name string
		// always includes the custom resources with inline manifests in the default run, too;
		// listing them in full is slow.
		always bool
		do     func(ctx context.Context, t target) (int64, error)
	}{
		{"table", true, func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asTable) }},
		{"table, compressed", true, func(ctx context.Context, t target) (int64, error) {
			return t.client.readCompressed(ctx, t.path, asTable)
		}},
		{"table, 500 a page", false, func(ctx context.Context, t target) (int64, error) {
			return t.client.pages(ctx, t.path, asTable, pageSize)
		}},
		{"full", false, func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asJSON) }},
		{"metadata", false, func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asMetadata) }},
		{"metadata, 500 a page", false, func(ctx context.Context, t target) (int64, error) {
			return t.client.pages(ctx, t.path, asMetadata, pageSize)
		}},
		{"watch with all", false, func(ctx context.Context, t target) (int64, error) { return t.client.watchList(ctx, t.path) }},
	} {
		targets := b.targets(c.always || b.settings.full)
		result := b.run(title, aggregated, measure.Case{Name: c.name, Rounds: b.settings.rounds, Subjects: subjects(targets, c.do)})
		b.report.AtLeast(fmt.Sprintf("%s: against small CRs", b.what("LIST "+c.name)), 1, result, aggregated, small)
		if b.inline && c.always {
			b.report.AtLeast(fmt.Sprintf("%s: against CRs with the manifests inline", b.what("LIST "+c.name)), 10, result, aggregated, inline)
		}
	}
}

// what describes a read and its revisions, for a verdict.
func (b *bench) what(read string) string {
	return fmt.Sprintf("%s (%d objects)", read, b.operator.Objects)
}

func (b *bench) singles() {
	b.t.Helper()
	const one = "/operator-0000-3"
	title := b.title("One of them")
	c := measure.Case{Name: "GET", Rounds: b.settings.rounds, Burst: b.settings.burst,
		Subjects: subjects(b.targets(true), func(ctx context.Context, t target) (int64, error) {
			return t.client.read(ctx, t.path+one, asJSON)
		})}
	result := b.run(title, aggregated, c)
	b.report.AtLeast("GET: against small CRs", 1, result, aggregated, small)

	versions := map[string]string{}
	for _, t := range b.targets(true) {
		versions[t.name] = b.version(t.client, t.path)
	}
	c.Name = "watch start"
	c.Subjects = subjects(b.targets(true), func(ctx context.Context, t target) (int64, error) {
		return t.client.beginWatch(ctx, t.path, versions[t.name])
	})
	result = b.run(title, aggregated, c)
	b.report.AtLeast("watch start: against small CRs", 1, result, aggregated, small)

	c.Name = "manifests"
	c.Subjects = subjects([]target{
		{aggregated, b.host, revisions + one + "/manifests"},
		{direct, b.direct, revisions + one + "/manifests"},
		{inline + ", GET", b.host, inlinePeers + one},
	}, func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asJSON) })
	result = b.run(title, aggregated, c)
	b.report.AtLeast("…/manifests: against GET of CRs with the manifests inline", 1, result, aggregated, inline+", GET")
}

// history measures the history of an extension with many revisions. Custom resources have no
// history; the nearest equivalent is a table selected by label.
func (b *bench) history() {
	b.t.Helper()
	path := fmt.Sprintf("%s/%s-%d/history", revisions, historyChain, historyLength)
	result := b.run(b.title(fmt.Sprintf("History of %d revisions", historyLength)), aggregated, measure.Case{
		Name: "table", Rounds: b.settings.rounds, Burst: b.settings.burst,
		Subjects: subjects([]target{
			{aggregated, b.host, path},
			{direct, b.direct, path},
			{small + ", by label", b.host, smallPeers + "?labelSelector=penstock.dev/chain%3D" + historyChain},
		}, func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asTable) }),
	})
	b.report.AtLeast("history of 100 revisions: against a LIST of small CRs by label", 1, result, aggregated, small+", by label")
}
