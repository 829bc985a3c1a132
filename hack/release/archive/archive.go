// Package archive packs files so that the same files give the same archive.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a file of an archive.
type File struct {
	// Name is the path in the archive, with slashes.
	Name string
	// Path is the path of the content.
	Path string
	// Program is true for an executable file.
	Program bool
}

// Folder returns all files below a folder, for an archive in which the folder has the given name.
func Folder(dir, name string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(found string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, found)
		files = append(files, File{Name: path.Join(name, filepath.ToSlash(relative)), Path: found})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	return files, nil
}

// Write writes a compressed archive of files, sorted by name. All files belong to root and have the
// same time.
func Write(target string, files []File, created time.Time) (err error) {
	out, err := os.Create(target)
	if err != nil {
		return fmt.Errorf("making an archive: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed := gzip.NewWriter(out)
	into := tar.NewWriter(packed)
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for _, file := range files {
		if err := add(into, file, created); err != nil {
			return fmt.Errorf("packing %s into %s: %w", file.Path, target, err)
		}
	}
	return errors.Join(into.Close(), packed.Close())
}

func add(into *tar.Writer, file File, created time.Time) error {
	content, err := os.Open(file.Path)
	if err != nil {
		return err
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: file.Name, Mode: 0o644, Size: info.Size(), ModTime: created.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if file.Program {
		header.Mode = 0o755
	}
	if err := into.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(into, content)
	return err
}

// List returns the names and modes in an archive.
func List(source string) (map[string]fs.FileMode, error) {
	file, err := os.Open(source)
	if err != nil {
		return nil, fmt.Errorf("reading an archive: %w", err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", source, err)
	}
	from, found := tar.NewReader(unpacked), map[string]fs.FileMode{}
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", source, err)
		}
		found[header.Name] = header.FileInfo().Mode()
	}
}

// Sum returns the SHA-256 of a file, as sha256sum prints it.
func Sum(source string) (string, error) {
	file, err := os.Open(source)
	if err != nil {
		return "", fmt.Errorf("reading what to sum up: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("summing up %s: %w", source, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Sums returns the checksums of a folder's files in the format of sha256sum --check. It omits names
// for which except is true.
func Sums(dir string, except func(name string) bool) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("listing what to sum up: %w", err)
	}
	var out strings.Builder
	for _, entry := range entries {
		if !entry.Type().IsRegular() || except(entry.Name()) {
			continue
		}
		sum, err := Sum(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, entry.Name())
	}
	return out.String(), nil
}
