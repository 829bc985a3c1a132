// Package bom writes the bill of materials of a Go program: its modules, with their hashes from
// go.sum.
//
// It reads the build information in the program, so it lists exactly the linked modules. It can
// read programs for any platform.
package bom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// Program is the program that the bill of materials describes.
type Program struct {
	// Path is the file. Name and Version are in the bill.
	Path, Name, Version string
	// Created is the time of the bill. It must be the time of the sources, so that builds are
	// reproducible.
	Created time.Time
}

// Of returns the bill of materials in CycloneDX 1.6, as JSON. The same program gives the same bill.
func Of(p Program) ([]byte, error) {
	info, err := buildinfo.ReadFile(p.Path)
	if err != nil {
		return nil, fmt.Errorf("reading which modules are in %s: %w", p.Path, err)
	}
	sum, err := digest(p.Path)
	if err != nil {
		return nil, err
	}
	made := cyclonedx.NewBOM()
	// The serial number depends only on the program.
	made.SerialNumber = "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceOID, sum).String()
	ref := reference(info.Main.Path, p.Version)
	made.Metadata = &cyclonedx.Metadata{
		Timestamp: p.Created.UTC().Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: ref, Type: cyclonedx.ComponentTypeApplication, Name: p.Name, Version: p.Version, PackageURL: ref,
			Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}},
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		},
	}
	components := []cyclonedx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, module := range info.Deps {
		components = append(components, dependency(module))
	}
	uses := make([]string, len(components))
	for i, component := range components {
		uses[i] = component.BOMRef
	}
	made.Components, made.Dependencies = &components, &[]cyclonedx.Dependency{{Ref: ref, Dependencies: &uses}}
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(made, cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing the bill of materials of %s: %w", p.Path, err)
	}
	return out.Bytes(), nil
}

func dependency(module *debug.Module) cyclonedx.Component {
	if module.Replace != nil {
		module = module.Replace
	}
	return library(module.Path, module.Version, module.Sum)
}

// library returns the component of a module. sum is the hash in go.sum, or empty.
func library(path, version, sum string) cyclonedx.Component {
	ref := reference(path, version)
	found := cyclonedx.Component{BOMRef: ref, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: ref, Scope: cyclonedx.ScopeRequired}
	// "h1:" is the SHA-256 of the hashes of all files, in base64.
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(raw) == sha256.Size {
		found.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
	}
	return found
}

// reference returns a package URL. Versions of Go modules may contain a plus sign, which must be
// escaped.
func reference(path, version string) string {
	if version == "" {
		return "pkg:golang/" + path
	}
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

func digest(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a program: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return hash.Sum(nil), nil
}
