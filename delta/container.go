package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// containerMagic opens a file that holds one edge for use offline; its last byte is the version of the layout:
//
//	magic 8 | u32 manifest length | manifest | u32 schema length | schema | stream
//
// Lengths are little-endian. Everything behind the manifest is checked against it.
const containerMagic = "SPCFILE\x01"

// Container is an edge in a file, open for reading.
type Container struct {
	Manifest *Manifest
	Schema   *Schema
	r        io.ReaderAt
	stream   int64 // where it begins
}

// WriteContainer writes the edge that m describes, whose stream is r, to w.
func WriteContainer(w io.Writer, m *Manifest, schema *Schema, r io.Reader) error {
	manifest, err := m.Encode()
	if err != nil {
		return err
	}
	head := append([]byte(containerMagic), binary.LittleEndian.AppendUint32(nil, uint32(len(manifest)))...)
	head = append(head, manifest...)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(schema.Encode())))
	head = append(head, schema.Encode()...)
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("write delta file: %w", err)
	}
	if _, err := io.CopyN(w, r, int64(m.Coded)); err != nil {
		return fmt.Errorf("write delta file: %w", err)
	}
	return nil
}

// OpenContainer reads the head of a file of size bytes that WriteContainer wrote.
func OpenContainer(r io.ReaderAt, size int64) (*Container, error) {
	magic := make([]byte, len(containerMagic))
	if _, err := r.ReadAt(magic, 0); err != nil || string(magic) != containerMagic {
		return nil, errors.New("not a sparsecast delta file: it does not begin like one")
	}
	off := int64(len(magic))
	b, off, err := readBlock(r, off, size)
	if err != nil {
		return nil, fmt.Errorf("delta file: manifest: %w", err)
	}
	c := &Container{r: r}
	if c.Manifest, err = DecodeManifest(b); err != nil {
		return nil, fmt.Errorf("delta file: %w", err)
	}
	if b, off, err = readBlock(r, off, size); err != nil {
		return nil, fmt.Errorf("delta file: schema: %w", err)
	}
	if err := Check(c.Manifest.Schema, b); err != nil {
		return nil, fmt.Errorf("delta file: schema: %w", err)
	}
	if c.Schema, err = DecodeSchema(b); err != nil {
		return nil, fmt.Errorf("delta file: %w", err)
	}
	c.stream = off
	if have := size - off; have < 0 || uint64(have) != c.Manifest.Coded {
		return nil, fmt.Errorf("delta file: %d bytes of code, its manifest says %d: cut off or damaged, copy it again", have, c.Manifest.Coded)
	}
	return c, nil
}

func readBlock(r io.ReaderAt, off, size int64) ([]byte, int64, error) {
	var n [4]byte
	if _, err := r.ReadAt(n[:], off); err != nil {
		return nil, 0, errors.New("cut off")
	}
	length := int64(binary.LittleEndian.Uint32(n[:]))
	off += 4
	if length > MaxBlock || length > size-off {
		return nil, 0, fmt.Errorf("%d bytes, but only %d are there (at most %d)", length, size-off, MaxBlock)
	}
	b := make([]byte, length)
	if _, err := r.ReadAt(b, off); err != nil {
		return nil, 0, err
	}
	return b, off + length, nil
}

// Chunk returns chunk i, unchecked: ApplyEdge checks it.
func (c *Container) Chunk(i int) ([]byte, error) {
	b := make([]byte, c.Manifest.ChunkLen(i))
	_, err := c.r.ReadAt(b, c.stream+int64(i)*int64(c.Manifest.ChunkSize))
	return b, err
}
