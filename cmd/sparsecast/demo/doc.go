// Package demo runs a whole training cluster on one machine: real processes, real sockets, real weights. It is the
// shortest way to see what sparsecast does, and the longest test of it.
package demo
