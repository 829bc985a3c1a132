//go:build !linux

package volume

import (
	"errors"
	"os"
)

func usageOf(string) (Usage, error) { return Usage{}, errors.ErrUnsupported }

func allocate(*os.File, int64) error { return errors.ErrUnsupported }
