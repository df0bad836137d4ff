package safetensors

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserveStep is how much is reserved by one call, in bytes. A signal undoes a call that is under way
// on some file systems, so that a single one for everything might never get through.
const reserveStep = 1 << 30

// reserve takes size bytes of disk for f, where the file system can.
func reserve(f *os.File, size int64) error {
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

// lock takes the file for this writer alone, or fails at once. The system frees it when the process dies.
// File systems without locks, as Lustre often is, leave it to the caller that only one writer is at work.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOLCK) {
		return nil
	}
	return os.NewSyscallError("flock", err)
}
