package chart

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"helm.sh/helm/v4/pkg/ignore"

	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

const maxChartBytes = 64 << 20

// readFiles reads all files of a chart that .helmignore does not exclude.
func readFiles(fsys fs.FS) ([]template.File, error) {
	if _, err := fs.Stat(fsys, "Chart.yaml"); err != nil {
		return nil, errors.New("the file Chart.yaml is missing: is this the folder of a chart?")
	}
	rules, err := ignored(fsys)
	if err != nil {
		return nil, err
	}
	var files []template.File
	size := 0
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return err
		}
		switch {
		case rules.Ignore(name, info):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s: is neither a file nor a link to one", name)
		}
		data, err := readLimited(fsys, name, maxChartBytes-size)
		if err != nil {
			return err
		}
		size += len(data)
		files = append(files, template.File{Name: name, Data: data})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return files, nil
}

func ignored(fsys fs.FS) (*ignore.Rules, error) {
	rules := ignore.Empty()
	file, err := fsys.Open(ignore.HelmIgnore)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", ignore.HelmIgnore, err)
	default:
		defer file.Close()
		if rules, err = ignore.Parse(file); err != nil {
			return nil, fmt.Errorf("reading %s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	return rules, nil
}

func readLimited(fsys fs.FS, name string, limit int) ([]byte, error) {
	file, err := fsys.Open(path.Clean(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("the chart is larger than %d MiB", maxChartBytes>>20)
	}
	return data, err
}
