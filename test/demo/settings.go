package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/framework/plane"
)

const (
	defaultName    = "lighthouse"
	defaultSilence = 60 * time.Second
	maxSilence     = time.Hour
)

type settings struct {
	// From, To and Stuck are directories of manifests, as written on the command line. Without an
	// upgrade, To is empty. If Stuck is empty, the stuck upgrade is derived from the newest other
	// version.
	From, To, Stuck string
	// Plans is the directory of the ConfigurationPlan example.
	Plans string
	// Name of the extension.
	Name string
	// Silence is the time to wait for unexpected requests at the end.
	Silence time.Duration
	// Keep leaves everything running.
	Keep bool
	// Penstock is the absolute path of the program.
	Penstock string
	// Image is the folder of a Penstock image in OCI layout. If it is set, its program runs from
	// its files, as the Pod of artifacts/deploy/embedded.
	Image string
	// Fleet runs only the acts about many clusters.
	Fleet bool
	// Acts is the number of acts to run, from the first; 0 runs all.
	Acts int
}

// readSettings reads the environment. Directories are relative to the working directory; the
// defaults are in the surrounding checkout.
func readSettings(getenv func(string) string) (settings, error) {
	root, err := plane.Root()
	if err != nil {
		return settings{}, err
	}
	here, err := os.Getwd()
	if err != nil {
		return settings{}, fmt.Errorf("finding the working directory: %w", err)
	}
	if root, err = filepath.Rel(here, root); err != nil {
		return settings{}, fmt.Errorf("finding the checkout: %w", err)
	}
	s, err := parseSettings(getenv, root)
	if err != nil {
		return settings{}, err
	}
	return s, s.check()
}

// parseSettings parses the environment without reading any file.
func parseSettings(getenv func(string) string, root string) (settings, error) {
	s := settings{
		From: getenv("FROM"), To: getenv("TO"), Name: getenv("NAME"), Silence: defaultSilence,
		Penstock: getenv("PENSTOCK"), Image: getenv("IMAGE"), Plans: filepath.Join(root, "artifacts", "examples", "rebalancing"),
	}
	var errs []error
	switch value := getenv("FLEET"); value {
	case "", "0":
	case "1":
		s.Fleet = true
	default:
		errs = append(errs, fmt.Errorf("FLEET is %q: want 1 for the acts about many clusters, or nothing", value))
	}
	switch {
	case s.Fleet && (s.From != "" || s.To != "" || s.Name != "" || s.Image != ""):
		errs = append(errs, errors.New("FLEET=1 brings its own manifests and program: leave FROM, TO, NAME and IMAGE out"))
	case s.Fleet:
		s.Name = fleetName
	case s.From == "" && (s.To != "" || s.Name != ""):
		errs = append(errs, errors.New("FROM is missing: with TO or NAME give FROM, the directory of manifests to install"))
	case s.From == "":
		examples := filepath.Join(root, "artifacts", "examples", "lighthouse")
		s.Name = defaultName
		s.From, s.To = filepath.Join(examples, "v1.0.0"), filepath.Join(examples, "v1.1.0")
		s.Stuck = filepath.Join(examples, "v1.2.0-stuck")
	case s.Name == "":
		errs = append(errs, errors.New("NAME is missing: with FROM give NAME, what to call the extension"))
	}
	if s.Penstock == "" {
		s.Penstock = filepath.Join(root, "bin", "penstock")
	}
	if value := getenv("SILENCE"); value != "" {
		seconds, err := strconv.Atoi(strings.TrimSuffix(value, "s"))
		s.Silence = time.Duration(seconds) * time.Second
		if err != nil || s.Silence < time.Second || s.Silence > maxSilence {
			errs = append(errs, fmt.Errorf("SILENCE is %q: want whole seconds, 1 to %d", value, int(maxSilence.Seconds())))
		}
	}
	if value := getenv("ACTS"); value != "" {
		number, err := strconv.Atoi(value)
		s.Acts = number
		if most := len(s.acts()); err != nil || number < 1 || number > most {
			errs = append(errs, fmt.Errorf("ACTS is %q: want how many to play, 1 to %d", value, most))
		}
	}
	switch value := getenv("KEEP"); value {
	case "", "0":
	case "1":
		s.Keep = true
	default:
		errs = append(errs, fmt.Errorf("KEEP is %q: want 1 to leave everything running, or nothing", value))
	}
	return s, errors.Join(errs...)
}

func (s *settings) acts() []act {
	if s.Fleet {
		return fleetActs()
	}
	return acts()
}

func (s *settings) check() error {
	var errs []error
	for _, dir := range []struct{ variable, path string }{{"FROM", s.From}, {"TO", s.To}, {"the stuck upgrade", s.Stuck}, {"IMAGE", s.Image}} {
		if dir.path == "" {
			continue
		}
		if info, err := os.Stat(dir.path); err != nil || !info.IsDir() {
			errs = append(errs, fmt.Errorf("%s: %s is not a directory", dir.variable, dir.path))
		}
	}
	path, err := filepath.Abs(s.Penstock)
	if err != nil {
		return fmt.Errorf("finding %s: %w", s.Penstock, err)
	}
	s.Penstock = path
	for _, program := range []string{path, filepath.Join(filepath.Dir(path), "kubectl-penstock")} {
		if info, err := os.Stat(program); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			errs = append(errs, fmt.Errorf("there is no program %s: run `make build`, or set PENSTOCK to one, with kubectl-penstock beside it", program))
		}
	}
	return errors.Join(errs...)
}
