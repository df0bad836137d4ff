package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestGolden pins the bytes to those that the reference implementation's own tests expect.
func TestGolden(t *testing.T) {
	floats := "\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40\x00\x00\xa0\x40"
	cases := []struct {
		name     string
		tensors  []Tensor
		data     []string
		metadata map[string]string
		want     []byte
	}{
		{"no padding", []Tensor{{"attn.0", "F32", []uint64{1, 2, 3}, 24}}, []string{floats}, nil,
			pack(`{"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}}`, floats)},
		{"padding", []Tensor{{"attn0", "F32", []uint64{1, 1, 2, 3}, 24}}, []string{floats}, nil,
			pack(`{"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}       `, floats)},
		{"less than a byte", []Tensor{{"attn.0", "F4", []uint64{1, 2}, 1}}, []string{"\x00"}, nil,
			pack(`{"attn.0":{"dtype":"F4","shape":[1,2],"data_offsets":[0,1]}}    `, "\x00")},
		{"empty", nil, nil, nil, pack("{}      ", "")},
		{"metadata alone", nil, nil, map[string]string{"framework": "pt"},
			pack(`{"__metadata__":{"framework":"pt"}}     `, "")},
		{"wide before narrow, then by name",
			[]Tensor{{"z", "Q8_0", nil, 1}, {"a", "BOOL", nil, 1}, {"b", "BF16", []uint64{1}, 2}, {"c", "F64", nil, 8}, {"a\n\"\x01é", "BF16", nil, 2}},
			[]string{"z", "a", "bb", "cccccccc", "dd"}, map[string]string{},
			pack(`{"__metadata__":{},"c":{"dtype":"F64","shape":[],"data_offsets":[0,8]},`+
				`"a\n\"\u0001é":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},`+
				`"b":{"dtype":"BF16","shape":[1],"data_offsets":[10,12]},`+
				`"a":{"dtype":"BOOL","shape":[],"data_offsets":[12,13]},`+
				`"z":{"dtype":"Q8_0","shape":[],"data_offsets":[13,14]}} `, "ccccccccddbbaz")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.safetensors")
			data := make([][]byte, len(c.data))
			for i, d := range c.data {
				data[i] = []byte(d)
			}
			save(t, path, c.tensors, data, c.metadata)
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	cases := []struct {
		tensors  []Tensor
		metadata map[string]string
		want     string
	}{
		{[]Tensor{{"a", "BF16", []uint64{3}, 5}}, nil, `tensor "a": 5 bytes, but shape [3] of BF16 takes 6`},
		{[]Tensor{{"a", "F4", []uint64{3}, 2}}, nil, `ends inside a byte`},
		{[]Tensor{{"a", "F32", []uint64{1 << 62}, 0}}, nil, `overflows`},
		{[]Tensor{{"a", "X", []uint64{1 << 32, 1 << 32}, 0}}, nil, `overflows`},
		{[]Tensor{{"a", "X", nil, -1}}, nil, `negative`},
		{[]Tensor{{"a", "X", nil, 1 << 61}, {"b", "X", nil, 1 << 61}, {"c", "X", nil, 1 << 61}}, nil, `in one file`},
		{[]Tensor{{"a", "U8", nil, 1}, {"a", "I8", nil, 1}}, nil, `tensor "a": given twice`},
		{[]Tensor{{"__metadata__", "U8", nil, 1}}, nil, `reserved`},
		{[]Tensor{{"\xff", "U8", nil, 1}}, nil, `not valid UTF-8`},
		{[]Tensor{{"a", "U8", make([]uint64, 65), 0}}, nil, `65 dimensions`},
		{nil, map[string]string{"k": "\xff"}, `metadata "k"`},
		{nil, map[string]string{"k": strings.Repeat("a", maxMetadataBytes)}, `bytes of metadata`},
		{[]Tensor{{strings.Repeat("a", maxHeader), "U8", nil, 1}}, nil, `header of 1 tensors takes more than`},
	}
	for _, c := range cases {
		dir := t.TempDir()
		_, err := Create(filepath.Join(dir, "x"), c.tensors, c.metadata)
		wantError(t, err, c.want)
		wantFiles(t, dir)
	}
}

// wantFiles fails unless dir holds exactly the given names.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("files %v, want %v", names, want)
	}
}

func TestNothingChangesBeforeCommit(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "x.safetensors", []byte("old"))
	w, err := Create(path, []Tensor{{"a", "U8", []uint64{3}, 3}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteAt(0, []byte("bc"), 1); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 3)
	if err := w.ReadAt(0, back, 0); err != nil || string(back) != "\x00bc" {
		t.Errorf("read back %q, %v", back, err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("before Commit the path holds %q", b)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "x.safetensors")
	if got := contents(t, mustOpen(t, path), 0); string(got) != "\x00bc" {
		t.Errorf("after Commit the tensor is %q", got)
	}
	wantError(t, w.Commit(), "committed or aborted before")
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
	wantFiles(t, dir, "x.safetensors")
	wantError(t, w.WriteAt(0, []byte("x"), 0), "x.safetensors", "closed")
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "x"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "x.partial")
	for range 2 {
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
		wantFiles(t, dir)
	}
	wantError(t, w.Commit(), "committed or aborted before")
}

func TestWriterBounds(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "x"), []Tensor{{"a", "U8", []uint64{4}, 4}, {"b", "U8", nil, 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, c := range []struct {
		i, n int
		off  int64
	}{{-1, 0, 0}, {2, 0, 0}, {0, 5, 0}, {0, 1, 4}, {0, 0, 5}, {0, 1, -1}, {0, 2, 1<<63 - 1}} {
		if w.WriteAt(c.i, make([]byte, c.n), c.off) == nil || w.ReadAt(c.i, make([]byte, c.n), c.off) == nil {
			t.Errorf("%+v: accepted", c)
		}
	}
	if err := w.WriteAt(0, nil, 4); err != nil {
		t.Errorf("nothing at the end: %v", err)
	}
}

func TestSymlinkIsReplacedNotFollowed(t *testing.T) {
	dir := t.TempDir()
	blob := put(t, dir, "blob", []byte("cache"))
	path := filepath.Join(dir, "model.safetensors")
	if err := os.Symlink("blob", path); err != nil {
		t.Fatal(err)
	}
	save(t, path, nil, nil, nil)
	if b, _ := os.ReadFile(blob); string(b) != "cache" {
		t.Errorf("the link's target now holds %q", b)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the path is %v, %v", info.Mode(), err)
	}
}

func TestFailedSyncCondemnsTheFile(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "x", []byte("old"))
	w, err := Create(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.file.Close() // the next fsync fails
	err = w.Commit()
	wantError(t, err, "thrown away")
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("cause lost: %v", err)
	}
	wantFiles(t, dir, "x")
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("the path holds %q", b)
	}
}

func TestCreateInTheWay(t *testing.T) {
	dir := t.TempDir()
	_, err := Create(dir, nil, nil)
	wantError(t, err, "is a directory")
	_, err = Create(filepath.Join(dir, "no", "x"), nil, nil)
	wantError(t, err, "no such file")
	if err := os.Symlink("elsewhere", filepath.Join(dir, "x.partial")); err != nil {
		t.Fatal(err)
	}
	_, err = Create(filepath.Join(dir, "x"), nil, nil)
	wantError(t, err, "x.partial", "in the way")
	wantFiles(t, dir, "x.partial")
}

func TestOneWriterAtATime(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	put(t, dir, "x.partial", []byte("left by a crash"))
	var mu sync.Mutex
	var won []*Writer
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if w, err := Create(path, nil, nil); err == nil {
				mu.Lock()
				won = append(won, w)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(won) > 1 {
		t.Fatalf("%d writers at once", len(won))
	}
	if len(won) == 0 { // they may all have found each other's hand on the leftover
		save(t, path, nil, nil, nil)
		return
	}
	_, err := Create(path, nil, nil)
	wantError(t, err, "another writer")
	if err := won[0].Commit(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "x")
}
