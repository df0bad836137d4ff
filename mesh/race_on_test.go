//go:build race

package mesh

const underRace = true
