// Package api is the local HTTP interface of a node: its types, a server and a client.
//
// It listens on a Unix socket that only its user may open, or on loopback with a bearer token. Requests and answers
// are JSON; an unknown field is an error, so that a misspelt one is not ignored in silence.
//
//	GET  /v1/status    what the node holds, serves and is doing
//	POST /v1/publish   publish a checkpoint as the next version (trainer)
//	POST /v1/pull      wait until a version is ready on this host
//	GET  /healthz      200 when the node can do its work, else 503; needs no token
//	GET  /metrics      Prometheus text
//
// An error is {"error": "what failed and why", "hint": "what to do about it"} under a fitting status code.
package api
