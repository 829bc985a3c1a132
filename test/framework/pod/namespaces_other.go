//go:build !linux

package pod

import (
	"errors"
	"syscall"
)

func attributes(bool) *syscall.SysProcAttr { return nil }

// Namespaces is an error: only Linux has them.
func Namespaces() error { return errors.New("only Linux has the namespaces of containers") }

// Confined is an error: only Linux has the namespaces of containers.
func Confined(int) error { return errors.New("only Linux has the namespaces of containers") }
