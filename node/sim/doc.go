// Package sim runs whole nodes on a simulated network in one process and in virtual time, so that thousands of bad days
// are lived through in minutes and every one of them can be lived again.
//
// # The network
//
// A Network carries byte streams between machines as TCP does: in order within a connection, in no order between
// connections, with latency, jitter and bandwidth per directed link. Links may refuse, swallow, or reset; machines lose
// their process or their power and come back. Above the streams everything is real: libp2p's handshakes, yamux and
// gossipsub, and our own code. A Network lives inside one synctest bubble; all who use it are durably blocked when
// nothing moves, so that virtual time jumps to the next event.
//
// Like the real transport, which sets SO_LINGER to zero, closing a connection resets it: what the other side has not
// read by then is lost.
//
// What swallowed packets lead to is TCP's: the sender fills its window and blocks, the reader hears nothing. After
// healing the data flow again, after a wait such as retransmission has, or the sender has given up (Patience) and the
// other side learns of it when it next writes.
//
// # The world
//
// A World lives through a Plan: machines with a disk each (faults.Disk), on which one whole node after the other lives,
// built as in production, and training programs beside the trainers. The plan is drawn from the seed before anything
// happens and can be read: publishes of all kinds, restarts, kills and losses of power, at once or at a call of the file
// system, networks that split, swallow, refuse and crawl, disks that fail, fill up and rot, clocks that are wrong, users
// who pin, and who confirm late or never, and now and then two trainers that know nothing of each other and publish one
// version each in their own way, with one key or with two. Then all faults end, and everybody must find together.
//
// The oracle knows every state that was handed in to be published, and reads disks as an engine would, with a reader of
// its own. After everything that happens, every few seconds, and at every call of the file system that may have changed what
// is served or on offer, the invariants are checked; oracle_check.go names them. A failure tells the plan, the last words of every node and what
// did not hold. The seed lives it again; -drop leaves out steps of its plan, to find out which ones matter.
//
// That the oracle would notice is shown by planted bugs: testdata/plants holds some, each with the invariant that finds
// it, and a test of scripts/sim builds the simulation with each of them. A plan must give bugs the chance to show: what
// rots is followed by an update that starts from it or goes back to it, publishes come in bursts, so that the trainer
// codes in the background beside them, and processes end in the midst of updates. Not shown is that blocks stay for a
// node's own bring-up: with one run on a host nobody tidies meanwhile.
//
// # Replay
//
// With a seed, everything that we draw is repeatable, but Go's own choices are not: select, map iteration, timers of
// one instant, preemption. scripts/sim therefore builds the test with a runtime that draws from the seed as well, and
// runs each seed in a process of its own; see the package overlay for what is changed and why. There the same seed gives
// the same run, to the byte and the nanosecond, however busy the machine is: the process has one thread, and nothing in
// it asks for the real time. Plain go test runs the same simulation without that promise.
//
// Considered and left: a build for WebAssembly, whose runtime has one thread (too slow, and libp2p does not build), and
// a fork of Go (nobody would keep it up). A dozen small replacements in the source of the standard library, made at build time and
// refused when they do not fit, are the least that is exact.
package sim
