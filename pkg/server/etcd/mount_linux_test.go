package etcd

import (
	"errors"
	"syscall"
)

func mountSmall(dir, size string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
}

func mountReadOnly(dir string) error {
	return errors.Join(syscall.Mount(dir, dir, "", syscall.MS_BIND, ""),
		syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
}

func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }
