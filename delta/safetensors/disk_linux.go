package safetensors

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserveStep is how much is reserved by one call, in bytes. A signal undoes a call that is under way
// on some file systems, so that a single one for everything might never get through.
const reserveStep = 1 << 30

// Reserve is part of File.
func (f osFile) Reserve(size int64) error {
	for off := int64(0); off < size; {
		n := min(reserveStep, size-off)
		switch err := unix.Fallocate(int(f.Fd()), 0, off, n); {
		case err == nil:
			off += n
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil
		case !errors.Is(err, unix.EINTR):
			return os.NewSyscallError("fallocate", err)
		}
	}
	return nil
}
