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

// part is work for a revision, told by the functions that do it.
type part struct {
	name      string
	functions *regexp.Regexp
}

// elsewhere is the part of samples without a function of any other.
const elsewhere = "Go's scheduler, and all else"

// parts of the work for a revision. A sample counts for the first one that has a function in its stack:
// work that others do for their own part comes first.
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

// printParts adds a table of the parts of a profile. Each is its share of the samples, of so many
// milliseconds for one revision.
func (b *bench) printParts(step, file string, millis float64) error {
	traces, err := exec.Command("go", "tool", "pprof", "-traces", file).Output()
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	spent, total, all := map[string]time.Duration{}, time.Duration(0), parts()
	// Each stack begins with its time, and stands between two lines. The first text is about the file.
	for _, stack := range strings.Split(string(traces), "-----------+")[1:] {
		_, stack, _ = strings.Cut(stack, "\n")
		text, stack, _ := strings.Cut(strings.TrimSpace(stack), " ")
		took, err := time.ParseDuration(text)
		if err != nil {
			continue // behind the last one
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
