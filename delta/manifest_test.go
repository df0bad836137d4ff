package delta

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"
	"pgregory.net/rapid"
)

// manyChunks returns a manifest of n chunks.
func manyChunks(t testing.TB, n int) *Manifest {
	t.Helper()
	m := &Manifest{
		Schema: Sum([]byte("schema")), Target: Root{1}, Elements: 3, Changed: 3, Dense: 8,
		Coded: uint64(n)*MinChunk - 1, ChunkSize: MinChunk,
	}
	for i := range n {
		m.Chunks = append(m.Chunks, Sum([]byte{byte(i), byte(i >> 8), byte(i >> 16)}))
	}
	return m
}

func TestManifestLevels(t *testing.T) {
	for _, n := range []int{1, inlineChunks, inlineChunks + 1, leafChunks, leafChunks + 1, 3*leafChunks + 7} {
		m := manyChunks(t, n)
		e, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if n > inlineChunks {
			want = (n + leafChunks - 1) / leafChunks
		}
		ids, err := LeavesOf(e.Root)
		if err != nil || len(e.Leaves) != want || len(ids) != want {
			t.Errorf("%d chunks: %d leaves, %d named, want %d (%v)", n, len(e.Leaves), len(ids), want, err)
		}
		for i, leaf := range e.Leaves {
			if len(leaf) > MaxLeaf || Check(ids[i], leaf) != nil {
				t.Errorf("%d chunks: leaf %d of %d bytes, or under another name", n, i, len(leaf))
			}
		}
		again, err := DecodeManifest(e.Root, leavesOf(e))
		if err != nil || !slices.Equal(again.Chunks, m.Chunks) || again.ChunkLen(n-1) != MinChunk-1 {
			t.Errorf("%d chunks come back otherwise (%v)", n, err)
		}
	}
}

func TestLeavesAreChecked(t *testing.T) {
	e, err := manyChunks(t, 2*leafChunks).Encode()
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	bad := bytes.Clone(e.Leaves[0])
	bad[0] ^= 1
	for name, c := range map[string]struct {
		leaf func(cid.Cid) ([]byte, error)
		want error
	}{
		"missing": {func(cid.Cid) ([]byte, error) { return nil, gone }, gone},
		"damaged": {func(cid.Cid) ([]byte, error) { return bad, nil }, ErrMismatch},
		"short":   {func(cid.Cid) ([]byte, error) { return e.Leaves[0][:32], nil }, nil},
		"swapped": {func(cid.Cid) ([]byte, error) { return e.Leaves[1], nil }, ErrMismatch},
	} {
		if _, err := DecodeManifest(e.Root, c.leaf); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s leaf gave %v, want %v", name, err, c.want)
		}
	}
}

// A manifest for a terabyte must be possible, and its root small enough to be fetched at once.
func TestHugeManifest(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second, and longer under the race detector")
	}
	m := manyChunks(t, 1)
	m.ChunkSize, m.Coded, m.Chunks = MaxChunk, 1<<40, slices.Repeat(m.Chunks, 1<<20)
	e, err := m.Encode()
	if err != nil || len(e.Root) > 16<<10 {
		t.Fatalf("a root of %d bytes: %v", len(e.Root), err)
	}
	if again, err := DecodeManifest(e.Root, leavesOf(e)); err != nil || len(again.Chunks) != 1<<20 {
		t.Fatal(err)
	}
}

func TestManifestRefusals(t *testing.T) {
	if err := manyChunks(t, 3).Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(m *Manifest){
		"no target":                 func(m *Manifest) { m.Target = Root{} },
		"chunk size":                func(m *Manifest) { m.ChunkSize = 3 * MinChunk },
		"tiny chunks":               func(m *Manifest) { m.ChunkSize = 1 << 10 },
		"a chunk too few":           func(m *Manifest) { m.Chunks = m.Chunks[1:] },
		"a chunk too many":          func(m *Manifest) { m.Chunks = append(m.Chunks, m.Chunks[0]) },
		"more changed than there":   func(m *Manifest) { m.Changed = 4 },
		"no code":                   func(m *Manifest) { m.Coded, m.Chunks = 0, nil },
		"endless code":              func(m *Manifest) { m.Coded = 1<<64 - 1 },
		"one group listed":          func(m *Manifest) { m.Groups = []uint64{m.Coded} },
		"an empty group":            func(m *Manifest) { m.Groups = []uint64{m.Coded, 0} },
		"groups of another sum":     func(m *Manifest) { m.Groups = []uint64{m.Coded, 1} },
		"groups beyond 64 bits":     func(m *Manifest) { m.Groups = []uint64{1 << 63, 1<<63 + m.Coded} },
		"groups that need a chunk":  func(m *Manifest) { m.Groups = []uint64{1, m.Coded - 1} },
		"files with a delta":        func(m *Manifest) { m.Base, m.Sidecars = Root{2}, []Sidecar{{"a", 0}} },
		"files that need a chunk":   func(m *Manifest) { m.Sidecars = []Sidecar{{"a", 1}} },
		"endless files":             func(m *Manifest) { m.Sidecars = []Sidecar{{"a", 1<<64 - 1}, {"b", 2}} },
		"files out of order":        func(m *Manifest) { m.Sidecars = []Sidecar{{"b", 0}, {"a", 0}} },
		"a file twice":              func(m *Manifest) { m.Sidecars = []Sidecar{{"a", 0}, {"a", 0}} },
		"a file elsewhere":          func(m *Manifest) { m.Sidecars = []Sidecar{{"../a", 0}} },
		"a file on another drive":   func(m *Manifest) { m.Sidecars = []Sidecar{{"c:a", 0}} },
		"a file too deep":           func(m *Manifest) { m.Sidecars = []Sidecar{{"a/b/c", 0}} },
		"a file of no state":        func(m *Manifest) { m.Sidecars = []Sidecar{{"/a", 0}} },
		"a state without a file":    func(m *Manifest) { m.Sidecars = []Sidecar{{"a/", 0}} },
		"a file of a hidden state":  func(m *Manifest) { m.Sidecars = []Sidecar{{"./a", 0}} },
		"a file above a state":      func(m *Manifest) { m.Sidecars = []Sidecar{{"a/..", 0}} },
		"a hidden file":             func(m *Manifest) { m.Sidecars = []Sidecar{{".a", 0}} },
		"a file without a name":     func(m *Manifest) { m.Sidecars = []Sidecar{{"", 0}} },
		"a file named by a control": func(m *Manifest) { m.Sidecars = []Sidecar{{"a\x1b[2J", 0}} },
		"a huge outboard":           func(m *Manifest) { m.Outboard = slices.Repeat(m.Chunks[:1], maxOutboard+1) },
	} {
		m := manyChunks(t, 3)
		spoil(m)
		if err := m.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := m.Encode(); err == nil {
			t.Errorf("%s: encoded", name)
		}
	}
}

// Hostile roots: what a record says of its size is believed only as far as it goes.
func TestHostileManifests(t *testing.T) {
	good, err := manyChunks(t, inlineChunks+1).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var r manifestRecord
	if err := UnmarshalRecord(good.Root, &r); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(r *manifestRecord){
		"both levels":            func(r *manifestRecord) { r.Chunks = make([]byte, 32*(inlineChunks+1)) },
		"all in the root":        func(r *manifestRecord) { r.Chunks, r.Leaves = make([]byte, 32*(inlineChunks+1)), nil },
		"leaves for few":         func(r *manifestRecord) { r.Coded = MinChunk },
		"a leaf too many":        func(r *manifestRecord) { r.Leaves = append(r.Leaves, r.Leaves...) },
		"no leaf":                func(r *manifestRecord) { r.Leaves = nil },
		"half a digest":          func(r *manifestRecord) { r.Leaves = r.Leaves[:16] },
		"endless code":           func(r *manifestRecord) { r.Coded = 1<<64 - 1 },
		"more chunks than bound": func(r *manifestRecord) { r.Coded = (MaxChunks + 1) * MinChunk },
		"short root":             func(r *manifestRecord) { r.Target = r.Target[1:] },
	} {
		bad := r
		bad.Leaves = slices.Clone(r.Leaves)
		spoil(&bad)
		b, err := MarshalRecord(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(b, leavesOf(good)); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := LeavesOf(b); err == nil {
			t.Errorf("%s: its leaves were named", name)
		}
	}
	r.Version = 1
	old, _ := MarshalRecord(r)
	if _, err := DecodeManifest(old, nil); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("a manifest of format 1 gave %v, want a hint to upgrade", err)
	}
}

// spoolFile returns an empty file that goes with the test.
func spoolFile(t testing.TB) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "spool")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// edge is an edge with its blocks at hand.
type edge struct {
	*Manifest
	sum    Summary
	chunks [][]byte
	blocks map[cid.Cid][]byte
}

func (e edge) chunk(i int) ([]byte, error) { return e.chunks[i], nil }

func (e edge) block(id cid.Cid) ([]byte, error) {
	if b, ok := e.blocks[id]; ok {
		return b, nil
	}
	return nil, errors.New("not here")
}

// fataler is what testing.T and rapid.T have in common here.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// writeEdge codes old → new (nil: an anchor) and keeps all blocks.
func writeEdge(t fataler, spool io.ReadWriteSeeker, old, new *Memory, files ...Attachment) edge {
	t.Helper()
	e := edge{blocks: make(map[cid.Cid][]byte)}
	var base State
	if old != nil {
		base = old
	}
	var err error
	e.Manifest, e.sum, err = WriteEdge(context.Background(), spool, base, new, EncodeOptions{Sidecars: files}, e.put())
	if err != nil {
		t.Fatal(err)
	}
	e.take()
	return e
}

func (e *edge) put() func(id cid.Cid, b []byte) error {
	return func(id cid.Cid, b []byte) error {
		e.blocks[id] = b
		return nil
	}
}

// take lists the chunks in order.
func (e *edge) take() {
	for _, id := range e.Chunks {
		e.chunks = append(e.chunks, e.blocks[id])
	}
}

// memorySpool is a spool for property tests, which have no directory of their own.
type memorySpool struct {
	bytes.Buffer
	read *bytes.Reader
}

func (s *memorySpool) Seek(off int64, whence int) (int64, error) {
	s.read = bytes.NewReader(s.Bytes())
	return s.read.Seek(off, whence)
}

func (s *memorySpool) Read(p []byte) (int, error) { return s.read.Read(p) }

// Chunks never cross the border of a group, and the files come behind the weights.
func TestChunksKeepToGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCut(t)
		_, state := randomState(newRand(t), s, 0)
		var files []Attachment
		var want []string
		for i := range rapid.IntRange(0, 3).Draw(t, "files") {
			text := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 20_000, 100_000}).Draw(t, "size"))
			files = append(files, Attachment{Sidecar{string(rune('c' - i)), uint64(len(text))}, strings.NewReader(text)})
			want = append([]string{text}, want...)
		}
		e := writeEdge(t, &memorySpool{}, nil, state, files...)
		var whole []byte
		for i, c := range e.chunks {
			if len(c) != e.ChunkLen(i) || uint64(len(whole)) != e.chunkBegin(i) {
				t.Fatalf("chunk %d of %d bytes at %d, want %d at %d", i, len(c), len(whole), e.ChunkLen(i), e.chunkBegin(i))
			}
			whole = append(whole, c...)
		}
		begin := uint64(0)
		for i, p := range e.cutFrom() {
			if p.begin != begin || e.chunkBegin(p.first) != begin {
				t.Fatalf("part %d begins at %d inside a chunk", i, begin)
			}
			if i < len(s.Groups()) && string(whole[begin:begin+uint64(len(streamHead))]) != streamHead {
				t.Fatalf("group %d does not begin with its stream", i)
			}
			begin += p.size
		}
		if begin != uint64(len(whole)) || begin != e.Bytes() {
			t.Fatalf("%d bytes of chunks, want %d", len(whole), begin)
		}
		var got []string
		err := ReadSidecars(e.Manifest, e.chunk, func(s Sidecar, content io.Reader) error {
			if len(got)%2 == 1 {
				got = append(got, want[len(got)]) // reads nothing of it
				return nil
			}
			b, err := io.ReadAll(content)
			got = append(got, string(b))
			return err
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("files come back otherwise: %v", err)
		}
		mustRoundTripManifest(t, e.Manifest)
	})
}

func TestSidecarsThatChange(t *testing.T) {
	_, state := smallPair(t)
	for name, content := range map[string]string{"shorter": "abc", "longer": "abcdef"} {
		_, _, err := WriteEdge(t.Context(), spoolFile(t), nil, state, EncodeOptions{
			Sidecars: []Attachment{{Sidecar{"a", 1}, strings.NewReader("x")}, {Sidecar{"b", 4}, strings.NewReader(content)}},
		}, func(cid.Cid, []byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "file b") {
			t.Errorf("a file %s than announced gave %v", name, err)
		}
	}
	old, _ := smallPair(t)
	_, _, err := WriteEdge(t.Context(), spoolFile(t), old, state, EncodeOptions{
		Sidecars: []Attachment{{Sidecar{"a", 1}, strings.NewReader("x")}},
	}, nil)
	if err == nil {
		t.Error("files were sent with a delta")
	}
}

func TestContainerOfManyGroupsAndFiles(t *testing.T) {
	_, state := goldenStates(t)
	spool := spoolFile(t)
	e := writeEdge(t, spool, nil, state, Attachment{Sidecar{"config.json", 2}, strings.NewReader("{}")})
	var file bytes.Buffer
	if err := WriteContainer(&file, e.Manifest, state.schema, bytes.NewReader(bytes.Join(e.chunks, nil))); err != nil {
		t.Fatal(err)
	}
	c, err := OpenContainer(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got := NewMemory(c.Schema)
	if _, err := ApplyEdge(t.Context(), c.Manifest, c.Chunk, c.Schema, nil, got, DecodeOptions{}); err != nil {
		t.Fatal(err)
	}
	for n := range file.Len() {
		if _, err := OpenContainer(bytes.NewReader(file.Bytes()[:n]), int64(n)); err == nil {
			t.Fatalf("the first %d of %d bytes were opened", n, file.Len())
		}
	}
}

func TestSidecarsOfNamedStates(t *testing.T) {
	_, state := smallPair(t)
	e := writeEdge(t, spoolFile(t), nil, state, Attachment{Sidecar{"draft/config.json", 2}, strings.NewReader("{}")})
	got := ""
	err := ReadSidecars(e.Manifest, e.chunk, func(s Sidecar, content io.Reader) error {
		st, file := s.Split()
		b, err := io.ReadAll(content)
		got = st + " " + file + " " + string(b)
		return err
	})
	if err != nil || got != "draft config.json {}" {
		t.Errorf("got %q, %v", got, err)
	}
	if st, file := (Sidecar{Name: "config.json"}).Split(); st != "" || file != "config.json" {
		t.Errorf("got %q, %q", st, file)
	}
}
