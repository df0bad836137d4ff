package mesh

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/delta"
)

var testDigest = bytes.Repeat([]byte{0xd1}, delta.RootSize)

// controlGolden pins the bytes of every kind of message: peers of other builds read them.
var controlGolden = []struct {
	m   control
	hex string
}{
	{control{Kind: kindHello, Role: "rollout", Cluster: "eu", Runs: []string{"r"}}, "14" + "a4" + "0001" + "0167726f6c6c6f7574" + "02626575" + "03816172"},
	{control{Kind: kindHello, Role: "relay", Runs: []string{"a", "r"}}, "10" + "a3" + "0001" + "016572656c6179" + "038261616172"},
	{control{Kind: kindWant, Manifest: testDigest}, "26" + "a2" + "0002" + "045820" + strings.Repeat("d1", 32)},
	{control{Kind: kindUnwant, Manifest: testDigest}, "26" + "a2" + "0003" + "045820" + strings.Repeat("d1", 32)},
	{control{Kind: kindHave, Manifest: testDigest}, "26" + "a2" + "0004" + "045820" + strings.Repeat("d1", 32)},
	{control{Kind: kindHave, Manifest: testDigest, Bits: []byte{5, 1}}, "2a" + "a3" + "0004" + "045820" + strings.Repeat("d1", 32) + "05420501"},
	{control{Kind: kindMore, Manifest: testDigest, Indices: []uint32{1, 300}}, "2c" + "a3" + "0005" + "045820" + strings.Repeat("d1", 32) + "068201" + "19012c"},
	{control{Kind: kindPing, Nonce: 7}, "05" + "a2" + "0006" + "0707"},
	{control{Kind: kindPong, Nonce: 7}, "05" + "a2" + "0007" + "0707"},
}

func TestControlMessagesHaveFixedBytes(t *testing.T) {
	for _, c := range controlGolden {
		frame, err := encodeControl(c.m)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(frame); got != c.hex {
			t.Errorf("kind %d: got %s\nwant %s", c.m.Kind, got, c.hex)
		}
		back, err := readControl(bufio.NewReader(bytes.NewReader(frame)))
		if err != nil || !reflect.DeepEqual(back, c.m) {
			t.Errorf("kind %d: read back %+v, %v", c.m.Kind, back, err)
		}
	}
}

func manyRuns(n int) []string {
	runs := make([]string, n)
	for i := range runs {
		runs[i] = fmt.Sprintf("run %03d", i)
	}
	return runs
}

func TestTheLargestHelloFits(t *testing.T) {
	m := control{Kind: kindHello, Role: "rollout", Cluster: strings.Repeat("c", maxName), Runs: manyRuns(maxRuns)}
	for i := range m.Runs {
		m.Runs[i] += strings.Repeat("x", maxName-len(m.Runs[i]))
	}
	frame, err := encodeControl(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readControl(bufio.NewReader(bytes.NewReader(frame))); err != nil {
		t.Error(err)
	}
}

func TestControlMessagesOfWrongFormAreRefused(t *testing.T) {
	for name, m := range map[string]control{
		"no kind":              {},
		"unknown kind":         {Kind: kindPong + 1},
		"want without digest":  {Kind: kindWant},
		"want with short one":  {Kind: kindWant, Manifest: testDigest[:31]},
		"ping about manifest":  {Kind: kindPing, Manifest: testDigest},
		"want with bits":       {Kind: kindWant, Manifest: testDigest, Bits: []byte{1}},
		"want with nonce":      {Kind: kindWant, Manifest: testDigest, Nonce: 1},
		"more of nothing":      {Kind: kindMore, Manifest: testDigest},
		"more out of order":    {Kind: kindMore, Manifest: testDigest, Indices: []uint32{2, 1}},
		"more of one twice":    {Kind: kindMore, Manifest: testDigest, Indices: []uint32{2, 2}},
		"more beyond bounds":   {Kind: kindMore, Manifest: testDigest, Indices: []uint32{maxChunkBits}},
		"more than a message":  {Kind: kindMore, Manifest: testDigest, Indices: increasing(maxIndices + 1)},
		"have beyond bounds":   {Kind: kindHave, Manifest: testDigest, Bits: make([]byte, maxChunkBits/8+1)},
		"hello with long name": {Kind: kindHello, Role: "rollout", Runs: []string{strings.Repeat("x", maxName+1)}},
		"hello of a run twice": {Kind: kindHello, Role: "rollout", Runs: []string{"x", "x"}},
		"hello of many runs":   {Kind: kindHello, Role: "rollout", Runs: manyRuns(maxRuns + 1)},
		"ping with name":       {Kind: kindPing, Runs: []string{"x"}},
	} {
		if _, err := encodeControl(m); !errors.Is(err, errMalformed) {
			t.Errorf("%s: written: %v", name, err)
		}
		body, err := delta.MarshalRecord(m)
		if err != nil {
			t.Fatal(err)
		}
		frame := append(binary.AppendUvarint(nil, uint64(len(body))), body...)
		if _, err := readControl(bufio.NewReader(bytes.NewReader(frame))); !errors.Is(err, errMalformed) {
			t.Errorf("%s: read: %v", name, err)
		}
	}
}

func increasing(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

func TestLargestControlMessagesFit(t *testing.T) {
	for _, m := range []control{
		{Kind: kindHave, Manifest: testDigest, Bits: bytes.Repeat([]byte{0xff}, maxChunkBits/8)},
		{Kind: kindMore, Manifest: testDigest, Indices: increasing(maxIndices)},
	} {
		frame, err := encodeControl(m)
		if err != nil || len(frame) > maxControl {
			t.Errorf("kind %d: %d bytes, %v", m.Kind, len(frame), err)
		}
	}
}

func TestFrameLengths(t *testing.T) {
	for in, want := range map[string]int{"\x00": 0, "\x7f": 127, "\x80\x01": 128, "\xe8\x07": 1000} {
		if got, err := readLength(strings.NewReader(in), 1000); err != nil || got != want {
			t.Errorf("length %x: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"\xe9\x07", "\x80\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x80\x80\x80\x80\x80\x80"} {
		if _, err := readLength(strings.NewReader(in), 1000); !errors.Is(err, errMalformed) {
			t.Errorf("length %x: %v", in, err)
		}
	}
	if _, err := readLength(strings.NewReader("\x80"), 1000); err == nil || errors.Is(err, errMalformed) {
		t.Errorf("a stream that broke off: %v", err)
	}
}

func TestDataFramesHaveFixedBytes(t *testing.T) {
	frame := encodeRequest(0x0102, testDigest)
	if got, want := hex.EncodeToString(frame), "28"+"0000000000000102"+strings.Repeat("d1", 32); got != want {
		t.Errorf("request: got %s, want %s", got, want)
	}
	id, block, err := readRequest(bufio.NewReader(bytes.NewReader(frame)))
	if want, _ := delta.FromDigest(testDigest); err != nil || id != 0x0102 || block != want {
		t.Errorf("request: read back %d, %s, %v", id, block, err)
	}
	frame = encodeHeading(3, statusOK, 500)
	if got, want := hex.EncodeToString(frame), "fd03"+"0000000000000003"+"00"; got != want {
		t.Errorf("response: got %s, want %s", got, want)
	}
	id, st, size, err := readHeading(bufio.NewReader(bytes.NewReader(frame)))
	if err != nil || id != 3 || st != statusOK || size != 500 {
		t.Errorf("response: read back %d, %d, %d, %v", id, st, size, err)
	}
	for name, bad := range map[string][]byte{
		"absent with bytes": encodeHeading(3, statusAbsent, 1),
		"unknown status":    encodeHeading(3, statusBusy+1, 0),
		"too long":          encodeHeading(3, statusOK, delta.MaxBlock+1),
		"too short":         append([]byte{8}, make([]byte, 8)...),
	} {
		if _, _, _, err := readHeading(bufio.NewReader(bytes.NewReader(bad))); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReadControl checks that whatever is read is written again as the same bytes.
func FuzzReadControl(f *testing.F) {
	for _, c := range controlGolden {
		frame, err := hex.DecodeString(c.hex)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		b := bufio.NewReader(r)
		m, err := readControl(b)
		if err != nil {
			return
		}
		used := len(in) - r.Len() - b.Buffered()
		frame, err := encodeControl(m)
		if err != nil || !bytes.Equal(frame, in[:used]) {
			t.Errorf("%x was read as %+v and written as %x, %v", in[:used], m, frame, err)
		}
	})
}

// FuzzReadData checks requests and responses in the same way.
func FuzzReadData(f *testing.F) {
	f.Add(encodeRequest(1, testDigest))
	f.Add(encodeHeading(1, statusOK, 1000))
	f.Add(encodeHeading(1, statusBusy, 0))
	f.Fuzz(func(t *testing.T, in []byte) {
		if id, block, err := readRequest(bufio.NewReader(bytes.NewReader(in))); err == nil {
			d, err := delta.Digest(block)
			if err != nil || !bytes.Equal(encodeRequest(id, d), in[:1+requestSize]) {
				t.Errorf("request %x, %v", in, err)
			}
		}
		if id, st, size, err := readHeading(bufio.NewReader(bytes.NewReader(in))); err == nil {
			if again := encodeHeading(id, st, size); !bytes.HasPrefix(in, again) {
				t.Errorf("response %x was written as %x", in, again)
			}
		}
	})
}
