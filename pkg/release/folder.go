package release

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func (v *verification) has(name string) bool {
	info, err := os.Stat(filepath.Join(v.dir, name))
	return err == nil && info.Mode().IsRegular()
}

// open opens a regular file. Reading a named pipe would never end.
func (v *verification) open(name string) (*os.File, error) {
	file := filepath.Join(v.dir, name)
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	return opened, nil
}

func (v *verification) read(name string, largest int64) ([]byte, error) {
	file, err := v.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	if int64(len(content)) > largest {
		return nil, fmt.Errorf("%s has more than %d bytes", name, largest)
	}
	return content, nil
}

// ParseSums parses the output of sha256sum. Names must be of files in the folder itself.
func ParseSums(content []byte) (map[string]string, error) {
	sums, n := map[string]string{}, 0
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		n++
		hash, name, is := strings.Cut(lines.Text(), "  ")
		raw, err := hex.DecodeString(hash)
		if !is || err != nil || len(raw) != sha256.Size || name != filepath.Base(name) || name == "." || name == ".." || sums[name] != "" {
			return nil, fmt.Errorf("line %d of %s is %q: want the SHA-256, two spaces and the name of a file, each file once", n, Checksums, lines.Text())
		}
		sums[name] = hash
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading line %d of %s: %w", n+1, Checksums, err)
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("%s is empty", Checksums)
	}
	return sums, nil
}

func (v *verification) sum(name string) (string, error) {
	content, err := v.open(name)
	if err != nil {
		return "", err
	}
	defer content.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
