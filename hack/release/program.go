package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// platform is a platform with Go's names.
type platform struct{ system, architecture string }

func (p platform) String() string { return p.system + "/" + p.architecture }

func (p platform) file(name string) string {
	if p.system == "windows" {
		return name + ".exe"
	}
	return name
}

type sources struct {
	root, version, revision string
	// created is the time of the last commit, so that the same commit gives the same files.
	created time.Time
}

// modified ends the revision of a checkout with uncommitted changes.
const modified = "-dirty"

func readSources(ctx context.Context, version string) (sources, error) {
	s := sources{root: ".", version: version, created: time.Unix(0, 0)}
	if _, err := os.Stat("go.mod"); err != nil {
		return s, fmt.Errorf("looking for the sources: run this at the top of the checkout: %w", err)
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if out, err := git(ctx, "log", "-1", "--format=%H %ct"); err == nil {
		revision, seconds, _ := strings.Cut(out, " ")
		s.revision = revision
		if epoch == "" {
			epoch = seconds
		}
	}
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return s, fmt.Errorf("SOURCE_DATE_EPOCH is %q: want seconds since 1970", epoch)
		}
		s.created = time.Unix(seconds, 0)
	}
	return s, nil
}

// committed returns an error if the checkout has uncommitted changes: a release names its commit,
// and must be reproducible from it. For versions that are not final, it prints a warning and marks
// the revision.
func (s *sources) committed(ctx context.Context) error {
	changes, err := git(ctx, "status", "--porcelain")
	// Without git, changes are unknown.
	if err != nil || changes == "" {
		return nil
	}
	first, _, _ := strings.Cut(changes, "\n")
	if version, err := semver.StrictNewVersion(strings.TrimPrefix(s.version, "v")); err == nil && version.Prerelease() == "" {
		return fmt.Errorf("making release %s: the checkout has changes that are in no commit (%s); commit or remove them, or choose a version such as %s-test", s.version, first, s.version)
	}
	fmt.Fprintf(os.Stderr, "warning: the checkout has changes that are in no commit: %s\n", first)
	s.revision += modified
	return nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("running git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// vacate removes a folder of an earlier run, which has a file with the name mark. Any other folder
// with content is an error, because the user may have mistyped its name.
func vacate(dir, mark string) error {
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking into %s: %w", dir, err)
	}
	if !slices.ContainsFunc(found, func(entry os.DirEntry) bool { return entry.Name() == mark }) {
		return fmt.Errorf("folder %s has files, and no %s: it was not made here, and is left alone", dir, mark)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing what was made before: %w", err)
	}
	return nil
}

// build compiles a program of cmd for a platform into a folder and returns its path. It uses the
// flags of all other builds here, so that they share caches.
func (s sources) build(ctx context.Context, name string, p platform, dir string) (string, error) {
	tags, err := os.ReadFile(filepath.Join(s.root, "hack", "tags"))
	if err != nil {
		return "", fmt.Errorf("reading the tags of a build: %w", err)
	}
	path := filepath.Join(dir, p.system+"-"+p.architecture, p.file(name))
	began := time.Now()
	fmt.Fprintf(os.Stderr, "building %s for %s\n", name, p)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags="+strings.TrimSpace(string(tags)),
		"-ldflags=-s -w -X main.version="+s.version, "-o", path, "./cmd/"+name)
	command.Dir, command.Stderr = s.root, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS="+p.system, "GOARCH="+p.architecture)
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("building %s for %s: %w", name, p, err)
	}
	fmt.Fprintf(os.Stderr, "  %.0f s\n", time.Since(began).Seconds())
	return path, nil
}
