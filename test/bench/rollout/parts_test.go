package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// part is a part of the work for a revision, identified by its functions.
type part struct {
	name      string
	functions *regexp.Regexp
}

// elsewhere is the part of all other samples.
const elsewhere = "Go's scheduler, and all else"

// parts returns the parts of the work for a revision. A sample counts for the first part that has a
// function in its stack. Parts that run as part of other work come first.
func parts() []part {
	var all []part
	for _, one := range [][2]string{
		{"garbage collection", `^runtime\.(gcBgMarkWorker|gcAssistAlloc|gcStart|gcMark|bgsweep|bgscavenge|sweepone|deductSweepCredit)`},
		{"status of the revision", `controller/chain\.\(\*scope\)\.(writeStatus|update)$`},
		{"inventory", `store/chain\.\(\*Inventories\)|[.*]ledger\b`},
		{"admission", `/admission[/.]`},
		{"contents (packs)", `/store/pack\.|storeContents|takeContents`},
		{"managed fields, OpenAPI", `managedfields|structured-merge-diff|kube-openapi`},
		{"dry-runs of objects", `rollout\.\(\*pass\)\.preflight|rollout\.\(\*object\)\.dryRun`},
		{"writes of objects", `rollout\.\(\*pass\)\.carryOut|rollout/targetclient\.`},
		{"watches of objects", `rollout/observe\.|client-go/tools/cache\.\(\*Reflector\)`},
		{"events", `rolloutevents\.|typed/core/v1\.\(\*events\)`},
		{"watches of revisions", `etcd3\.\(\*(watchChan|watcher)\)|storage/cacher\.\(\*(Cacher|cacheWatcher|watchCache)\)|handlers\.\(\*WatchServer\)|handlers\.serveWatch`},
		{"record of the revision: codec, conversion", `apimachinery/pkg/runtime[/.]|pkg/store\.compressed|compress/zstd`},
		{"record of the revision: store", `storage/etcd3\.|registry/generic/registry\.`},
		{"client of etcd", `google\.golang\.org/grpc|go\.etcd\.io`},
		{"controllers and engine", `penstock/pkg/(controller|rollout)[/.]|controller-runtime`},
		{"connections to kube-apiserver", `net/http2?\.\(\*(clientStream|ClientConn|clientConnReadLoop|http2clientStream|http2ClientConn|http2clientConnReadLoop|Transport|persistConn)\)`},
		{"requests: authentication, fairness, audit, handlers", `apiserver/pkg/|net/http2?\.\(\*(conn|serverConn|http2serverConn)\)|net/http\.HandlerFunc`},
	} {
		all = append(all, part{one[0], regexp.MustCompile(one[1])})
	}
	return all
}

// printParts adds a table with the parts of a profile. Each is its share of the samples, applied to
// the milliseconds per revision.
func (b *bench) printParts(step, file string, millis float64) error {
	traces, err := exec.Command("go", "tool", "pprof", "-traces", file).Output()
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	spent, total, all := map[string]time.Duration{}, time.Duration(0), parts()
	// Each stack is between two separator lines, and begins with its time. The first text describes
	// the file.
	for _, stack := range strings.Split(string(traces), "-----------+")[1:] {
		_, stack, _ = strings.Cut(stack, "\n")
		text, stack, _ := strings.Cut(strings.TrimSpace(stack), " ")
		took, err := time.ParseDuration(text)
		if err != nil {
			continue // after the last stack
		}
		functions, name := strings.Fields(stack), elsewhere
		if at := slices.IndexFunc(all, func(p part) bool { return slices.ContainsFunc(functions, p.functions.MatchString) }); at >= 0 {
			name = all[at].name
		}
		spent[name] += took
		total += took
	}
	table := b.report.Table("Processor time of one revision by part: "+step, "part", "ms", "%")
	for _, name := range slices.SortedFunc(maps.Keys(spent), func(a, b string) int { return cmp.Or(cmp.Compare(spent[b], spent[a]), strings.Compare(a, b)) }) {
		share := float64(spent[name]) / float64(total)
		table.Row(name, fmt.Sprintf("%.1f", share*millis), fmt.Sprintf("%.0f", 100*share))
	}
	return nil
}
