// Command release creates the files of a release. It runs at the root of a checkout, and needs Go
// and git, but no daemon and no other machine.
//
//	release image -version V -out DIR    the image, in OCI layout
//	release all -version V -out DIR      archives, chart, image, checksums, notes
//
// The same commit and version give the same files, byte for byte. Signatures by -key and -pgp-key
// are in separate files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want: release image|all -version VERSION -out FOLDER")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	version := flags.String("version", "", "version of what is made")
	out := flags.String("out", "", "folder for it")
	only := flags.String("platforms", "", "platforms, with commas between them, all by default; for instance linux/amd64")
	key := flags.String("key", "", "private key in PEM that signs checksums, provenance and image")
	pgp := flags.String("pgp-key", "", "secret key of OpenPGP that signs the chart")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *version == "" || *out == "" || flags.NArg() > 0 {
		return fmt.Errorf("%s needs -version and -out, and nothing else", args[0])
	}
	s, err := readSources(ctx, *version)
	if err != nil {
		return err
	}
	// Programs are kept next to the output, so that unchanged programs are not linked again.
	scratch := filepath.Join(filepath.Dir(filepath.Clean(*out)), "programs")
	switch args[0] {
	case "image":
		platforms, err := parsePlatforms(*only, imagePlatforms())
		if err != nil {
			return err
		}
		digest, err := s.image(ctx, *out, scratch, platforms)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", *out, digest)
		return nil
	case "all":
		platforms, err := parsePlatforms(*only, pluginPlatforms())
		if err != nil {
			return err
		}
		by, err := readSigners(*key, *pgp)
		if err != nil {
			return err
		}
		return s.release(ctx, *out, scratch, platforms, by)
	}
	return fmt.Errorf("%q: want image or all", args[0])
}

// parsePlatforms parses a comma-separated list; empty means all platforms.
func parsePlatforms(list string, all []platform) ([]platform, error) {
	if list == "" {
		return all, nil
	}
	var found []platform
	for word := range strings.SplitSeq(list, ",") {
		system, architecture, _ := strings.Cut(word, "/")
		p := platform{system, architecture}
		if !slices.Contains(all, p) {
			return nil, fmt.Errorf("platform %q: want of %v", word, all)
		}
		found = append(found, p)
	}
	return found, nil
}
