package node

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// What was being written is there again after the process has ended, unless it is another change's, of another boot, or
// damaged.
func TestInflight(t *testing.T) {
	schema, err := delta.NewSchema([]delta.Tensor{{Name: "w", DType: "U8", Shape: []uint64{3 * delta.BlockWords}, Size: 3 * delta.BlockWords}})
	try(t, err)
	from, to := root("from"), root("to")
	block := bytes.Repeat([]byte{7}, delta.BlockWords)
	for name, c := range map[string]struct {
		from, to delta.Root
		harm     func(d *faults.Disk) error
		lost     bool
	}{
		"whole":          {from: from, to: to},
		"another base":   {from: root("other"), to: to, lost: true},
		"another target": {from: from, to: root("other"), lost: true},
		"another boot": {from: from, to: to, lost: true, harm: func(d *faults.Disk) error {
			m := d.Mount()
			defer m.Kill()
			f, err := m.OpenFile("/data/"+inflightFile, 2, 0)
			if err == nil {
				err = f.Sync()
			}
			if err == nil {
				err = m.SyncDir("/data")
			}
			d.PowerLoss(rand.New(rand.NewPCG(1, 2)))
			return err
		}},
		"a bit": {from: from, to: to, lost: true, harm: func(d *faults.Disk) error { return d.FlipBit("/data/"+inflightFile, 8*recordHead+5) }},
		"cut":   {from: from, to: to, lost: true, harm: func(d *faults.Disk) error { return d.Truncate("/data/"+inflightFile, 5000) }},
	} {
		disk := faults.NewDisk(time.Now)
		open := func() *files.Dir {
			dir, err := files.Open(disk.Mount(), "/data")
			try(t, err)
			return dir
		}
		w, err := createInflight(open(), from, to)
		try(t, err)
		done, err := w.keep(0, [][]byte{bytes.Repeat([]byte{1}, delta.BlockWords)})
		try(t, err)
		done()
		_, err = w.keep(1, [][]byte{block, block}) // in the same place
		try(t, err)
		if c.harm != nil {
			try(t, c.harm(disk))
		}
		dir := open()
		f, err := dir.FS().OpenFile(dir.Path(inflightFile), 0, 0)
		try(t, err)
		slot := delta.NewMemory(schema)
		if err := (&inflight{file: f, whose: whoseRecords(dir.FS(), c.from, c.to)}).replay(schema, slot); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := make([]byte, 3*delta.BlockWords)
		if !c.lost {
			copy(want[delta.BlockWords:], block)
			copy(want[2*delta.BlockWords:], block)
		}
		got := make([]byte, len(want))
		try(t, slot.ReadAt(0, got, 0))
		if !bytes.Equal(got, want) {
			t.Errorf("%s: not what was to be there", name)
		}
	}
}
