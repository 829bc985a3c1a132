//go:build !linux

package plane

import (
	"context"
	"errors"
)

type mount struct{}

var errNoNode = errors.New("a real node needs Linux")

// Isolates returns an error: only Linux has namespaces.
func Isolates() error { return errNoNode }

// RunIsolated returns an error: only Linux has namespaces.
func RunIsolated(func() int) (int, error) { return 0, errNoNode }

// Hold does nothing.
func Hold() {}

func hold(context.Context, Options) error { return errNoNode }

// CgroupOf returns "".
func CgroupOf(string) string { return "" }

func removeCgroups(string) error                 { return nil }
func (p *Plane) prepareNode() error              { return errNoNode }
func (p *Plane) startNode(context.Context) error { return errNoNode }
func (p *Plane) stopNode() error                 { return nil }
func (p *Plane) nodeAPIServerArgs() []string     { return nil }
