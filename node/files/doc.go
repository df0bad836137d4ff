// Package files is the one small door to the disk for everything that must survive a crash.
//
// FS is all that a node asks of a file system, and OS the real one; nothing else in a node touches a disk, so that
// tests can put a node on one that crashes. Dir is a directory of small durable records on an FS.
//
// A name in a Dir is slash-separated and local to the directory; elements that begin with a dot are the package's own
// (temporary files, the lock) and are refused. Every write goes to a temporary file and is renamed, so a reader
// sees the old content or the new, never a mixture. Nothing is durable until Sync or WriteDurable returned nil.
//
// A failed fsync condemns the file: the kernel may have dropped the dirty pages and will report success next time,
// so Sync removes such a file rather than let anyone trust it. WriteDurable syncs before it renames, and so leaves
// the old content in place when it fails.
//
// Leftovers of a crash are removed by Lock and not by Open, since only the holder of the lock knows that no other
// process is writing them.
package files
