//go:build !linux

package etcd

// unmapPages is for Linux, where etcd reads the whole file when it starts.
func unmapPages(string) error { return nil }
