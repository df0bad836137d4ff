// Package faults has file systems for tests: one in memory that crashes, fills up and rots, and one that fails on demand.
//
// A Disk keeps apart what the page cache knows and what the platter knows. A process sees it through a Mount. When the
// process is killed (Mount.Kill), its calls have no effect any more and its locks are free, but everything it wrote is
// still there for the next one. When the power fails (Disk.PowerLoss), of that which was not synced any part may be gone:
//
//   - of a file, any set of pages of 4 KiB, and its change of size: it may be empty, torn, full of zeros, or as it was
//     at its last Sync;
//   - of the names, any set of the changes since the last SyncDir of their directory, where a change is kept only with
//     the earlier ones of the same name. A rename is one change, kept or lost whole, however many names it touches. A
//     file that was synced under a name that was not is gone. All but the latest few hundred of a directory are kept.
//
// In one loss of three the file system has a journal of its own: all names, sizes and times are as they were last, and only some
// pages are lost, so that nothing but a look at them tells.
//
// That is less than journalling file systems promise and what POSIX does, so what survives here survives there. Other
// rules: a Sync that was made to fail forgets which pages were dirty, and the next one succeeds without writing them, as
// Linux does. A file without a name lives until it is closed. Modes are kept and not enforced. Directories are not
// renamed.
//
// Everything is decided by the calls and by the random numbers given: no goroutine, no map order, no clock but the one
// passed in. Equal calls in equal order give equal disks.
package faults
