package faults

import (
	"errors"
	"io/fs"
	"os"
)

// Op is one call of a file system, as hooks and predicates see it before it happens.
type Op struct {
	// N counts the calls from 1 on.
	N uint64
	// Call is its kind: open, create, stat, lstat, readdir, resolve, readlink, mkdir, symlink, rename, remove, syncdir,
	// and on open files read, write, fstat, truncate, reserve, sync, lock, close. RemoveAll is a remove for each thing
	// removed, and MkdirAll a mkdir for each directory made, since a process can die between them.
	Call string
	// Path is what the call names, for rename the new name, and on open files the path they were opened by.
	Path string
	// Writes tells whether it changes what the disk holds or what outlasts a loss of power.
	Writes bool
}

// ErrKilled is what every call gets in a process that was killed.
var ErrKilled = errors.New("the process was killed")

// writing holds the calls that change something, as far as their kind tells.
var writing = map[string]bool{
	"create": true, "mkdir": true, "symlink": true, "rename": true, "remove": true, "syncdir": true,
	"write": true, "truncate": true, "reserve": true, "sync": true,
}

// openCall is the kind of a call of OpenFile.
func openCall(flag int) string {
	if flag&os.O_CREATE != 0 {
		return "create"
	}
	return "open"
}

// failed wraps err as package os would, unless it speaks of the process and not of the file.
func failed(call, path string, err error) error {
	if errors.Is(err, ErrKilled) {
		return err
	}
	return &fs.PathError{Op: call, Path: path, Err: err}
}
