// Command image serves a registry on this machine, and creates images from folders, for
// docs/how-to/use-a-catalog.md:
//
//	image serve DIR            serves from memory until it is interrupted; writes the files
//	                           that clients need to DIR
//	image push DIR FOLDER REF  makes an image of a folder, and pushes it to the registry
//	                           whose files are in DIR
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/penstock-project/penstock/test/framework/registry"
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
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch {
	case verb == "serve":
		return serve(ctx, args)
	case verb == "push" && len(args) == 3:
		return push(ctx, args[0], args[1], args[2])
	}
	return errors.New("want: image serve [-listen ADDRESS] [-user NAME] [-password WORD] [-mirror-of HOST] DIR, or image push DIR FOLDER REFERENCE")
}

func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	options := registry.Options{}
	flags.StringVar(&options.Listen, "listen", "127.0.0.1:5443", "address on loopback")
	flags.StringVar(&options.User, "user", "me", "who may read and write; empty is everybody")
	flags.StringVar(&options.Password, "password", "lamp", "password of the user")
	flags.StringVar(&options.MirrorOf, "mirror-of", "registry.example.com", "registry whose images are looked for here")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("serve needs the folder for its files")
	}
	dir, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	served, err := registry.Start(dir, options)
	if err != nil {
		return err
	}
	fmt.Printf("serving https://%s; in %s are %s, %s, %s and %s\n", served.Host, dir, registry.CAFile, registry.CertsDir, registry.AuthFile, registry.MirrorsFile)
	return served.Wait(ctx)
}

func push(ctx context.Context, dir, folder, ref string) error {
	image, err := registry.FromFolder(folder)
	if err != nil {
		return err
	}
	if err := registry.Push(ctx, dir, ref, image); err != nil {
		return err
	}
	fmt.Printf("pushed a %s: %s, %s\n", image.Kind, ref, image.Digest())
	return nil
}
