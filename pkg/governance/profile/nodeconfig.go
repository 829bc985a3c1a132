package profile

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Files of nodes that show the configuration of their kubelet.
const (
	// KubeletConfigFile is the configuration of the kubelet.
	KubeletConfigFile = "/etc/kubernetes/kubelet.conf"
	// KubeletDropIns is the folder of drop-in files for the kubelet's configuration. The kubelet
	// reads it only with a command-line flag.
	KubeletDropIns = "/etc/openshift/kubelet.conf.d"
	kubeletUnit    = "kubelet.service"
	// summaryField, below spec.config, has the result of Summarize.
	summaryField = "summary"
	// maxFileBytes bounds the unpacked content of a file. Files of nodes are small.
	maxFileBytes = 4 << 20
)

// NodeConfig has the parts of a MachineConfig that show whether nodes have the
// configuration of a plan.
type NodeConfig struct {
	// Files by path and Units by name, with digests of their content.
	Files map[string]string `json:"files,omitempty"`
	Units map[string]string `json:"units,omitempty"`
	// DropIns is true if the kubelet reads KubeletDropIns.
	DropIns bool `json:"dropIns,omitempty"`
	// ToleratesSwap is true if the kubelet starts on a node with swap.
	ToleratesSwap bool `json:"toleratesSwap,omitempty"`
	// Known is true if the MachineConfig has the kubelet's unit or configuration. Rendered
	// MachineConfigs have them; MachineConfigs with a single purpose do not.
	Known bool `json:"known,omitempty"`
}

// Summarize replaces the files and units of a MachineConfig, which are most of its size, with the
// result of NodeConfigOf.
func Summarize(config *unstructured.Unstructured) {
	if _, found, _ := unstructured.NestedFieldNoCopy(config.Object, "spec", "config"); !found {
		return
	}
	summary, err := json.Marshal(NodeConfigOf(config))
	if err != nil {
		return // it has only strings and maps
	}
	_ = unstructured.SetNestedField(config.Object, map[string]any{summaryField: string(summary)}, "spec", "config")
}

// NodeConfigOf reads a complete or a summarized MachineConfig. It omits unreadable parts.
func NodeConfigOf(config *unstructured.Unstructured) NodeConfig {
	out := NodeConfig{Files: map[string]string{}, Units: map[string]string{}}
	if config == nil {
		return out
	}
	if summary, found, _ := unstructured.NestedString(config.Object, "spec", "config", summaryField); found {
		_ = json.Unmarshal([]byte(summary), &out)
		return out
	}
	files, _, _ := unstructured.NestedSlice(config.Object, "spec", "config", "storage", "files")
	for _, item := range files {
		file, _ := item.(map[string]any)
		path, _ := file["path"].(string)
		content, err := contentOf(file)
		if path == "" || err != nil {
			continue
		}
		out.Files[path] = digestOf(content, file["mode"])
		if path == KubeletConfigFile {
			out.Known, out.ToleratesSwap = true, toleratesSwap(content)
		}
	}
	units, _, _ := unstructured.NestedSlice(config.Object, "spec", "config", "systemd", "units")
	for _, item := range units {
		unit, _ := item.(map[string]any)
		name, _ := unit["name"].(string)
		content, _ := unit["contents"].(string)
		if name == kubeletUnit && content != "" {
			out.Known, out.DropIns = true, strings.Contains(content, "--config-dir="+KubeletDropIns) || strings.Contains(content, "--config-dir "+KubeletDropIns)
		}
		enabled, _ := unit["enabled"].(bool)
		out.Units[name] = digestOf([]byte(content), enabled)
		dropIns, _, _ := unstructured.NestedSlice(unit, "dropins")
		for _, item := range dropIns {
			dropIn, _ := item.(map[string]any)
			text, _ := dropIn["contents"].(string)
			out.Units[fmt.Sprintf("%s.d/%v", name, dropIn["name"])] = digestOf([]byte(text), nil)
		}
		if len(dropIns) > 0 && content == "" {
			delete(out.Units, name) // only a drop-in for a unit of another MachineConfig
		}
	}
	return out
}

// Has reports whether a configuration has all files and units of another configuration, with the
// same content.
func (n NodeConfig) Has(other NodeConfig) bool {
	for path, digest := range other.Files {
		if n.Files[path] != digest {
			return false
		}
	}
	for name, digest := range other.Units {
		if n.Units[name] != digest {
			return false
		}
	}
	return true
}

// toleratesSwap reports whether failSwapOn is false; its default is true.
func toleratesSwap(kubelet []byte) bool {
	var config struct {
		FailSwapOn *bool `json:"failSwapOn"`
	}
	return yaml.Unmarshal(kubelet, &config) == nil && config.FailSwapOn != nil && !*config.FailSwapOn
}

// contentOf unpacks an Ignition file: a data URL, which may be compressed.
func contentOf(file map[string]any) ([]byte, error) {
	source, _, _ := unstructured.NestedString(file, "contents", "source")
	head, data, found := strings.Cut(strings.TrimPrefix(source, "data:"), ",")
	if !found {
		return nil, nil // an empty file, or a file from another address
	}
	var content []byte
	if strings.HasSuffix(head, ";base64") {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, fmt.Errorf("reading a data URL: %w", err)
		}
		content = decoded
	} else {
		decoded, err := url.PathUnescape(data)
		if err != nil {
			return nil, fmt.Errorf("reading a data URL: %w", err)
		}
		content = []byte(decoded)
	}
	if compression, _, _ := unstructured.NestedString(file, "contents", "compression"); compression == "gzip" {
		unpacked, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("unpacking a file: %w", err)
		}
		// A larger file is identified by its compressed content, because two large files can have
		// the same beginning.
		if plain, err := io.ReadAll(io.LimitReader(unpacked, maxFileBytes+1)); err != nil || len(plain) <= maxFileBytes {
			return plain, err
		}
	}
	return content, nil
}

func digestOf(content []byte, more any) string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%v\n", more)
	_, _ = sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
