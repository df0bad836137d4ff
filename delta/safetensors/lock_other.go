//go:build !unix

package safetensors

import "errors"

// Lock fails: here it is up to the caller that only one writer is at work.
func (osFile) Lock() error { return errors.ErrUnsupported }
