package delta

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares b with testdata/golden/name, which holds it in hexadecimal: other builds must read these bytes for
// ever, and other implementations can be tested against them.
func golden(t *testing.T, name string, b []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".hex")
	text := []byte(hex.EncodeToString(b) + "\n")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s: the bytes of the format changed\n%s, want\n%s", name, text, want)
	}
}

// goldenStates returns two states of two named states, one tensor of which is cut into columns of two groups.
func goldenStates(t testing.TB) (old, new *Memory) {
	t.Helper()
	w, b, v := tensorOf("w", "BF16", 2, 3, 4), tensorOf("b", "F32", 4), tensorOf("v", "F8_E4M3", 1, 70)
	schema, err := NewSchemaOf([]StateTensors{{"policy", []Tensor{w, b}}, {"draft", []Tensor{v}}}, func(_ string, t Tensor) []Cut {
		switch t.Name {
		case "w":
			left, right := boxOf(0, 0, 3, 1), boxOf(0, 1, 3, 3)
			left.Group, right.Group = "left", "right"
			return []Cut{left, right}
		case "v":
			return []Cut{{Group: "draft"}}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	old = NewMemory(schema)
	for i, b := range old.tensors {
		for j := range b {
			b[j] = byte(7*j + 50*i)
		}
	}
	new = clone(old)
	new.tensors[0][69]++
	for i := range new.tensors[1] {
		new.tensors[1][i] ^= 0xff
	}
	new.tensors[2][4] ^= 3
	return old, new
}

func TestGoldenSchemas(t *testing.T) {
	plain, err := NewSchema([]Tensor{{Name: "w", DType: "BF16", Shape: []uint64{2}, Size: 4}, {Name: "b", DType: "F32", Size: 4}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "schema-plain", plain.Encode())
	old, _ := goldenStates(t)
	golden(t, "schema-cut", old.schema.Encode())
}

func TestGoldenStream(t *testing.T) {
	old, new := goldenStates(t)
	golden(t, "stream-delta", encodeToBytes(t, old, new))
	golden(t, "stream-anchor", encodeToBytes(t, nil, new))
}

func TestGoldenManifests(t *testing.T) {
	old, new := goldenStates(t)
	files := Attachment{Sidecar{"config.json", 2}, strings.NewReader("{}")}
	for name, m := range map[string]*Manifest{
		"manifest-anchor": writeEdge(t, spoolFile(t), nil, new, files).Manifest,
		"manifest-delta":  writeEdge(t, spoolFile(t), old, new).Manifest,
		"manifest-deep":   manyChunks(t, inlineChunks+1),
	} {
		e, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, e.Root)
		if name == "manifest-deep" {
			golden(t, "manifest-leaf", e.Leaves[0][:64])
		}
	}
	e := writeEdge(t, spoolFile(t), old, new)
	golden(t, "outboard-digests", e.blocks[e.Outboard[0]])
	golden(t, "outboard-frames", e.blocks[e.Outboard[1]])
	var file bytes.Buffer
	if err := WriteContainer(&file, e.Manifest, new.schema, bytes.NewReader(bytes.Join(e.chunks, nil))); err != nil {
		t.Fatal(err)
	}
	golden(t, "container", file.Bytes())
}

func TestGoldenDigests(t *testing.T) {
	old, _ := goldenStates(t)
	d, err := DigestsOf(t.Context(), old, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Encode(old.schema)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "digests", b)
	root, err := d.Root(old.schema)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "root", root[:])
}
