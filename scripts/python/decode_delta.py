#!/usr/bin/env python3
"""Applies a file that `sparsecast diff -o` wrote to a checkpoint: a second opinion on the format.

    decode_delta.py DELTA OUT [OLD]

OLD and OUT are safetensors files; an anchor, a delta from nothing, needs no OLD. This decoder was written from
delta/doc.go alone, shares no code with the Go one and needs nothing but the standard library. It is slow, and meant for
tests and for readers: it checks the digests of chunks, but not the root of the result.
"""

import array
import hashlib
import json
import struct
import sys

BLOCK_WORDS = 256 << 10
FRAME_BYTES = 4 << 20
FRAME_TILES = 4096
CLASSES = 16
STATES = 4
TABLE_LOG = 11
TABLE = 1 << TABLE_LOG
UNCHANGED, SPARSE, RAW = 0, 1, 2

# dtype: bytes a word, lowest bit of the exponent, bits of the exponent, sign and magnitude
CODINGS = {
    "F64": (8, 52, 11, True), "F32": (4, 23, 8, True), "C64": (4, 23, 8, True), "F16": (2, 10, 5, True),
    "BF16": (2, 7, 8, True), "F8_E4M3": (1, 3, 4, True), "F8_E5M2": (1, 2, 5, True),
    "F8_E4M3FNUZ": (1, 3, 4, True), "F8_E5M2FNUZ": (1, 2, 5, True),
    "I16": (2, 0, 0, False), "U16": (2, 0, 0, False), "I32": (4, 0, 0, False), "U32": (4, 0, 0, False),
    "I64": (8, 0, 0, False), "U64": (8, 0, 0, False),
}  # fmt: skip


class Damaged(Exception):
    """The delta is not one."""


def require(condition, what):
    if not condition:
        raise Damaged(what)


# Records: the part of CBOR (RFC 8949) that they use.


def cbor(data, at=0):
    """Returns the value at `at`, and where it ends."""
    kind, info = data[at] >> 5, data[at] & 31
    at += 1
    n = info
    if info >= 24:
        size = 1 << (info - 24)
        n = int.from_bytes(data[at : at + size], "big")
        at += size
    if kind == 0:
        return n, at
    if kind == 2:
        return bytes(data[at : at + n]), at + n
    if kind == 3:
        return data[at : at + n].decode(), at + n
    if kind == 4:
        values = []
        for _ in range(n):
            value, at = cbor(data, at)
            values.append(value)
        return values, at
    require(kind == 5, "CBOR of major type %d" % kind)
    pairs = {}
    for _ in range(n):
        key, at = cbor(data, at)
        pairs[key], at = cbor(data, at)
    return pairs, at


class Cursor:
    """Reads bytes forward."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        require(self.at + n <= len(self.data), "ends early")
        self.at += n
        return self.data[self.at - n : self.at]

    def byte(self):
        return self.take(1)[0]

    def uvarint(self):
        v = shift = 0
        while True:
            b = self.byte()
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v


# The entropy coder.


def tans_table(freq):
    """Returns for every state its symbol, how many bits to read, and what to add to them for the next state."""
    require(sum(freq) == TABLE, "frequencies that do not add up")
    spread, at = [0] * TABLE, 0
    for symbol, f in enumerate(freq):
        for _ in range(f):
            spread[at] = symbol
            at = (at + TABLE // 2 + TABLE // 8 + 3) % TABLE
    table, seen = [], list(freq)
    for symbol in spread:
        x = seen[symbol]
        seen[symbol] += 1
        bits = TABLE_LOG + 1 - x.bit_length()
        table.append((symbol, bits, (x << bits) - TABLE))
    return table


def normalize(weights):
    """Returns frequencies that add up to TABLE, none of them 0 whose weight is not."""
    total, left, common = sum(weights), TABLE, 0
    freq = [0] * len(weights)
    for s, w in enumerate(weights):
        if 0 < w and w * TABLE < total:
            freq[s] = 1
            left -= 1
        else:
            common += w
    for s, w in enumerate(weights):
        if w > 0 and freq[s] == 0:
            freq[s] = max(1, w * left // common)
    while sum(freq) > TABLE:
        freq[freq.index(max(freq))] -= 1
    freq[freq.index(max(freq))] += TABLE - sum(freq)
    return freq


class Bits:
    """Reads bits and symbols forward; the symbols take turns on the states."""

    def __init__(self, data):
        require(data and data[0], "the code ends early")
        self.bits = int.from_bytes(data, "little")
        self.end = 8 * len(data)
        self.data = data
        self.at = (data[0] & -data[0]).bit_length()
        self.states = [self.take(TABLE_LOG) for _ in range(STATES)]
        self.turn = 0

    def take(self, n):
        if n == 0:
            return 0
        first, last = self.at >> 3, (self.at + n + 7) >> 3
        require(self.at + n <= self.end, "the code ends early")
        v = int.from_bytes(self.data[first:last], "little") >> (self.at & 7)
        self.at += n
        return v & ((1 << n) - 1)

    def symbol(self, table):
        turn = self.turn % STATES
        self.turn += 1
        symbol, bits, base = table[self.states[turn]]
        self.states[turn] = base + self.take(bits)
        return symbol

    def finish(self):
        require(self.at == self.end and self.states == [0] * STATES, "the code does not end where it began")


# Gaps. Fractions are in units of 2^-63.

ONE = 1 << 63
QUARTERS = (0x8000000000000000, 0x9837F0518DB8A96F, 0xB504F333F9DE6484, 0xD744FCCAD69D6AF4)


def gap_model(odds):
    """Returns the table for gaps of some odds, and how many of their lowest bits follow the symbol."""
    whole, power = (odds - 96) >> 2, QUARTERS[(odds - 96) & 3]
    if whole <= 0:
        fall = ((ONE >> 1) << 63) // ((ONE >> 1) + (power >> -whole >> 1))
    else:
        rest = ONE >> (whole + 1)
        fall = (rest << 63) // (rest + (power >> 1))
    low = 0
    while fall > ONE // 5 * 4:
        fall = (fall * fall >> 64) << 1
        low += 1
    weights, rest = [], ONE
    for _ in range(31):
        after = (rest * fall >> 64) << 1
        weights.append(max(1, (rest - after) >> 16))
        rest = after
    weights.append(max(1, rest >> 16))
    return tans_table(normalize(weights)), low


def read_ranks(bits, count, odds):
    table, low = gap_model(odds)
    ranks, rank = [], 0
    for _ in range(count):
        high = bits.symbol(table)
        gap = bits.take(low)
        if high == 31:
            n = bits.take(5)
            high += (1 << n | bits.take(n)) - 1
        rank += gap + (high << low)
        ranks.append(rank)
        rank += 1
    return ranks


# Steps.


def read_step_model(head):
    """Returns the lowest symbol, and the levels from there on."""
    lo = head.byte()
    if lo == 0:
        return 0, [15]
    span = head.byte()
    if span == 0:
        return lo - 1, [15]
    packed = head.take((span + 2) // 2)
    return lo - 1, [packed[i // 2] >> (4 * (i % 2)) & 15 for i in range(span + 1)]


def read_steps(bits, count, model):
    """Returns sizes less one, with their signs."""
    lo, levels = model
    table = None
    if len(levels) > 1:
        halves = (1 << 20, 1482910)
        table = tans_table(normalize([0] * lo + [halves[n & 1] << (n >> 1) if n else 0 for n in levels]))
    sizes = []
    for _ in range(count):
        s = bits.symbol(table) if table else lo
        if s >= 4:
            n = s // 2 - 1
            low = bits.take(min(n, 32))
            s = ((2 | s & 1) << n) + (low | bits.take(n - min(n, 32)) << 32)
        sizes.append(s)
    return [~size if bits.take(1) else size + 1 for size in sizes]


# Raw planes.


def read_plane_model(head):
    if head.byte() == 0:
        return None
    freq = []
    while sum(freq) < TABLE:
        f = head.uvarint()
        freq.append(f)
        if f == 0:
            freq += [0] * head.byte()
    require(len(freq) <= 256, "a plane of more than 256 bytes")
    return tans_table(freq)


# Frames.


def runs_of_words(tiles):
    """Returns the tiles by coding, in the order in which each comes first."""
    parts = {}
    for t in tiles:
        parts.setdefault(t["coding"], []).append(t)
    return parts.items()


class Sparse:
    def __init__(self, head, coding, tiles):
        self.coding, self.tiles = coding, tiles
        self.floor, present = 0, 1
        if coding[2]:
            self.floor = head.byte()
            present = head.byte() | head.byte() << 8
        self.heads = {}
        for c in range(CLASSES):
            if present >> c & 1:
                self.heads[c] = (head.uvarint(), head.byte(), read_step_model(head))

    def apply(self, bits):
        width, shift, exp_bits, is_float = self.coding
        scale = max(exp_bits, 8) - 8
        class_of = [
            max(0, min((i & ((1 << exp_bits) - 1)) - (self.floor << scale), CLASSES - 1)) for i in range(2 << exp_bits)
        ]
        if not exp_bits:
            shift, class_of = 64, [0]
        places = [[] for _ in range(CLASSES)]
        for t in self.tiles:
            words = t["new"]
            for i, w in enumerate(t["old"]):
                places[class_of[w >> shift]].append((words, i))
        top, mask = 1 << (8 * width - 1), (1 << 8 * width) - 1
        for c, (count, odds, model) in self.heads.items():
            ranks = read_ranks(bits, count, odds)
            for rank, step in zip(ranks, read_steps(bits, count, model)):
                require(rank < len(places[c]), "changes beyond the end")
                words, i = places[c][rank]
                w = words[i]
                if is_float:
                    w = w ^ mask if w & top else w | top
                w = (w + step) & mask
                if is_float:
                    w = w ^ top if w & top else w ^ mask
                words[i] = w


class Raw:
    def __init__(self, head, coding, tiles):
        self.coding, self.tiles = coding, tiles
        self.words = sum(len(t["new"]) for t in tiles)
        self.models = [read_plane_model(head) for _ in range(coding[0])]

    def store(self, head):
        self.planes = [None if m else head.take(self.words) for m in self.models]

    def apply(self, bits):
        width, _, _, is_float = self.coding
        for i, m in enumerate(self.models):
            if m:
                self.planes[i] = bytes(bits.symbol(m) for _ in range(self.words))
        at = 0
        for t in self.tiles:
            for i in range(len(t["new"])):
                w = 0
                for p in self.planes:
                    w = w << 8 | p[at]
                if is_float:
                    w = w >> 1 | (w & 1) << (8 * width - 1)
                t["new"][i] = w
                at += 1


def decode_frame(code, tiles):
    if not code:
        return
    head = Cursor(code)
    at = 0
    while at < len(tiles):
        v = head.uvarint()
        for t in tiles[at : at + (v >> 2)]:
            t["mode"] = v & 3
        at += v >> 2
    sparse = [Sparse(head, c, part) for c, part in runs_of_words([t for t in tiles if t["mode"] == SPARSE])]
    raw = [Raw(head, c, part) for c, part in runs_of_words([t for t in tiles if t["mode"] == RAW])]
    for part in raw:
        part.store(head)
    rest = head.take(len(code) - head.at)
    bits = Bits(rest) if rest else None
    for part in sparse + raw:
        part.apply(bits)
    if bits:
        bits.finish()


# States: lists of tensors, and how the schema cuts them.


def read_cuts(schema):
    """Returns the boxes of each tensor, (start, extent), in order."""
    tensors = schema[1]
    boxes = [[([0] * len(shape), shape)] for _, _, shape, _ in tensors]
    cuts, t = Cursor(schema.get(4, b"")), -1
    while cuts.at < len(cuts.data):
        t += cuts.uvarint() + 1
        boxes[t] = []
        for _ in range(cuts.uvarint()):
            box = [(cuts.uvarint(), cuts.uvarint()) for _ in tensors[t][2]]
            boxes[t].append(([b[0] for b in box], [b[1] for b in box]))
    return boxes


def places_of(shape, start, extent):
    """Yields the elements of a box in row-major order, as runs (first, length)."""
    if not shape:
        yield 0, 1
        return
    inner = 1
    for n in shape[1:]:
        inner *= n
    if list(start[1:]) == [0] * (len(shape) - 1) and list(extent[1:]) == list(shape[1:]):
        yield start[0] * inner, extent[0] * inner
        return
    for i in range(start[0], start[0] + extent[0]):
        for first, n in places_of(shape[1:], start[1:], extent[1:]):
            yield i * inner + first, n


TYPECODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def words_of(data, width):
    words = array.array(TYPECODES[width])
    require(words.itemsize == width, "this machine has other integers")
    words.frombytes(data)
    if sys.byteorder != "little":
        words.byteswap()
    return words


def pieces_of(schema):
    """Returns (group, tensor, box) in the order of the stream."""
    members, pieces = Cursor(schema.get(5, b"")), []
    for t, boxes in enumerate(read_cuts(schema)):
        for box in boxes:
            pieces.append((members.uvarint() if members.data else 0, t, box))
    return sorted(pieces, key=lambda p: (p[0], p[1], p[2][0]))


def decode(schema, streams, old):
    """Returns the bytes of all tensors."""
    tensors = schema[1]
    new = [bytearray(b) for b in old]
    frames = []  # (group, tiles)
    size = 0
    for group, t, (start, extent) in pieces_of(schema):
        _, dtype, shape, total = tensors[t]
        coding = CODINGS.get(dtype, (1, 0, 0, False))
        elements = 1
        for n in shape:
            elements *= n
        if len(shape) == 0 or elements == 0 or list(extent) == list(shape):
            runs = [(0, total)]
        else:
            per = total // elements  # boxes are cut at whole elements
            runs = [(first * per, n * per) for first, n in places_of(shape, start, extent)]
        data = b"".join(bytes(old[t][first : first + n]) for first, n in runs)
        most = BLOCK_WORDS * coding[0]
        whole = words_of(data, coding[0])
        for off in range(0, len(data), most):
            words = whole[off // coding[0] : (off + most) // coding[0]]
            n = len(words) * coding[0]
            if not frames or frames[-1][0] != group or size + n > FRAME_BYTES or len(frames[-1][1]) == FRAME_TILES:
                frames.append((group, []))
                size = 0
            tile = {"coding": coding, "old": words, "new": words[:], "tensor": t, "runs": runs, "off": off}
            frames[-1][1].append(tile)
            size += n
    groups = len(schema.get(3, [""]))
    streams = [Cursor(s) for s in streams]
    require(len(streams) == groups, "%d streams for %d groups" % (len(streams), groups))
    for s in streams:
        require(s.take(8) == b"SPCAST\0\x03", "not a stream of this format")
        s.byte()  # the profile of the encoder
    for group, tiles in frames:
        s = streams[group]
        decode_frame(s.take(s.uvarint()), tiles)
        for tile in tiles:
            words = tile["new"]
            if sys.byteorder != "little":
                words = words[:]
                words.byteswap()
            scatter(new[tile["tensor"]], tile["runs"], tile["off"], words.tobytes())
    for s in streams:
        require(s.at == len(s.data), "bytes behind the last frame")
    return new


def scatter(tensor, runs, off, data):
    """Writes data to the runs, from byte `off` of them on."""
    for first, n in runs:
        if off < n and data:
            part = data[: n - off]
            tensor[first + off : first + off + len(part)] = part
            data, off = data[len(part) :], 0
        else:
            off = max(0, off - n)


# Files.


def read_delta(path):
    """Returns the manifest, the schema and the stream of each group."""
    with open(path, "rb") as f:
        require(f.read(8) == b"SPCFILE\x02", "not a delta file")

        def block():
            return f.read(struct.unpack("<I", f.read(4))[0])

        manifest, _ = cbor(block())
        chunk_size, coded = manifest[8], manifest[7]
        digests = manifest.get(9, b"")
        for leaf in split(manifest.get(10, b""), 32):
            b = block()
            require(hashlib.sha256(b).digest() == leaf, "a leaf is damaged")
            digests += b
        b = block()
        require(hashlib.sha256(b).digest() == manifest[1], "the schema is damaged")
        schema, _ = cbor(b)
        streams, digests = [], iter(split(digests, 32))
        for size in manifest.get(11, [coded]):
            stream = b""
            while len(stream) < size:
                chunk = f.read(min(chunk_size, size - len(stream)))
                require(hashlib.sha256(chunk).digest() == next(digests), "a chunk is damaged")
                stream += chunk
            streams.append(stream)
    return manifest, schema, streams


def split(data, n):
    return [data[i : i + n] for i in range(0, len(data), n)]


def read_safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {name: data[slice(*t["data_offsets"])] for name, t in header.items()}


def write_safetensors(path, tensors):
    """Writes (name, dtype, shape, bytes)."""
    header, at = {}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    head = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head)
        for t in tensors:
            f.write(t[3])


def main(delta, out, old=None):
    manifest, schema, streams = read_delta(delta)
    tensors = schema[1]
    if manifest[2] == bytes(32):
        before = [bytes(t[3]) for t in tensors]
    else:
        require(old is not None, "a delta needs the checkpoint that it starts from")
        have = read_safetensors(old)
        before = [have[t[0]] for t in tensors]
    after = decode(schema, streams, before)
    write_safetensors(out, [(t[0], t[1], t[2], data) for t, data in zip(tensors, after)])


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
