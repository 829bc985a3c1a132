package fences

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unrun lists the reasons whose command no test runs against the case, by heading of the reference,
// with an explanation. TestCommands of pkg/plugin/command checks that these commands exist.
var unrun = []struct{ of, reasons, why string }{
	{"Of revisions", "ContentUnreadable Unreadable", "The case needs a store with a damaged record. TestStoreUnreadable makes one, and the command only reads"},
	{"Of revisions", "Invalid InvalidManifests", "The API server refuses such a revision. Only one that an earlier Penstock stored can be in the case"},
	{"Of revisions", "NotWatchable", "Penstock restores the rights of its engine within seconds, so the case does not last"},
	{"Of revisions", "PassFailed", "It is for errors that have no better reason. No test knows how to cause one"},
	{"Of revisions", "Pending", "It lasts only while no replica leads, and the command only reads"},
	{"Of revisions", "TargetUnreachable", "The case needs a second control plane that ends, and the command only reads"},
	{"Of revisions", "Unavailable", "The simulated node of tests never loses a workload that it has run. The command is that of ProbeFailed"},
	{"Of revisions", "IsRollback NoEarlierSuccess Overtaken RollbackRefused", "They are reasons of the condition RolledBack, and why names the reason of Stalled. TestRollback has the first two cases"},
	{"Of revisions", "MetricCheckFailed MetricCheckUnknown", "TestRollback has the cases. One command is that of ProbeFailed, and the other only reads"},
	{"Of revisions", "DriftFound", "It asks for nothing. TestRollback removes the annotation as the command does"},
	{"Of revisions", "Held", "The command only opens the ClusterExtension. TestExtensions has the case, and ends it by an edit of its own"},
	{"Of revisions", "Drifted Stale", "Targets of plans have them. The command is that of ConfigurationDrifted"},
	{"Of plans", "ApprovalExpired", "The time of an approval is too long for a test"},
	{"Of plans", "LogicChanged", "The case needs another version of Penstock"},
	{"Of plans", "ApproverLacksRights CompletedWithErrors ItemFailed PlanRefused PlanStale", "test/e2e has such cases. It ends them with other flags or another user; the command is that of ConfigurationDrifted"},
	{"Of plans", "ProfileLocked TargetUnhealthy", "The command only reads, and is that of FieldConflict"},
	{"Of plans", "Frozen", "The command is that of Frozen of revisions"},
	{"Of plans", "Unreadable", "The case needs a store with a damaged record, and the command only reads"},
	{"Reasons of Ready", "CatalogUnavailable NoCatalog PullFailed Pending RevisionsUnknown", "The cases need a catalog, a registry, a store or a leader that fails. The commands only read, and the log is that of a Pod, which tests do not have"},
	{"Reasons of Ready", "AuthorUnknown ChangedSinceReview InvalidExtension InvalidManifests SignatureFormatUnsupported UnsupportedContent ReleaseBlocked RequiredByOthers RequirementsUnmet RevisionRefused", "The commands only open or show the ClusterExtension, as they do for InvalidConfiguration, Denied and Unresolved"},
}

// TestReasonsAreRun checks each reason of the reference: a test runs its command against its case,
// or unrun explains why none does.
func TestReasonsAreRun(t *testing.T) {
	root := ".."
	run, err := reasonsRun(root)
	if err != nil || len(run) < 20 {
		t.Fatalf("tests run the commands of %d reasons: %v", len(run), err)
	}
	reasons := read(t, root, "docs/reference/reasons.md")
	excused := map[string]bool{}
	for _, one := range unrun {
		for reason := range strings.FieldsSeq(one.reasons) {
			excused[one.of+"/"+reason] = true
		}
	}
	documented := map[string]bool{}
	for heading, page := range map[string]string{"Of revisions": reasons, "Of plans": reasons, "Reasons of Ready": read(t, root, "docs/reference/clusterextension-status.md")} {
		_, rows, _ := strings.Cut(page, "\n## "+heading+"\n\n")
		rows, _, _ = strings.Cut(rows, "\n\n")
		for row := range strings.Lines(rows) {
			cells := strings.Split(row, "|")
			if len(cells) != 7 || !strings.Contains(cells[5], "`") {
				continue
			}
			for name := range strings.SplitSeq(cells[1], ",") {
				reason := heading + "/" + strings.Trim(name, " `")
				documented[reason] = true
				switch {
				case !run[reason] && !excused[reason]:
					t.Errorf("%s: no test runs its command, and unrun does not say why", reason)
				case run[reason] && excused[reason]:
					t.Errorf("%s: a test runs its command, and unrun says that none does", reason)
				}
			}
		}
	}
	for _, named := range []map[string]bool{run, excused} {
		for reason := range named {
			if !documented[reason] {
				t.Errorf("%s is no reason with a command", reason)
			}
		}
	}
}

// reasonsRun finds the calls that run a command of the reference.
func reasonsRun(root string) (map[string]bool, error) {
	run := map[string]bool{}
	named := regexp.MustCompile(`\.(?:command|documented)\("(Of revisions|Of plans)", "([A-Za-z]+)"`)
	extension := regexp.MustCompile(`\.answers\([^"]*"([A-Za-z]+)"\)`)
	answer := regexp.MustCompile(`(?m)^\t\t"([A-Za-z]+)": \{$`)
	files, err := filepath.Glob(filepath.Join(root, "test", "*", "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, found := range named.FindAllStringSubmatch(string(content), -1) {
			run[found[1]+"/"+found[2]] = true
		}
		for _, found := range extension.FindAllStringSubmatch(string(content), -1) {
			heading := "Reasons of Ready"
			if found[1] == "Collision" {
				heading = "Of revisions"
			}
			run[heading+"/"+found[1]] = true
		}
		if strings.HasSuffix(filepath.ToSlash(file), "e2e/answers_test.go") {
			for _, found := range answer.FindAllStringSubmatch(string(content), -1) {
				run["Of revisions/"+found[1]] = true
			}
		}
	}
	return run, nil
}

func read(t *testing.T, root, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
