//go:build !linux

package volume

import "errors"

func usageOf(string) (Usage, error) { return Usage{}, errors.ErrUnsupported }
