package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparsecast/sparsecast/mesh"
)

// maxRanges is how many runs of numbers a message names; the newest are the ones that matter.
const maxRanges = 8

// ranges names versions in ascending order by their numbers, runs of numbers in short: 3, 7 to 12. Epochs are named
// where there are several.
func ranges(ascending []mesh.VersionRoot) string {
	var parts []string
	apart := false
	for i := 1; i < len(ascending); i++ {
		apart = apart || !ascending[i-1].Version.Shares(ascending[i].Version)
	}
	for i := 0; i < len(ascending); {
		first, last := ascending[i].Version, ascending[i].Version
		for i++; i < len(ascending) && follows(last, ascending[i].Version); i++ {
			last = ascending[i].Version
		}
		text := fmt.Sprint(first.Number)
		if last != first {
			text = fmt.Sprintf("%d to %d", first.Number, last.Number)
		}
		if apart {
			text += " of epoch " + mesh.EpochName(last.Epoch)
		}
		parts = append(parts, text)
	}
	if extra := len(parts) - maxRanges; extra > 0 {
		parts = slices.Insert(parts[extra:], 0, "older ones")
	}
	return strings.Join(parts, ", ")
}

func follows(v, w mesh.Version) bool { return v.Shares(w) && v.Number+1 == w.Number }
