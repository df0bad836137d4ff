package delta

import (
	"errors"
	"fmt"
)

// sparseDecoder undoes sparseEncoder. It belongs to one worker.
type sparseDecoder[T word] struct {
	coding  coding
	least   uint8 // the floor of the classes
	rule    sortRule
	words   int                // in the row
	counts  [classCount]uint32 // words so far
	classes [classCount]changes[T]
	changed [classCount]int // changes in the row
	next    [classCount]int // the change that comes next
	rowTables

	span span
	pad  [spanWords]T
}

// head reads what sparseEncoder.head wrote of a row of that many words. It returns the number of changes.
func (d *sparseDecoder[T]) head(in *cursor, c coding, words int) (changed int, err error) {
	var floor uint8
	present := uint16(1)
	if c.classes() > 1 {
		b, err := in.take(3)
		if err != nil {
			return 0, err
		}
		floor, present = b[0], uint16(b[1])|uint16(b[2])<<8
	}
	if present == 0 {
		return 0, errors.New("sparse blocks without a change")
	}
	d.coding, d.least, d.rule = c, floor, ruleOf(c, floor)
	d.words, d.counts, d.next = words, [classCount]uint32{}, [classCount]int{}
	d.changed = [classCount]int{}
	for i := range d.classes {
		d.classes[i].truncate(0)
		if present>>i&1 == 0 {
			continue
		}
		n, err := in.count(words - changed)
		if err == nil && n == 0 {
			err = errors.New("no change")
		}
		if err == nil {
			err = d.headClass(i, in)
			d.changed[i] = n
		}
		if err != nil {
			return 0, fmt.Errorf("class %d: %w", i, err)
		}
		changed += n
	}
	return changed, nil
}

func (d *sparseDecoder[T]) headClass(i int, in *cursor) error {
	b, err := in.take(1)
	if err != nil {
		return err
	}
	if b[0] >= oddsCount {
		return errors.New("odds out of range")
	}
	d.odds[i] = odds(b[0])
	d.models[i], err = readSteps(in, d.coding.width)
	return err
}

// take reads the row.
func (d *sparseDecoder[T]) take(r *tansReader) error {
	for i, n := range d.changed {
		if n == 0 {
			continue
		}
		c := &d.classes[i]
		if cap(c.ranks) < n {
			*c = changes[T]{make([]uint32, n), make([]T, n)}
		}
		c.truncate(n)
		if err := takeGaps(r, c.ranks, gapsOf(d.odds[i]), d.words); err != nil {
			return fmt.Errorf("class %d: %w", i, err)
		}
		takeSteps(r, c.steps, &d.models[i])
		if err := takeSigns(r, c.steps); err != nil {
			return fmt.Errorf("class %d: %w", i, err)
		}
	}
	return nil
}

func takeGaps(r *tansReader, ranks []uint32, t *gapTable, words int) error {
	states, turn, at := r.states, r.turn, r.at
	rank, low := uint64(0), t.low&31
	for i := range ranks {
		e := t.entries[states[turn%tansStates]%tansSize]
		window := r.window(at)
		n := e.bits() & 15
		states[turn%tansStates] = e.base() + uint32(window&(1<<n-1))
		turn++
		high, gap := uint64(e.symbol()), window>>n&(1<<low-1)
		at += int(n + low)
		if high == gapSymbols-1 {
			r.at = at
			high = takeLongGap(r)
			at = r.at
		}
		rank += gap + high<<low
		if rank >= uint64(words) {
			return errors.New("changes beyond the end")
		}
		ranks[i] = uint32(rank)
		rank++
	}
	r.states, r.turn, r.at = states, turn, at
	return r.overrun()
}

// takeLongGap reads what putLongGap wrote.
func takeLongGap(r *tansReader) (high uint64) {
	n := uint(r.take(gapLengthBits))
	return gapSymbols - 2 + 1<<n + r.take(n)
}

func takeSteps[T word](r *tansReader, steps []T, m *stepModel) {
	if m.certain() {
		size, open := stepStart(m.lo)
		for i := range steps {
			steps[i] = T(size)
			if open > 0 {
				steps[i] = T(size + r.takeWide(open))
			}
		}
		return
	}
	var t tansTable
	m.build(&t)
	for i := range steps {
		size, open := stepStart(uint8(r.symbol(&t)))
		steps[i] = T(size + r.takeWide(open)) // one less than the size, until its sign is known
	}
}

func takeSigns[T word](r *tansReader, steps []T) error {
	var wrong T // has its top bit set where a step is out of range
	for len(steps) > 0 {
		n := min(32, len(steps))
		signs := r.take(uint(n))
		for i, size := range steps[:n] {
			down := T(signs & 1)
			wrong |= size | (size+1)&^-down
			steps[i] = size ^ -down + 1 - down
			signs >>= 1
		}
		steps = steps[n:]
	}
	if wrong&topBit[T]() != 0 {
		return errStep
	}
	return r.overrun()
}

// apply makes the new words of the next block, which hold a copy of the old ones.
func (d *sparseDecoder[T]) apply(oldBytes, newBytes []byte) {
	old, new := wordsOf[T](oldBytes), wordsOf[T](newBytes)
	for len(old) > 0 {
		n := min(spanWords, len(old))
		a := whole(old[:n], &d.pad)
		arrange(&d.span, a, &d.rule)
		d.span.totals[0] -= uint16(len(a) - n)
		d.applySpan(old[:n], new[:n])
		old, new = old[n:], new[n:]
	}
}

// applySpan takes the steps whose turn it is.
func (d *sparseDecoder[T]) applySpan(old, new []T) {
	for class := range classCount {
		if len(d.classes[class].ranks) == 0 {
			continue
		}
		ranks, steps := d.classes[class].ranks[d.next[class]:], d.classes[class].steps[d.next[class]:]
		places := d.span.find(class, ranks, d.counts[class])
		for i, place := range places {
			new[place] = stepFrom(old[place], steps[i], d.coding.float)
		}
		d.next[class] += len(places)
		d.counts[class] += uint32(d.span.totals[class])
	}
}

// finish reports whether every change had its word.
func (d *sparseDecoder[T]) finish() error {
	for i, c := range d.classes {
		if d.next[i] < len(c.ranks) {
			return fmt.Errorf("class %d: %d changes beyond the end", i, len(c.ranks)-d.next[i])
		}
	}
	return nil
}

// floor returns the floor of the classes.
func (d *sparseDecoder[T]) floor() uint8 { return d.least }
