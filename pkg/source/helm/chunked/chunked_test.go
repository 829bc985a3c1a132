package chunked

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// sharedData are Secrets that Helm's own actions wrote through operator-controller's driver.
const sharedData = "../../../../../shared/data/helm-releases/"

// secrets returns the Secrets of a file, and a function that finds them.
func secrets(t *testing.T, file string) ([]*corev1.Secret, func(string) (*corev1.Secret, error)) {
	t.Helper()
	raw, err := os.ReadFile(sharedData + file)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the samples are not there")
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []*corev1.Secret
	byName := map[string]*corev1.Secret{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		one := &corev1.Secret{}
		if err := decoder.Decode(one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if one.Name != "" {
			all, byName[one.Name] = append(all, one), one
		}
	}
	return all, func(name string) (*corev1.Secret, error) { return byName[name], nil }
}

// TestDecode: releases of operator-controller with chunks of any size can be decoded.
func TestDecode(t *testing.T) {
	for file, want := range map[string][]string{
		"one.yaml":            {"1 deployed"},
		"history.yaml":        {"1 superseded", "2 superseded", "3 deployed"},
		"failed-upgrade.yaml": {"1 deployed", "2 failed"},
		"failed-install.yaml": {"1 failed"},
		"chunked.yaml":        {"1 superseded", "2 deployed"},
	} {
		t.Run(file, func(t *testing.T) {
			all, find := secrets(t, file)
			var got []string
			for _, one := range all {
				if one.Type != IndexType {
					continue
				}
				release, err := Decode(one, find)
				if err != nil {
					t.Fatal(err)
				}
				if one.Name != Key(release.Name, release.Version) || release.Labels[PackageNameLabel] == "" || release.Labels[BundleVersionLabel] == "" {
					t.Errorf("%s has release %s, labels %v", one.Name, release.Name, release.Labels)
				}
				got = append(got, one.Labels[LabelVersion]+" "+release.Info.Status)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManifest: the manifest equals the sample, one object per line.
func TestManifest(t *testing.T) {
	all, find := secrets(t, "one.yaml")
	release, err := Decode(all[0], find)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(sharedData + "one.manifest.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), strings.TrimSpace(release.Manifest)); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

// TestNamesOfChunks: chunks have the same names as in operator-controller.
func TestNamesOfChunks(t *testing.T) {
	all, _ := secrets(t, "chunked.yaml")
	seen := 0
	for _, one := range all {
		if one.Type == ChunkType {
			seen++
			if got := chunkName(one.Labels[LabelKey], one.Data[DataKey]); got != one.Name {
				t.Errorf("the chunk %s would be named %s", one.Name, got)
			}
		}
	}
	if seen == 0 {
		t.Error("no chunk was seen")
	}
}

// TestEncode: an encoded release can be decoded, and has the labels of the samples.
func TestEncode(t *testing.T) {
	release := []byte(`{"name":"beacon","version":3,"namespace":"n","info":{"status":"deployed"},"manifest":"` + random(4000) + `"}`)
	options := Options{Namespace: "olmv1-system", Name: "beacon", Version: 3, Status: "deployed", CreatedAt: time.Unix(1795353079, 0), PieceBytes: 768}
	index, chunks, err := Encode(release, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(chunks) < 2 {
		t.Fatalf("%d chunks", len(chunks))
	}
	wantIndex := map[string]string{
		"owner": "operator-controller", "key": "sh.helm.release.v1.beacon.v3", "type": "index", "name": "beacon", "version": "3", "status": "deployed", "createdAt": "1795353079",
	}
	if diff := cmp.Diff(wantIndex, index.Labels); diff != "" {
		t.Errorf("labels of the index (-want +got):\n%s", diff)
	}
	byName := map[string]*corev1.Secret{}
	for _, chunk := range chunks {
		OwnedBy(chunk, index.Name, "uid")
		byName[chunk.Name] = chunk
		want := map[string]string{"owner": "operator-controller", "key": index.Name, "type": "chunk", "createdAt": "1795353079"}
		if diff := cmp.Diff(want, chunk.Labels); diff != "" {
			t.Errorf("labels of a chunk (-want +got):\n%s", diff)
		}
	}
	find := func(name string) (*corev1.Secret, error) { return byName[name], nil }
	got, err := Decode(index, find)
	if err != nil || got.Name != "beacon" || got.Version != 3 || len(got.Manifest) != 4000 {
		t.Errorf("read again: %s %d, %d bytes, error %v", got.Name, got.Version, len(got.Manifest), err)
	}

	delete(byName, chunks[0].Name)
	var missing *MissingError
	if _, err := Decode(index, find); !errors.As(err, &missing) || missing.Chunk != chunks[0].Name {
		t.Errorf("without a chunk: %v", err)
	}
	options.PieceBytes = 64
	if _, _, err := Encode(release, options); err == nil || !strings.Contains(err.Error(), "at most 704") {
		t.Errorf("more than eleven pieces: %v", err)
	}
	if _, err := Decode(chunks[1], find); !errors.Is(err, ErrNoIndex) {
		t.Errorf("a chunk is no index: %v", err)
	}
}

// random returns text that compresses badly. It is the same in each run.
func random(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	out, state := make([]byte, n), uint32(1)
	for i := range out {
		state = state*1664525 + 1013904223
		out[i] = letters[state>>26]
	}
	return string(out)
}
