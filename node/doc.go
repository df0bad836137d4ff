// Package node is one host's life in a run: its configuration, its role, and the steps of an update.
//
// A node is configured by one YAML file, strictly decoded; files of their own name the peers to start from and the
// peers to let in, since those lists change while the node runs. The disk is reached through node/files and the local
// HTTP API lives in node/api.
//
// What is decided is kept apart from what is done: Plan is a plain function from the states held and the edges on
// offer to the cheapest path, without clock, disk or network.
package node
