// Package mesh carries signed heads, catalogues and content-addressed chunks between the nodes of a run.
package mesh
