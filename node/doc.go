// Package node is one host's life in a run: its configuration, its role, and the steps of an update.
//
// A node is configured by one YAML file, strictly decoded; files of their own name the peers to start from and the
// peers to let in, since those lists change while the node runs. The disk is reached through node/files and the local
// HTTP API lives in node/api. What a node lives on, its disk and its network, is a Machine: this one, or one that a test
// makes up.
//
// What is decided is kept apart from what is done: Plan is a plain function from the states held and the edges on
// offer to the cheapest path, without clock, disk or network; decide is one from what a rollout has heard and was told
// (a pin, max_lag, what the engine has confirmed) to the version that it should serve.
//
// # Slow links
//
// Where a link is slower than the publishes, every download is overtaken by a newer version. To drop it then, for what has
// become the cheapest path, may never end: so a download is left only for a path that takes fewer bytes, all in all, than
// what it lacks up to the next version that can be brought up (see pursuit), and after a newer version was heard of it ends
// at the first such version. A version is brought up, then, after no more bytes than the path took when its download began,
// and no path is planned that takes more than a newcomer's: what is served is never older than it takes to fetch two of
// those. What is here of downloads that were left counts in every plan, and stays until it leads to nothing new. For all
// that, what is being fetched must be there: trainers, and everybody else, keep what a peer says it is fetching after it
// has left the offer (see shelf), and a relay gets that before anything else (see errands). Both, what downloads have begun
// and what peers may be fetching, are noted for the next start (see memo): a host that is killed again and again goes on
// with what it began before (see nearest). All this holds across epochs, too, but for versions that a trainer has left behind
// when it went back (see leftBehind). A rollout that is pinned, or waits for a confirm, brings nothing up on the way;
// with max_lag only what is further ahead than that.
//
// # Epochs
//
// A trainer opens a new epoch at every start, above all that it and its peers know, but announces nothing in it before
// its first publish: a node that restarts must not move the rollouts. That publish is coded against the version
// published last or, where the data directory was lost, the newest older one that is here, as the base is; edges that
// this node does not hold are not offered. What was published before is pointed at when the edges on offer lead there as
// cheaply. So going back to an older step, in a new epoch, is no special case: the newest head counts, rollouts plan a
// path to its root, and numbers may be lower. See lineage for what a trainer does that is not alone.
//
// # Copies of the weights
//
// A node keeps two copies (slots): one is served, the other becomes the next version. They are caches, made anew from the
// base and the deltas when they are lost. The digests of all blocks lie beside each. After a reboot, when files changed,
// in the background (scrub) and when asked (check) everything is read and compared; what is damaged is rebuilt from the
// other slot or the base and the few chunks that it takes, and current does not lead there meanwhile. The base is never
// written.
//
// With one slot the copy is changed where it lies, and current is gone until it is whole. A start after a crash in the
// middle goes on where that ended, or goes back to the version before when it cannot. The way back is coded while the
// update is written and kept for as many versions as reverse says: going back to one of those takes no byte from the
// network. After a loss of power the base, or a full copy, may be needed.
package node
