package highdensityswap

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"
	ignitionconfig "github.com/coreos/ignition/v2/config/v3_2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// sources returns both swap sources with their default options.
func sources() map[string]v1alpha1.HighDensitySwapOptions {
	return map[string]v1alpha1.HighDensitySwapOptions{
		"partition": defaulted(nil),
		"file":      defaulted(&v1alpha1.PlanOptions{HighDensitySwap: &v1alpha1.HighDensitySwapOptions{SwapSource: v1alpha1.SwapSourceFile, FileSizeMiB: ptr.To[int32](4096)}}),
	}
}

// parsed returns the values of a unit by section and name.
func parsed(t *testing.T, text string) map[string][]string {
	t.Helper()
	options, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out := map[string][]string{}
	for _, option := range options {
		key := option.Section + "." + option.Name
		out[key] = append(out[key], option.Value)
	}
	return out
}

// TestIgnition: Ignition accepts the generated configuration without warnings.
func TestIgnition(t *testing.T) {
	for name, options := range sources() {
		for _, dropIns := range []bool{true, false} {
			raw, err := json.Marshal(ignition(options, dropIns))
			if err != nil {
				t.Fatal(err)
			}
			config, report, err := ignitionconfig.Parse(raw)
			if err != nil || len(report.Entries) > 0 {
				t.Fatalf("%s: %v\n%s\n%s", name, err, report.String(), raw)
			}
			if len(config.Systemd.Units) != 2 || len(config.Storage.Disks)+len(config.Storage.Filesystems)+len(config.Storage.Raid) != 0 {
				t.Errorf("%s: it touches disks, or has other units: %s", name, raw)
			}
			for _, file := range config.Storage.Files {
				if file.Path != dropInFile && file.Path != swapScript {
					t.Errorf("%s: it writes %s", name, file.Path)
				}
			}
		}
	}
}

// TestNodesBootWithoutSwap: a node boots even if swap fails. No unit requires the swap unit, each
// of its waits has a limit, and its commands may fail.
func TestNodesBootWithoutSwap(t *testing.T) {
	for name, options := range sources() {
		u := parsed(t, unitOf(options))
		for key, values := range u {
			section, field, _ := strings.Cut(key, ".")
			for _, word := range []string{"RequiredBy", "Requires", "BindsTo", "PartOf", "OnFailure", "FailureAction", "Requisite", "UpheldBy"} {
				if field == word {
					t.Errorf("%s: %s=%v", name, field, values)
				}
			}
			if section == "Service" && field == "ExecStart" {
				for _, command := range values {
					if !strings.HasPrefix(command, "-/") {
						t.Errorf("%s: a failure of %q fails the unit", name, command)
					}
				}
			}
		}
		if got := u["Install.WantedBy"]; !slices.Equal(got, []string{"multi-user.target"}) {
			t.Errorf("%s: WantedBy=%v", name, got)
		}
		if got := u["Service.TimeoutStartSec"]; !slices.Equal(got, []string{"5min"}) {
			t.Errorf("%s: TimeoutStartSec=%v", name, got)
		}
		if got := u["Unit.Before"]; !slices.Equal(got, []string{"crio.service kubelet.service"}) {
			t.Errorf("%s: the kubelet would not see the swap: Before=%v", name, got)
		}
	}
}

// TestPartitionIsLeftAlone: a partition that is missing, or not formatted as swap, is not used.
func TestPartitionIsLeftAlone(t *testing.T) {
	u := parsed(t, unitOf(sources()["partition"]))
	const device = "/dev/disk/by-partlabel/CNV_SWAP"
	if got := u["Unit.ConditionPathExists"]; !slices.Equal(got, []string{device}) {
		t.Errorf("ConditionPathExists=%v", got)
	}
	if got := u["Service.ExecCondition"]; len(got) != 1 || !strings.Contains(got[0], "--match-token TYPE=swap "+device) {
		t.Errorf("ExecCondition=%v", got)
	}
	if text := unitOf(sources()["partition"]); strings.Contains(text, "mkswap") || strings.Contains(text, "wipefs") {
		t.Error("it formats the partition")
	}
}

// TestEveryBoot: swap is on after every boot, because the unit leaves nothing that prevents its
// next run.
func TestEveryBoot(t *testing.T) {
	for name, options := range sources() {
		u := parsed(t, unitOf(options))
		for key, values := range u {
			if strings.HasPrefix(key, "Unit.Condition") || strings.HasPrefix(key, "Unit.Assert") {
				for _, value := range values {
					if strings.HasPrefix(value, "!") || key == "Unit.ConditionFirstBoot" {
						t.Errorf("%s: %s=%s", name, key, value)
					}
				}
			}
		}
		if strings.Contains(unitOf(options)+script, "/tmp") || strings.Contains(script, "touch ") {
			t.Errorf("%s: it leaves a mark", name)
		}
	}
}

// TestKubeletDropIn: the kubelet's drop-in has exactly the fields that the Machine Config Operator
// refuses in a KubeletConfig.
func TestKubeletDropIn(t *testing.T) {
	var config map[string]any
	if err := yaml.UnmarshalStrict([]byte(kubeletConf), &config); err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(config)
	if string(raw) != `{"apiVersion":"kubelet.config.k8s.io/v1beta1","failSwapOn":false,"kind":"KubeletConfiguration","memorySwap":{"swapBehavior":"LimitedSwap"}}` {
		t.Errorf("%s", raw)
	}
	if u := parsed(t, systemSlice); !slices.Equal(u["Slice.MemorySwapMax"], []string{"0"}) || len(u) != 2 {
		t.Errorf("the drop-in of system.slice is %v", u)
	}
}

// node runs the script with replaced commands that record their arguments.
type node struct {
	t           *testing.T
	dir         string
	total, free string
	// fails are commands that fail.
	fails []string
	// active are the files that the node already uses for swap.
	active []string
}

func newNode(t *testing.T, total, free string) *node {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash here, which runs the script")
	}
	return &node{t: t, dir: t.TempDir(), total: total, free: free}
}

// boot runs the script once and returns the commands that change the node.
func (n *node) boot() []string {
	n.t.Helper()
	bin := filepath.Join(n.dir, "bin")
	log := filepath.Join(n.dir, "log")
	_ = os.Remove(log)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		n.t.Fatal(err)
	}
	body := map[string]string{
		"df":        `echo "1M-blocks Avail"; echo "` + n.total + ` ` + n.free + `"; exit`,
		"fallocate": `truncate --size "${2%iB}" "$3"; exit`,
		"mkswap":    "exit", "swapoff": "exit", "swapon": `[ "$1" = --show=NAME ] && printf '%s\n' ` + strings.Join(n.active, " ") + `; exit 0`,
	}
	for name, does := range body {
		if slices.Contains(n.fails, name) {
			does = "exit 1"
		}
		text := "#!/bin/bash\n[ \"$1\" = --show=NAME ] || echo " + name + " >> " + log + "\n" + does + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			n.t.Fatal(err)
		}
	}
	path := filepath.Join(n.dir, "script")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		n.t.Fatal(err)
	}
	command := exec.Command("bash", path, filepath.Join(n.dir, "swap", "swapfile"), "8")
	command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		n.t.Errorf("the script fails: %v\n%s", err, out)
	}
	raw, _ := os.ReadFile(log)
	return slices.DeleteFunc(strings.Fields(string(raw)), func(name string) bool { return name == "df" })
}

// TestScriptWithSwapOn: the script does not touch swap that is already on, and uses its file in
// addition to other swap.
func TestScriptWithSwapOn(t *testing.T) {
	n := newNode(t, "1000", "900")
	n.boot()
	ours := filepath.Join(n.dir, "swap", "swapfile")
	for name, c := range map[string]struct{ active, want []string }{
		"the file":           {[]string{"/dev/zram0", ours}, nil},
		"a partition":        {[]string{"/dev/sda3"}, []string{"swapon"}},
		"a file beside it":   {[]string{ours + ".old"}, []string{"swapon"}},
		"a folder behind it": {[]string{"/mnt" + ours}, []string{"swapon"}},
	} {
		n.active = c.active
		if got := n.boot(); !slices.Equal(got, c.want) {
			t.Errorf("with %s in use the script does %v, want %v", name, got, c.want)
		}
	}
}

// TestScript: the script creates the file once and uses it at each boot, creates none without
// enough space, and never fails.
func TestScript(t *testing.T) {
	n := newNode(t, "1000", "900")
	if got := n.boot(); !slices.Equal(got, []string{"swapoff", "fallocate", "mkswap", "swapon"}) {
		t.Errorf("the first boot does %v", got)
	}
	for range 2 {
		if got := n.boot(); !slices.Equal(got, []string{"swapon"}) {
			t.Errorf("a later boot does %v", got)
		}
	}
	if info, err := os.Stat(filepath.Join(n.dir, "swap", "swapfile")); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 8<<20 {
		t.Errorf("the file is %v (%v)", info, err)
	}
	full := newNode(t, "1000", "207")
	if got := full.boot(); !slices.Equal(got, []string{"swapoff"}) {
		t.Errorf("on a full disk it does %v", got)
	}
	for _, name := range []string{"fallocate", "mkswap", "swapon", "df"} {
		n := newNode(t, "1000", "900")
		n.fails = []string{name}
		n.boot()
		if _, err := os.Stat(filepath.Join(n.dir, "swap", "swapfile.new")); err == nil {
			t.Errorf("after a failure of %s there is half a file", name)
		}
		n.fails = nil
		if got := n.boot(); got[len(got)-1] != "swapon" {
			t.Errorf("after a failure of %s the next boot does %v", name, got)
		}
	}
}
