package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ipfs/go-cid"
)

// containerMagic opens a file that holds one edge for use offline; its last byte is the version of the layout:
//
//	magic 8 | block of the manifest | its leaves in order, a block each | block of the schema | all chunks in order
//	block = u32 length | bytes
//
// Lengths are little-endian. Everything behind the manifest is checked against it. The outboard is left out: it is
// for those who do not have all chunks.
const containerMagic = "SPCFILE\x02"

// Container is an edge in a file, open for reading.
type Container struct {
	Manifest *Manifest
	Schema   *Schema
	r        io.ReaderAt
	chunks   int64 // where they begin
}

// WriteContainer writes the edge that m describes to w. The chunks, one after the other, are read from r.
func WriteContainer(w io.Writer, m *Manifest, schema *Schema, r io.Reader) error {
	e, err := m.Encode()
	if err != nil {
		return err
	}
	head := []byte(containerMagic)
	for _, b := range append(append([][]byte{e.Root}, e.Leaves...), schema.Encode()) {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(b)))
		head = append(head, b...)
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("write delta file: %w", err)
	}
	if _, err := io.CopyN(w, r, int64(m.Bytes())); err != nil {
		return fmt.Errorf("write delta file: %w", err)
	}
	return nil
}

// OpenContainer reads the head of a file of size bytes that WriteContainer wrote.
func OpenContainer(r io.ReaderAt, size int64) (*Container, error) {
	magic := make([]byte, len(containerMagic))
	const name = len(containerMagic) - 1 // the version follows
	if _, err := r.ReadAt(magic, 0); err != nil || string(magic[:name]) != containerMagic[:name] {
		return nil, errors.New("not a sparsecast delta file: it does not begin like one")
	}
	if magic[name] != containerMagic[name] {
		return nil, fmt.Errorf("delta file: format %d, this build reads %d; upgrade the older sparsecast", magic[name], containerMagic[name])
	}
	c := &Container{r: r}
	head := &blockReader{r: r, off: int64(len(magic)), size: size}
	if err := c.open(head); err != nil {
		return nil, fmt.Errorf("delta file: %w", err)
	}
	c.chunks = head.off
	if have := size - head.off; uint64(have) != c.Manifest.Bytes() {
		return nil, fmt.Errorf("delta file: %d bytes of code, its manifest says %d: cut off or damaged, copy it again",
			have, c.Manifest.Bytes())
	}
	return c, nil
}

func (c *Container) open(head *blockReader) error {
	b, err := head.next(MaxManifest)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if c.Manifest, err = DecodeManifest(b, func(cid.Cid) ([]byte, error) { return head.next(MaxLeaf) }); err != nil {
		return err
	}
	if b, err = head.next(MaxBlock); err == nil {
		err = Check(c.Manifest.Schema, b)
	}
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	c.Schema, err = DecodeSchema(b)
	return err
}

// blockReader reads blocks one after the other.
type blockReader struct {
	r         io.ReaderAt
	off, size int64
}

func (b *blockReader) next(limit int64) ([]byte, error) {
	var n [4]byte
	if _, err := b.r.ReadAt(n[:], b.off); err != nil {
		return nil, errors.New("cut off")
	}
	length := int64(binary.LittleEndian.Uint32(n[:]))
	if length > limit || length > b.size-b.off-4 {
		return nil, fmt.Errorf("%d bytes, but only %d are there (at most %d)", length, b.size-b.off-4, limit)
	}
	block := make([]byte, length)
	if _, err := b.r.ReadAt(block, b.off+4); err != nil {
		return nil, err
	}
	b.off += 4 + length
	return block, nil
}

// Chunk returns chunk i, unchecked: ApplyEdge checks it.
func (c *Container) Chunk(i int) ([]byte, error) {
	b := make([]byte, c.Manifest.ChunkLen(i))
	_, err := c.r.ReadAt(b, c.chunks+int64(c.Manifest.chunkBegin(i)))
	return b, err
}
