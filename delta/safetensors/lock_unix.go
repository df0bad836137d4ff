//go:build unix

package safetensors

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lock is part of File.
func (f osFile) Lock() error {
	return os.NewSyscallError("flock", unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
}
