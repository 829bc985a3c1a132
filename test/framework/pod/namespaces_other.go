//go:build !linux

package pod

import (
	"errors"
	"syscall"
)

func attributes(bool) *syscall.SysProcAttr { return nil }

// Namespaces returns an error: only Linux has the namespaces of containers.
func Namespaces() error { return errors.New("only Linux has the namespaces of containers") }

// Confined returns an error: only Linux has the namespaces of containers.
func Confined(int) error { return errors.New("only Linux has the namespaces of containers") }
