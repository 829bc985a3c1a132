// Command etcd is etcd's own main, built from its server module: the release
// repository's main lives in a module that the proxy cannot serve as a program.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
