// Package api is the local HTTP interface of a node: its types, a server and a client.
//
// It listens on a Unix socket that only its user may open, or on loopback with a bearer token. Requests and answers
// are JSON; an unknown field is an error, so that a misspelt one is not ignored in silence.
//
//	GET  /v1/runs      the runs that the node takes part in, and in short how each does
//	GET  /v1/status    what the node holds, serves and is doing
//	POST /v1/publish   publish a checkpoint as the next version (trainer)
//	POST /v1/pull      wait until a version is ready on this host: the newest, at least a number, or just that one
//	PUT /v1/pin        serve one version, forward or back, and stay there (rollout)
//	DELETE /v1/pin     follow the newest version again
//	GET  /v1/pin       what the node is pinned to
//	POST /v1/check     read all copies of the weights, and repair the blocks that are damaged
//	POST /v1/confirm   the engine has loaded a version: the slot served before it may be written again
//	GET  /healthz      200 when the node can do its work, else 503; needs no token
//	GET  /metrics      Prometheus text
//
// What calls take, every field but the first one optional; types.go has these, and what comes back:
//
//	publish   {"path": "/ckpt/step_42", "number": 42, "full": false, "new_epoch": false}
//	          or {"paths": {"policy": "/ckpt/policy", "draft": "/ckpt/draft"}}, or {"full": true} alone
//	pull      {"number": 42, "epoch": 1796107875807, "exact": false, "timeout_seconds": 300}; {} for the newest
//	pin       {"number": 42, "epoch": 1796107875807}
//	confirm   {"number": 42, "epoch": 1796107875807}
//
// A node that takes part in several runs must be told which one a call is about, by ?run=NAME; /healthz without it is
// about all of them, each under runs, and 503 when one is not healthy. Metrics of a run carry its name as a label.
//
// An error is {"error": "what failed and why", "hint": "what to do about it"} under a fitting status code.
package api
