//go:build race

package node

const underRace = true
