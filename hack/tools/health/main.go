// Command health tests what tools that keep a cluster as a repository says take for healthy:
//
//	health artifacts/gitops
//
// Of each case in the folder's tests it evaluates the script for Argo CD, with an interpreter
// that has what Argo CD gives to scripts; asks kstatus, by which Flux and Helm judge; and
// evaluates the expressions for Flux. A script without a case is an error.
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
