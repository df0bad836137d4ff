package overlay

import "strings"

// SeedVariable is the environment variable from which a runtime with Replay takes the seed of each synctest bubble.
const SeedVariable = "SIM_SEED"

// Replay makes what runs inside a synctest bubble exactly repeatable, in a process with GOMAXPROCS=1, without a collector
// that runs by itself and without samples for a heap profile. What was left to chance, and becomes of it:
//
//   - Random numbers of the runtime (order of select and of map iteration, timers of one instant, math/rand): inside a
//     bubble from one sequence that the seed starts, whatever threads do. Outside, from a fixed one.
//   - Hash seeds: constant.
//   - The monitor, the thread that preempts after 10 ms and takes the processor from system calls: none. On a busy machine
//     even waiting for a lock that it holds would tell: that draws a random number, which decides where the heap profile
//     samples, there a stack may grow, and that decides where memory lies.
//   - The global queue's turn every 61 schedules, which others' schedules shift: only when the local queue is empty.
//   - Other threads: none, as the main goroutine is not bound to the first one either. Or whether they come in time decides
//     how many are made, and with them where memory lies, and with that the order of maps with pointers for keys.
//   - The caches of type assertions, which grow at random moments: never, for the same reason.
//   - The wait after which a sync.Mutex starves: in virtual time.
//   - The path of the program, whose length decides where memory lies: nobody learns it.
//
// One thing it adds: a goroutine that becomes runnable is put first or last by the seed, as under the race detector, so
// that seeds differ in their interleavings too.
func Replay() []Patch {
	const runtime = "GOROOT/src/runtime/"
	return []Patch{
		{runtime + "rand.go", "	globalRand.state.Init(*seed)\n", "	for i := range seed {\n		seed[i] = byte(i + 1)\n	}\n	globalRand.state.Init(*seed)\n"},
		{runtime + "rand.go", oldRand, newRand},
		{runtime + "select.go", "j := cheaprandn(uint32(norder + 1))", "j := simRandn(gp, uint32(norder+1))"},
		{runtime + "time.go", "t.rand = cheaprand()", "t.rand = uint32(simNext(true))"},
		{runtime + "synctest.go", "	bubble.now = synctestBaseTime\n", "	bubble.now = synctestBaseTime\n	simSeed(gogetenv(\"" + SeedVariable + "\"))\n"},
		{runtime + "synctest.go", "		bubble.now = next\n", "		bubble.now = next\n" + collect},
		{runtime + "proc.go", "	if haveSysmon {\n", "	if false {\n"},
		{runtime + "proc.go", "if pp.schedtick%61 == 0 && !sched.runq.empty() {", "if false {"},
		{runtime + "proc.go", "if randomizeScheduler && next && randn(2) == 0 {", "if next && gp.bubble != nil && simRandn(gp, 2) == 0 {"},
		{runtime + "proc.go", "func lockOSThread() {\n", "func lockOSThread() {\n	return\n"},
		{runtime + "proc.go", "func unlockOSThread() {\n", "func unlockOSThread() {\n	return\n"},
		{runtime + "iface.go", rarely + "		return tab\n", strings.Replace(rarely, "cheaprand()&1023 != 0", "true", 1) + "		return tab\n"},
		{runtime + "iface.go", rarely + "		// This", strings.Replace(rarely, "cheaprand()&1023 != 0", "true", 1) + "		// This"},
		{runtime + "sema.go", "func internal_sync_nanotime() int64 {\n", "func internal_sync_nanotime() int64 {\n	if b := getg().bubble; b != nil {\n		return b.now\n	}\n"},
		{"GOROOT/src/os/executable_procfs.go", "path, err := Readlink(procfn)", "path, err := \"\", errors.New(\"no program knows its path here, and none \" + procfn)"},
	}
}

// rarely begins the two places that grow a cache of type assertions now and then, in memory of the ordinary heap.
const rarely = `	if cheaprand()&1023 != 0 {
		// Only bother updating the cache ~1 in 1000 times.
`

// collect is run between two instants of virtual time, when every goroutine of the bubble is blocked.
const collect = `		if gcController.heapLive.Load() > 1<<30+2*gcController.heapMarked {
			unlock(&bubble.mu)
			GC()
			lock(&bubble.mu)
		}
`

// The head of runtime.rand, up to what draws from the state of the thread.
const oldRand = `func rand() uint64 {
`

const newRand = `func rand() uint64 {
	gp := getg().m.curg
	return simNext(gp != nil && gp.bubble != nil)
}

// simStates are counters of splitmix64: outside and inside of bubbles.
var simStates [2]uint64

func simSeed(seed string) {
	simStates[1] = 0
	for i := 0; i < len(seed); i++ {
		simStates[1] = simStates[1]*10 + uint64(seed[i]-'0')
	}
	simStates[1] = simNext(true)
}

//go:nosplit
func simNext(inside bool) uint64 {
	at := &simStates[0]
	if inside {
		at = &simStates[1]
	}
	*at += 0x9e3779b97f4a7c15
	z := *at
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

//go:nosplit
func simRandn(gp *g, n uint32) uint32 {
	return uint32((uint64(uint32(simNext(gp.bubble != nil))) * uint64(n)) >> 32)
}

//go:nosplit
func threadRand() uint64 {
`
