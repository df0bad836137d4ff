package files

import (
	"errors"
	"slices"
	"syscall"
)

// passing are the errors of a system that may do better the next time.
var passing = []syscall.Errno{syscall.EIO, syscall.EINTR, syscall.EAGAIN, syscall.EBUSY, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETIMEDOUT, syscall.ESTALE}

// MayPass tells whether an error says nothing about what lies on the disk.
func MayPass(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && slices.Contains(passing, number)
}
