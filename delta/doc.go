// Package delta knows what changed between two versions of a model's weights and how that is written down.
package delta
