package safetensors

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// one is a header with one tensor of two bytes, whose description may be replaced.
func one(description string) string { return `{"t":` + description + `}` }

func TestOpenRefuses(t *testing.T) {
	const good = `{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}`
	cases := []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "half-written"},
		{"no header", []byte("\x02\x00\x00\x00\x00\x00\x00\x00"), "half-written"},
		{"reserved but unwritten", make([]byte, 100), "header: empty (half-written"},
		{"short header", pack("{", "  "), "header of 1 bytes"},
		{"huge header", append(binary.LittleEndian.AppendUint64(nil, 1<<63), "{}"...), "is this a safetensors file?"},
		{"header above the bound", append(binary.LittleEndian.AppendUint64(nil, maxHeader+1), "{}"...), "100000001"},
		{"header beyond the file", append(binary.LittleEndian.AppendUint64(nil, 3), "{}"...), "half-written"},
		{"leading white space", pack(" {}", ""), "begin with '{'"},
		{"an array", pack("[]", ""), "begin with '{'"},
		{"not UTF-8", pack("{\"\xff\":0}", ""), "not valid UTF-8"},
		{"cut JSON", pack(`{"t":{"dtype"`, ""), "ends early"},
		{"bad JSON", pack(`{"t":}`, ""), "invalid JSON"},
		{"no comma", pack(`{"__metadata__":{"a":"b" "c":"d"}}`, ""), "invalid JSON"},
		{"trailing comma", pack(`{"__metadata__":{"a":"b",}}`, ""), "invalid JSON"},
		{"comma at the end", pack(`{"t":`+good+`,}`, "ab"), "invalid JSON"},
		{"closed by the wrong brace", pack(`{]`, ""), "invalid JSON"},
		{"control character", pack("{\"\n\":0}", ""), "invalid JSON"},
		{"trailing garbage", pack(`{}x`, ""), "more follows"},
		{"trailing object", pack(`{}{}`, ""), "more follows"},
		{"trailing zeros", pack("{}\x00\x00", ""), "more follows"},
		{"low surrogate", pack(`{"\udc00":`+good+`}`, "ab"), "surrogate"},
		{"high surrogate", pack(`{"\ud800x":`+good+`}`, "ab"), "surrogate"},
		{"high surrogate at the end", pack(`{"\ud800`, "ab"), "surrogate"},
		{"two high surrogates", pack(`{"\ud800\ud800":`+good+`}`, "ab"), "surrogate"},

		{"metadata twice", pack(`{"__metadata__":{},"__metadata__":{}}`, ""), "duplicate"},
		{"metadata key twice", pack(`{"__metadata__":{"a":"b","\u0061":"c"}}`, ""), `duplicate key "a"`},
		{"number in metadata", pack(`{"__metadata__":{"a":1}}`, ""), "want a string, found the number"},
		{"object in metadata", pack(`{"__metadata__":{"a":{}}}`, ""), `want a string, found "{"`},
		{"null in metadata", pack(`{"__metadata__":{"a":null}}`, ""), "want a string, found null"},
		{"metadata an array", pack(`{"__metadata__":[]}`, ""), "want an object"},

		{"tensor a string", pack(one(`"x"`), ""), `found the string "x"`},
		{"tensor an array", pack(one(`["BF16",[1],[0,2]]`), "ab"), `tensor "t"`},
		{"tensor null", pack(one(`null`), ""), "found null"},
		{"tensor twice", pack(`{"t":`+good+`,"t":`+good+`}`, "ab"), `duplicate tensor "t"`},
		{"unknown key", pack(one(`{"dtype":"BF16","shape":[1],"data_offsets":[0,2],"x":1}`), "ab"), `key "x"`},
		{"other case", pack(one(`{"DType":"BF16","shape":[1],"data_offsets":[0,2]}`), "ab"), `key "DType"`},
		{"dtype twice", pack(one(`{"dtype":"BF16","dtype":"BF16","shape":[1],"data_offsets":[0,2]}`), "ab"), `duplicate key "dtype"`},
		{"shape twice", pack(one(`{"dtype":"BF16","shape":[],"shape":[1],"data_offsets":[0,2]}`), "ab"), `duplicate key "shape"`},
		{"offsets twice", pack(one(`{"dtype":"BF16","data_offsets":[],"shape":[1],"data_offsets":[0,2]}`), "ab"), `duplicate key "data_offsets"`},
		{"no dtype", pack(one(`{"shape":[1],"data_offsets":[0,2]}`), "ab"), "want dtype"},
		{"no shape", pack(one(`{"dtype":"BF16","data_offsets":[0,2]}`), "ab"), "want dtype"},
		{"no offsets", pack(one(`{"dtype":"BF16","shape":[1]}`), "ab"), "want dtype"},
		{"one offset", pack(one(`{"dtype":"BF16","shape":[1],"data_offsets":[2]}`), "ab"), "two data_offsets"},
		{"three offsets", pack(one(`{"dtype":"BF16","shape":[1],"data_offsets":[0,2,4]}`), "ab"), "more than 2"},
		{"dtype a number", pack(one(`{"dtype":1,"shape":[1],"data_offsets":[0,2]}`), "ab"), "dtype: want a string"},
		{"shape null", pack(one(`{"dtype":"BF16","shape":null,"data_offsets":[0,2]}`), "ab"), "shape: want"},
		{"shape of strings", pack(one(`{"dtype":"BF16","shape":["1"],"data_offsets":[0,2]}`), "ab"), `shape: "\"1\"": want an unsigned`},
		{"nested shape", pack(one(`{"dtype":"BF16","shape":[[1]],"data_offsets":[0,2]}`), "ab"), `shape: "[1]": want an unsigned`},
		{"null in a shape", pack(one(`{"dtype":"BF16","shape":[null],"data_offsets":[0,2]}`), "ab"), `shape: "null": want an unsigned`},
		{"string with a comma", pack(one(`{"dtype":"BF16","shape":["1,1"],"data_offsets":[0,2]}`), "ab"), "want an unsigned"},
		{"no comma in a shape", pack(one(`{"dtype":"BF16","shape":[1 1],"data_offsets":[0,2]}`), "ab"), "invalid JSON"},
		{"cut in a shape", pack(one(`{"dtype":"BF16","shape":[1`)[:31], "ab"), "ends early"},
		{"shape an object", pack(one(`{"dtype":"BF16","shape":{},"data_offsets":[0,2]}`), "ab"), "shape: want an array"},
		{"negative shape", pack(one(`{"dtype":"BF16","shape":[-1],"data_offsets":[0,2]}`), "ab"), `shape: "-1": want an unsigned`},
		{"minus zero", pack(one(`{"dtype":"BF16","shape":[1],"data_offsets":[-0,2]}`), "ab"), `data_offsets: "-0"`},
		{"float", pack(one(`{"dtype":"BF16","shape":[1],"data_offsets":[0,2.0]}`), "ab"), `data_offsets: "2.0"`},
		{"exponent", pack(one(`{"dtype":"BF16","shape":[1],"data_offsets":[0,2e0]}`), "ab"), `data_offsets: "2e0"`},
		{"leading zero", pack(one(`{"dtype":"BF16","shape":[01],"data_offsets":[0,2]}`), "ab"), "invalid JSON"},
		{"above 64 bits", pack(one(`{"dtype":"BF16","shape":[18446744073709551616],"data_offsets":[0,2]}`), "ab"), "64-bit"},
		{"long number", pack(one(`{"dtype":"BF16","shape":[`+strings.Repeat("9", 5000)+`],"data_offsets":[0,2]}`), "ab"), "... (5000 bytes)"},
		{"65 dimensions", pack(one(`{"dtype":"BF16","shape":[1`+strings.Repeat(",1", 64)+`],"data_offsets":[0,2]}`), "ab"), "more than 64"},

		{"backwards", pack(one(`{"dtype":"BF16","shape":[1],"data_offsets":[2,0]}`), "ab"), "after its end"},
		{"beyond any file", pack(one(`{"dtype":"X","shape":[1],"data_offsets":[0,18446744073709551615]}`), "ab"), "at most"},
		{"shape overflows", pack(one(`{"dtype":"I32","shape":[2,18446744073709551614],"data_offsets":[0,16]}`), strings.Repeat("x", 16)), "overflows"},
		{"bits overflow", pack(one(`{"dtype":"I32","shape":[2,9223372036854775807],"data_offsets":[0,16]}`), strings.Repeat("x", 16)), "overflows"},
		{"shape of an unknown dtype overflows", pack(one(`{"dtype":"X","shape":[4294967296,4294967296,0],"data_offsets":[0,2]}`), "ab"), "overflows"},
		{"size too small", pack(one(`{"dtype":"I32","shape":[2,2],"data_offsets":[0,4]}`), "abcd"), "4 bytes, but shape [2 2] of I32 takes 16"},
		{"size too large", pack(one(`{"dtype":"BF16","shape":[0],"data_offsets":[0,2]}`), "ab"), "takes 0"},
		{"ends inside a byte", pack(one(`{"dtype":"F6_E2M3","shape":[3],"data_offsets":[0,2]}`), "ab"), "inside a byte"},

		{"hole at the start", pack(one(`{"dtype":"U8","shape":[1],"data_offsets":[1,2]}`), "ab"), `tensor "t": a hole of 1 bytes`},
		{"hole between", pack(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, "abc"), `tensor "b": a hole`},
		{"overlap", pack(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, "ab"), `tensor "b": overlaps "a"`},
		{"the same bytes twice", pack(`{"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, "ab"), "overlaps"},
		{"empty tensor inside another", pack(`{"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, "ab"), `tensor "b": overlaps "a"`},
		{"file too long", pack(one(good), "abc"), "1 bytes after the last tensor"},
		{"file too short", pack(one(good), "a"), "1 bytes of data, the header promises 2 (half-written? wait"},
	}
	dir := t.TempDir()
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprintf("%d.safetensors", i)
			_, err := Open(put(t, dir, name, c.file))
			wantError(t, err, name, c.want)
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestOpenAccepts(t *testing.T) {
	cases := []struct {
		name string
		file []byte
		want string // tensors
	}{
		{"none", pack("{}", ""), "[]"},
		{"padding of any white space", pack("{}\r \t\n", ""), "[]"},
		{"metadata alone", pack(`{"__metadata__":{"format":"pt"}}`, ""), "[]"},
		{"null metadata", pack(`{"__metadata__":null}`, ""), "[]"},
		{"scalar", pack(`{"t":{"dtype":"I32","shape":[],"data_offsets":[0,4]}}`, "abcd"), "[{t I32 [] 4}]"},
		{"empty", pack(`{"t":{"dtype":"I32","shape":[2,0],"data_offsets":[0, 0]}}`, ""), "[{t I32 [2 0] 0}]"},
		{"empty ones at the borders", pack(`{"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"c":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},`+
			`"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"d":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}`, "ab"),
			"[{a U8 [1] 1} {b U8 [0] 0} {c U8 [1] 1} {d U8 [0] 0}]"},
		{"keys in any order", pack(`{"t":{"data_offsets":[0,1],"shape":[2],"dtype":"F4"}}`, "a"), "[{t F4 [2] 1}]"},
		{"unknown dtype", pack(`{"t":{"dtype":"Q8_0","shape":[32],"data_offsets":[0,34]}}`, strings.Repeat("x", 34)), "[{t Q8_0 [32] 34}]"},
		{"no name, other order than the file", pack(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, "ab"), "[{ U8 [1] 1} {b U8 [1] 1}]"},
		{"escapes", pack(`{"\ud83d\ude00\u00e9\\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, "a"), `[{😀é\ud800 U8 [1] 1}]`},
	}
	dir := t.TempDir()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := fmt.Sprint(mustOpen(t, put(t, dir, "x", c.file)).Tensors())
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	dir := t.TempDir()
	for header, want := range map[string]map[string]string{
		`{}`:                        nil,
		`{"__metadata__":null}`:     nil,
		`{"__metadata__":{}}`:       {},
		`{"__metadata__":{"":"b"}}`: {"": "b"},
	} {
		got := mustOpen(t, put(t, dir, "x", pack(header, ""))).Metadata()
		if (got == nil) != (want == nil) || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", header, got, want)
		}
	}
}

func TestBitWidth(t *testing.T) {
	for dtype, want := range map[string]int{
		"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
		"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
		"F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
	} {
		if got, known := BitWidth(dtype); got != want || !known {
			t.Errorf("%s: %d, %v, want %d", dtype, got, known, want)
		}
	}
	for _, dtype := range []string{"", "bf16", "BF16 ", "F128"} {
		if got, known := BitWidth(dtype); got != 0 || known {
			t.Errorf("%q: %d, %v, want 0, false", dtype, got, known)
		}
	}
}
