package files

import (
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/sparsecast/sparsecast/delta/safetensors"
)

// FS is all that a node asks of a file system. OS is the real one; package faults has others that fail and crash.
// Paths are absolute, errors name them and wrap the system's error numbers. Its methods, and those of its files except
// Close, are safe for concurrent use.
type FS interface {
	safetensors.Disk
	MkdirAll(path string, mode fs.FileMode) error // nil when it is there
	RemoveAll(path string) error                  // with all below; nil when absent
	Symlink(target, path string) error
	Readlink(path string) (string, error)
	// Free returns how many bytes an ordinary user may still write beside path. An error says no more than that this
	// cannot be told.
	Free(path string) (uint64, error)
	// BootID names the time since the machine was started, after which what was not synced may be lost. It is empty
	// where there is no such thing.
	BootID() string
}

// File is an open file of an FS.
type File = safetensors.File

// OS is the file system of this machine.
type OS struct{ safetensors.OS }

// MkdirAll is part of FS.
func (OS) MkdirAll(path string, mode fs.FileMode) error { return os.MkdirAll(path, mode) }

// RemoveAll is part of FS.
func (OS) RemoveAll(path string) error { return os.RemoveAll(path) }

// Symlink is part of FS.
func (OS) Symlink(target, path string) error { return os.Symlink(target, path) }

// Readlink is part of FS.
func (OS) Readlink(path string) (string, error) { return os.Readlink(path) }

// Free is part of FS.
func (OS) Free(path string) (uint64, error) { return Free(path) }

// BootID is part of FS.
func (OS) BootID() string { return bootID() }

var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})
