package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func TestMayPass(t *testing.T) {
	_, absent := os.Stat("/absent")
	for err, want := range map[error]bool{
		nil:                                false,
		absent:                             false,
		errors.New("header: half-written"): false,
		&fs.PathError{Op: "read", Path: "/x", Err: syscall.EIO}: true,
		fmt.Errorf("slot a: %w", syscall.EMFILE):                true,
		syscall.EACCES:                                          false,
		syscall.ENOSPC:                                          false,
	} {
		if got := MayPass(err); got != want {
			t.Errorf("%v may pass: %t", err, got)
		}
	}
}
