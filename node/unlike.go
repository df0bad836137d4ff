package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/delta"
)

// unlike is how the schema of a version differs from that of the version before, in words; empty where it does not.
type unlike string

// warning says what comes of publishing other tensors after version number, since that is mostly a slip in the path.
func (u unlike) warning(number, full uint64) string {
	if u == "" {
		return ""
	}
	return fmt.Sprintf("other tensors than version %d: a full copy of %s is sent to everybody: %s", number, humanize.Bytes(full), string(u))
}

// compareSchemas tells which states differ, and which tensors of the states that are in both.
func compareSchemas(before, now *delta.Schema) unlike {
	if before.ID().Equals(now.ID()) {
		return ""
	}
	var parts, gone, fresh, changed []string
	if was, is := stateNames(before), stateNames(now); was != is {
		parts = append(parts, fmt.Sprintf("states are %s, were %s", is, was))
	}
	for _, r := range before.States() {
		i := slices.IndexFunc(now.States(), func(s delta.StateRange) bool { return s.Name == r.Name })
		if i < 0 {
			continue
		}
		was, is := tensorsOf(before, r), tensorsOf(now, now.States()[i])
		for _, t := range was.list {
			other, stays := is.byName[t.Name]
			switch {
			case !stays:
				gone = append(gone, tensorLabel(r.Name, t.Name))
			case other.DType != t.DType || !slices.Equal(other.Shape, t.Shape):
				changed = append(changed, fmt.Sprintf("%s is %s%v, was %s%v", tensorLabel(r.Name, t.Name), other.DType, other.Shape, t.DType, t.Shape))
			}
		}
		for _, t := range is.list {
			if _, known := was.byName[t.Name]; !known {
				fresh = append(fresh, tensorLabel(r.Name, t.Name))
			}
		}
	}
	for _, kind := range []struct {
		what string
		list []string
	}{{"gone", gone}, {"new", fresh}, {"of another dtype or shape", changed}} {
		if n := len(kind.list); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (the first: %s)", n, kind.what, kind.list[0]))
		}
	}
	if len(parts) == 0 {
		return "they are cut into other pieces (group_by)"
	}
	return unlike(strings.Join(parts, "; "))
}

// tensors are those of one state, in order and by name.
type tensors struct {
	list   []delta.Tensor
	byName map[string]delta.Tensor
}

func tensorsOf(s *delta.Schema, r delta.StateRange) tensors {
	t := tensors{list: s.Tensors()[r.First : r.First+r.Count], byName: make(map[string]delta.Tensor, r.Count)}
	for _, one := range t.list {
		t.byName[one.Name] = one
	}
	return t
}

// tensorLabel names a tensor for a message of bounded length.
func tensorLabel(state, tensor string) string {
	const most = 100 // bytes
	name := tensor
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	if state != "" {
		return name + " of " + state
	}
	return name
}
