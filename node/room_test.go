package node

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
)

// A node tells at its start that the disk is too small for the copies that are still to come, until there is room.
func TestShortOfRoomIsTold(t *testing.T) {
	c := newCast(t, 1)
	for _, role := range []mesh.Role{mesh.RoleTrainer, mesh.RoleRollout} {
		t.Run(string(role), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := c.enter(t, role)
				v.disk.SetLimit(v.disk.Used() + int64(len(c.steps[0]))*3/2) // the first one fits
				v.live(t, crash{}, func(ctx context.Context, n *part) error {
					if err := n.board.waitFor(ctx, func(b *board) bool { return b.notes["room"] != "" }); err != nil {
						return err
					}
					told := strings.Join(n.Status(ctx).Problems, "\n")
					if !strings.Contains(told, "still to come take") || !strings.Contains(told, "/data has ") || !strings.Contains(told, "or set data: to a larger disk") {
						t.Errorf("problems %q", told)
					}
					v.disk.SetLimit(0)
					return n.board.waitFor(ctx, func(b *board) bool { return b.notes["room"] == "" })
				})
			})
		})
	}
}

// What is still to come is told by the size of what is here, less what lies in its place already.
func TestCopiesToCome(t *testing.T) {
	c := newCast(t, 1)
	size := uint64(len(c.steps[0]))
	for name, w := range map[string]struct {
		base bool
		one  bool
		lie  map[string]string // by place
		at   string            // what is written in the node's lifetime, of four bytes
		want uint64
	}{
		"nothing is known":        {want: 0},
		"a base":                  {base: true, want: 2 * size},
		"a base, for one slot":    {base: true, one: true, want: size},
		"a base and a copy":       {base: true, lie: map[string]string{"slots/a/" + weightsFile: string(c.steps[0])}, want: size},
		"a copy alone":            {lie: map[string]string{"slots/b/" + weightsFile: string(c.steps[0])}, want: size},
		"one copy where it is":    {one: true, lie: map[string]string{"slots/a/" + weightsFile: string(c.steps[0])}, want: 0},
		"something in its place":  {base: true, lie: map[string]string{"slots/a/" + weightsFile: "torn"}, want: 2*size - 4},
		"one that is written":     {base: true, at: "slots/a/" + weightsFile + draftSuffix, want: 2*size - 4},
		"more than that in place": {base: true, lie: map[string]string{"slots/a/" + weightsFile: string(make([]byte, 2*size))}, want: size},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.enter(t, mesh.RoleRollout)
			mount := v.disk.Mount()
			dir, err := files.Open(mount, "/data")
			try(t, err)
			h := home{dir: dir, place: dir, one: w.one}
			if w.base {
				h.base = paths{"": "/base"}
			}
			for place, content := range w.lie {
				try(t, dir.WriteFile(place, []byte(content)))
			}
			s, err := openSlots(t.Context(), h, zerolog.Nop())
			try(t, err)
			if w.at != "" {
				try(t, dir.WriteFile(w.at, []byte("half")))
			}
			if got := s.toCome(); got != w.want {
				t.Errorf("got %d bytes, want %d", got, w.want)
			}
			v.disk.SetLimit(v.disk.Used() + int64(w.want))
			if told := s.short(); told != "" {
				t.Errorf("with room for all: %s", told)
			}
		})
	}
}
