//go:build !race

package mesh

const underRace = false
