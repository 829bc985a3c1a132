package fbc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	ignore "github.com/sabhiram/go-gitignore"
)

// ignoreFile lists files in its folder and below that are not part of the catalog, in the grammar
// of .gitignore.
const ignoreFile = ".indexignore"

// ReadDirectory reads all files of a directory and its subdirectories, in the order of their names.
// Any file name counts; only files that an .indexignore lists are skipped.
func ReadDirectory(ctx context.Context, root fs.FS, limits Limits, found func(*Document) error) error {
	r := &reader{limits: limits, found: found}
	rules := map[string]*ignore.GitIgnore{}
	return fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return &Error{File: name, Err: err}
		}
		if ignored(rules, name) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			own, err := readIgnore(root, path.Join(name, ignoreFile))
			rules[name] = own
			return err
		}
		if entry.Name() == ignoreFile {
			return nil
		}
		return r.open(ctx, root, name)
	})
}

func (r *reader) open(ctx context.Context, root fs.FS, name string) error {
	file, err := root.Open(name)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return &Error{File: name, Err: err}
	}
	if !info.Mode().IsRegular() {
		return &Error{File: name, Err: fmt.Errorf("is %s, want a regular file", info.Mode().Type())}
	}
	return r.file(ctx, file, name)
}

func readIgnore(root fs.FS, name string) (*ignore.GitIgnore, error) {
	file, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{File: name, Err: err}
	}
	defer file.Close()
	var lines []string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		return nil, &Error{File: name, Err: err}
	}
	return ignore.CompileIgnoreLines(lines...), nil
}

// ignored reports whether the rules of the parent folders exclude a file. The deepest rule wins.
func ignored(rules map[string]*ignore.GitIgnore, name string) bool {
	verdict := false
	for folder, rest := ".", name; rest != ""; {
		if own := rules[folder]; own != nil {
			if matches, rule := own.MatchesPathHow(rest); rule != nil {
				verdict = matches
			}
		}
		first, below, deeper := strings.Cut(rest, "/")
		if !deeper {
			break
		}
		folder, rest = path.Join(folder, first), below
	}
	return verdict
}
