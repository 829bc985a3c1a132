// Command health tests what tools that keep a cluster as a repository says take for healthy:
//
//	health artifacts/gitops
//
// For each case in the folder's tests it runs the script for Argo CD in an interpreter set up
// as Argo CD's is, asks kstatus, by which Flux and Helm judge, and asks Flux's own evaluator of
// health expressions. A script without a case is an error.
//
// Argo CD's own evaluator cannot be imported: its module replaces a module of a nested folder
// that is not published.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: health FOLDER")
		os.Exit(2)
	}
	tried, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d objects are as healthy as their tests say\n", tried)
}
