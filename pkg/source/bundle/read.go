package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// The layout of a bundle. Annotations that name other folders are ignored, because images with
// other folders do not work with OLM v1 either.
const (
	manifestsFolder  = "manifests"
	annotationsFile  = "metadata/annotations.yaml"
	propertiesFile   = "metadata/properties.yaml"
	dependenciesFile = "metadata/dependencies.yaml"

	packageAnnotation   = "operators.operatorframework.io.bundle.package.v1"
	mediaTypeAnnotation = "operators.operatorframework.io.bundle.mediatype.v1"
	mediaType           = "registry+v1"

	// propertiesAnnotation of a ClusterServiceVersion also has properties.
	propertiesAnnotation = "olm.properties"

	// maxMetadataBytes limits each file of metadata.
	maxMetadataBytes = 4 << 20
)

type contents struct {
	packageName string
	csv         csv
	csvFile     directory.Located
	definitions []directory.Located
	extras      []directory.Located
	// properties has first the properties of the ClusterServiceVersion, then the properties of
	// properties.yaml.
	properties []source.Property
	// annotated is the number of properties from the ClusterServiceVersion.
	annotated    int
	requirements []source.Requirement
	// warnings are in the order in which they were found.
	warnings []source.Warning
}

const csvAPI = "operators.coreos.com/v1alpha1"

func (c *contents) warn(of directory.Located, field []any, format string, args ...any) {
	c.warnings = append(c.warnings, source.Warning{File: of.File, Line: of.LineAt(field...), Message: fmt.Sprintf("%s %s: %s", of.Kind, of.Name, fmt.Sprintf(format, args...))})
}

func read(ctx context.Context, fsys fs.FS) (*contents, error) {
	var c contents
	if err := c.readAnnotations(fsys); err != nil {
		return nil, err
	}
	if err := c.readManifests(ctx, fsys); err != nil {
		return nil, err
	}
	if err := c.readProperties(fsys); err != nil {
		return nil, err
	}
	dependencies, err := readDependencies(fsys)
	if err != nil {
		return nil, err
	}
	c.requirements, err = c.readRequirements(dependencies)
	return &c, err
}

// readAnnotations reads the name of the package. A validator requires it.
func (c *contents) readAnnotations(fsys fs.FS) error {
	var file struct {
		Annotations map[string]string `json:"annotations"`
	}
	found, err := readMetadata(fsys, annotationsFile, &file)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%s is missing: it names the package; is this the folder of a bundle, with manifests/ and metadata/?", annotationsFile)
	}
	if got := file.Annotations[mediaTypeAnnotation]; got != "" && got != mediaType {
		return fmt.Errorf("%s: %s is %q, want %s: bundles of other formats are not rendered", annotationsFile, mediaTypeAnnotation, got, mediaType)
	}
	c.packageName = file.Annotations[packageAnnotation]
	return nil
}

// readManifests reads the manifests, and sorts them into the ClusterServiceVersion, definitions,
// and the rest.
func (c *contents) readManifests(ctx context.Context, fsys fs.FS) error {
	if err := refuseSubfolders(fsys); err != nil {
		return err
	}
	folder, err := fs.Sub(fsys, manifestsFolder)
	if err != nil {
		return fmt.Errorf("reading %s: %w", manifestsFolder, err)
	}
	located, err := directory.Read(ctx, folder, directory.Options{AnyName: true, Unchecked: true})
	if err != nil {
		return inManifests(err)
	}
	var versions []directory.Located
	for i := range located {
		located[i].File = path.Join(manifestsFolder, located[i].File)
		switch object := located[i]; {
		case object.Kind == "ClusterServiceVersion":
			// As in OLM v1, only the kind matters: some bundles have another apiVersion.
			if object.APIVersion() != csvAPI {
				c.warn(object, []any{"apiVersion"}, "apiVersion is %s, and is taken for %s", object.APIVersion(), csvAPI)
			}
			versions = append(versions, object)
		case object.IsDefinition():
			c.definitions = append(c.definitions, object)
		default:
			c.extras = append(c.extras, object)
		}
	}
	switch len(versions) {
	case 0:
		return fmt.Errorf("%s: no ClusterServiceVersion found: a bundle has exactly one", manifestsFolder)
	case 1:
		c.csvFile = versions[0]
	default:
		return fail(versions[1], versions[1].Line, "ClusterServiceVersion %s: %s is already at %s:%d: a bundle has exactly one",
			versions[1].Name, versions[0].Name, versions[0].File, versions[0].Line)
	}
	if err := decode(c.csvFile.JSON, &c.csv); err != nil {
		return fail(c.csvFile, c.csvFile.Line, "ClusterServiceVersion %s: cannot be read: %v", c.csvFile.Name, err)
	}
	return nil
}

func refuseSubfolders(fsys fs.FS) error {
	entries, err := fs.ReadDir(fsys, manifestsFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing: is this the folder of a bundle, with manifests/ and metadata/?", manifestsFolder)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", manifestsFolder, err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			return fmt.Errorf("%s is a folder: a bundle has all its manifests in %s itself", path.Join(manifestsFolder, entry.Name()), manifestsFolder)
		}
	}
	return nil
}

// inManifests makes file names in errors relative to the bundle's root.
func inManifests(err error) error {
	var all *directory.Errors
	if errors.As(err, &all) {
		for _, one := range all.List {
			one.File = path.Join(manifestsFolder, one.File)
		}
		return err
	}
	return fmt.Errorf("%s: %w", manifestsFolder, err)
}

// readProperties reads the properties of the ClusterServiceVersion's annotation and of the file. It
// writes all of them into the annotation, which is also added to pods.
func (c *contents) readProperties(fsys fs.FS) error {
	annotation := c.csv.Metadata.Annotations[propertiesAnnotation]
	if annotation != "" {
		if err := json.Unmarshal([]byte(annotation), &c.properties); err != nil {
			return fail(c.csvFile, c.csvFile.LineAt("metadata", "annotations", propertiesAnnotation),
				"ClusterServiceVersion %s: metadata.annotations[%s]: not a JSON list of {type, value}: %v", c.csvFile.Name, propertiesAnnotation, err)
		}
	}
	c.annotated = len(c.properties)
	var file struct {
		Properties []source.Property `json:"properties"`
	}
	if _, err := readMetadata(fsys, propertiesFile, &file); err != nil {
		return err
	}
	if len(file.Properties) == 0 {
		return nil
	}
	c.properties = append(c.properties, file.Properties...)
	all, err := json.Marshal(c.properties)
	if err != nil {
		return fmt.Errorf("%s: %w", propertiesFile, err)
	}
	if c.csv.Metadata.Annotations == nil {
		c.csv.Metadata.Annotations = map[string]string{}
	}
	c.csv.Metadata.Annotations[propertiesAnnotation] = string(all)
	return nil
}

// readMetadata reads one YAML file, and reports whether it exists.
func readMetadata(fsys fs.FS, name string, into any) (found bool, err error) {
	file, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", name, err)
	}
	defer file.Close()
	var text bytes.Buffer
	if n, err := text.ReadFrom(io.LimitReader(file, maxMetadataBytes+1)); err != nil {
		return false, fmt.Errorf("reading %s: %w", name, err)
	} else if n > maxMetadataBytes {
		return false, fmt.Errorf("%s: larger than %d MiB", name, maxMetadataBytes>>20)
	}
	if err := yaml.Unmarshal(text.Bytes(), into); err != nil {
		return false, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "))
	}
	return true, nil
}

func fail(at directory.Located, line int, format string, args ...any) error {
	return &directory.Errors{List: []*directory.Error{{File: at.File, Line: line, Message: fmt.Sprintf(format, args...)}}}
}

func (c *contents) refuse(of directory.Located, field []any, format string, args ...any) error {
	return fail(of, of.LineAt(field...), "%s %s: %s", of.Kind, of.Name, fmt.Sprintf(format, args...))
}

// raw decodes a manifest, so that it can be changed.
func raw(object manifest.Object) (map[string]any, error) {
	var content map[string]any
	if err := decode(object.JSON, &content); err != nil {
		return nil, fmt.Errorf("%s: %w", object.ID, err)
	}
	return content, nil
}
