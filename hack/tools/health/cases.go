package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// scriptPrefix begins the keys of scripts in Argo CD's ConfigMap.
const scriptPrefix = "resource.customizations.health."

// caseFile has cases of one kind.
type caseFile struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Cases      []testCase `json:"cases"`
}

// testCase is an object, and what is said of it. Flux is asked when there is an answer.
type testCase struct {
	Name    string         `json:"name"`
	Object  map[string]any `json:"object"`
	Argo    string         `json:"argo"`
	Message string         `json:"message"`
	Kstatus string         `json:"kstatus"`
	Flux    string         `json:"flux"`
}

// run does all cases of a folder, and returns how many there are.
func run(folder string) (int, error) {
	var config struct {
		Data map[string]string `json:"data"`
	}
	if err := read(filepath.Join(folder, "argocd-cm.yaml"), &config); err != nil {
		return 0, err
	}
	var kustomization kustomization
	if err := read(filepath.Join(folder, "flux-kustomization.yaml"), &kustomization); err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "tests", "*.yaml"))
	if err != nil {
		return 0, err
	}
	untried := maps.Clone(config.Data)
	var errs []error
	tried := 0
	for _, name := range files {
		var file caseFile
		if err := read(name, &file); err != nil {
			return tried, err
		}
		group, _, _ := strings.Cut(file.APIVersion, "/")
		key := scriptPrefix + group + "_" + file.Kind
		delete(untried, key)
		for _, one := range file.Cases {
			tried++
			one.Object["apiVersion"], one.Object["kind"] = file.APIVersion, file.Kind
			if err := one.judge(config.Data[key], kustomization); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", name, one.Name, err))
			}
		}
	}
	if len(untried) > 0 {
		errs = append(errs, fmt.Errorf("no test has %v", slices.Sorted(maps.Keys(untried))))
	}
	return tried, errors.Join(errs...)
}

// judge compares the answers of Argo CD, kstatus and Flux with the expected ones.
func (c testCase) judge(script string, kustomization kustomization) error {
	var errs []error
	health, message, err := argo(script, c.Object)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("Argo CD: %w", err))
	case health != c.Argo || c.Message != "" && message != c.Message:
		errs = append(errs, fmt.Errorf("Argo CD says %s (%s), want %s (%s)", health, message, c.Argo, c.Message))
	}
	object := &unstructured.Unstructured{Object: c.Object}
	result, err := status.Compute(object)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("kstatus: %w", err))
	case string(result.Status) != c.Kstatus:
		errs = append(errs, fmt.Errorf("kstatus says %s (%s), want %s", result.Status, result.Message, c.Kstatus))
	}
	if c.Flux != "" {
		said, err := kustomization.judge(object)
		if err != nil || said != c.Flux {
			errs = append(errs, fmt.Errorf("the expressions for Flux say %q, want %s (error: %v)", said, c.Flux, err))
		}
	}
	return errors.Join(errs...)
}

func read(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	encoded, err := yaml.YAMLToJSON(content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	// Numbers are int64, as in objects that come from a cluster.
	if err := json.Unmarshal(encoded, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
