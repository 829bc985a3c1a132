package highdensityswap

import (
	"encoding/base64"
	"fmt"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// Files for nodes. Each rule prevents a failure that swap has caused on nodes elsewhere;
// files_test.go has a test for each.
//
//   - No unit requires the swap unit, so a node boots even if the unit fails or is skipped.
//   - The unit runs at every boot and leaves no mark, because swap is needed after every boot.
//   - It formats no partition, because a partition without a swap signature may hold data.
//   - Each of its waits has a limit.
//   - System services do not use swap, so that the node stays reachable under memory pressure.
const (
	swapUnit   = "penstock-swap.service"
	swapScript = "/usr/local/bin/penstock-swap-file"
	swapFile   = "/var/lib/penstock-swap/swapfile"
	dropInFile = profile.KubeletDropIns + "/90-penstock-swap.conf"
	slice      = "system.slice"
	sliceFile  = "50-penstock-swap.conf"

	ignitionVersion = "3.2.0"
)

// kubeletConf lets pods use swap within the limits of the kubelet (LimitedSwap): pods of the
// Burstable class, in proportion to their requests. The Machine Config Operator refuses both fields
// in a KubeletConfig.
const kubeletConf = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
memorySwap:
  swapBehavior: LimitedSwap
`

// systemSlice prevents system services from using swap, and gives priority to their reads and
// writes.
const systemSlice = `[Slice]
MemorySwapMax=0
IODeviceLatencyTargetSec=/ 50ms
`

// script creates the file once and uses it at each boot. It never fails: a node without swap works
// as before.
const script = `#!/bin/bash
# Uses a swap file, and makes it where there is room for it.
#   penstock-swap-file FILE MIB
file=$1 mib=$2
said() { echo "$*" >&2; }
dir=$(dirname "$file")
mkdir -p "$dir" && chmod 700 "$dir" || { said "no folder $dir: this node goes without swap"; exit 0; }
size=$(stat --format=%s "$file" 2>/dev/null || echo 0)
if [ "$size" -ne $((mib * 1024 * 1024)) ]; then
  swapoff "$file" 2>/dev/null
  rm -f "$file" "$file.new"
  read -r total free < <(df --block-size=1M --output=size,avail "$dir" | tail -n 1)
  if [ $((free - mib)) -lt $((total / 5)) ]; then
    said "$mib MiB would leave less than a fifth of $total MiB free: this node goes without swap"
    exit 0
  fi
  # Under another name until it is whole: a boot in between begins anew.
  if ! { fallocate --length "${mib}MiB" "$file.new" && chmod 600 "$file.new" && mkswap "$file.new" >/dev/null && mv "$file.new" "$file"; }; then
    rm -f "$file.new"
    said "the file cannot be made: this node goes without swap"
    exit 0
  fi
fi
swapon --show=NAME --noheadings | grep -qxF "$file" || swapon "$file" || said "swapon failed: this node goes without swap"
exit 0
`

// unitOf returns the unit that enables swap before the kubelet starts, because the kubelet checks
// for swap then. The order also applies if the unit fails.
func unitOf(options v1alpha1.HighDensitySwapOptions) string {
	var condition, start string
	if options.SwapSource == v1alpha1.SwapSourceFile {
		start = fmt.Sprintf("ExecStart=-%s %s %d\n", swapScript, swapFile, *options.FileSizeMiB)
	} else {
		device := "/dev/disk/by-partlabel/" + options.PartitionLabel
		condition = "ConditionPathExists=" + device + "\n"
		// ExecCondition skips the unit if the partition is not formatted as swap. "-" ignores a
		// failure, such as of swap that is already on.
		start = fmt.Sprintf("ExecCondition=/usr/sbin/blkid --probe --match-token TYPE=swap %s\nExecStart=-/usr/sbin/swapon %s\n", device, device)
	}
	return "[Unit]\nDescription=Swap for virtual machines\nAfter=local-fs.target\nBefore=crio.service kubelet.service\n" + condition +
		"\n[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=5min\n" + start +
		"\n[Install]\nWantedBy=multi-user.target\n"
}

// ignition returns the Ignition configuration of nodes.
func ignition(options v1alpha1.HighDensitySwapOptions, dropIns bool) map[string]any {
	var files []any
	if dropIns {
		files = append(files, file(dropInFile, 0o644, kubeletConf))
	}
	if options.SwapSource == v1alpha1.SwapSourceFile {
		files = append(files, file(swapScript, 0o755, script))
	}
	config := map[string]any{
		"ignition": map[string]any{"version": ignitionVersion},
		"systemd": map[string]any{"units": []any{
			map[string]any{"name": swapUnit, "enabled": true, "contents": unitOf(options)},
			map[string]any{"name": slice, "dropins": []any{map[string]any{"name": sliceFile, "contents": systemSlice}}},
		}},
	}
	if len(files) > 0 {
		config["storage"] = map[string]any{"files": files}
	}
	return config
}

func file(path string, mode int64, content string) map[string]any {
	return map[string]any{
		"path": path, "mode": mode, "overwrite": true,
		"contents": map[string]any{"source": "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(content))},
	}
}
