// Package overlay builds Go programs of which some source files read differently than they lie on disk, by the go
// command's -overlay. It serves two ends: Replay makes the Go runtime itself repeatable, and a planted bug shows that a
// test finds it.
//
// A change is a Patch: in a file, one text instead of another. The old text must occur exactly once, so that a patch
// which no longer fits, say on another Go version, is an error and not a silent nothing.
package overlay
