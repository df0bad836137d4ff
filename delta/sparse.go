package delta

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// The words of one coding in the sparse blocks of a frame make one row. In each class of it the changed words are ranks
// among the words of that class, and the gaps between them are coded apart from those of other classes: where the grid is
// fine changes are dense and gaps short, where it is coarse they are rare; mixed they would tell nothing.

// changes are the changed words of a class, in order.
type changes[T word] struct {
	ranks []uint32
	steps []T // modulo the size of the grid
}

func (c *changes[T]) truncate(n int) { c.ranks, c.steps = c.ranks[:n], c.steps[:n] }

// reserve makes room for n more. What append does to long slices leaves five times as much behind.
func (c *changes[T]) reserve(n int) {
	if cap(c.ranks)-len(c.ranks) < n {
		room := max(2*cap(c.ranks), len(c.ranks)+n) - len(c.ranks)
		c.ranks, c.steps = slices.Grow(c.ranks, room), slices.Grow(c.steps, room)
	}
}

// sparseEncoder codes the row of one coding. It belongs to one worker.
type sparseEncoder[T word] struct {
	coding  coding
	floor   uint8
	rule    sortRule
	counts  [classCount]uint32 // words so far
	classes [classCount]changes[T]
	rowTables

	span           span
	oldPad, newPad [spanWords]T
}

// rowTables are what an encoder chooses for a row, beside the floor of its classes.
type rowTables struct {
	odds   [classCount]odds
	models [classCount]stepModel
}

func (t *rowTables) tables() *rowTables { return t }

func (e *sparseEncoder[T]) begin(c coding, floor uint8) {
	e.coding, e.floor, e.rule = c, floor, ruleOf(c, floor)
	e.counts = [classCount]uint32{}
	for i := range e.classes {
		e.classes[i].truncate(0)
	}
}

// copy makes e go on where o is, which is of the same width.
func (e *sparseEncoder[T]) copy(o sparseWriter) {
	from := o.(*sparseEncoder[T])
	e.begin(from.coding, from.floor)
	e.counts = from.counts
	for i, c := range from.classes {
		e.classes[i].ranks = append(e.classes[i].ranks, c.ranks...)
		e.classes[i].steps = append(e.classes[i].steps, c.steps...)
	}
}

// add finds the changes of the next block.
func (e *sparseEncoder[T]) add(oldBytes, newBytes []byte) {
	old, new := wordsOf[T](oldBytes), wordsOf[T](newBytes)
	for len(old) > 0 {
		n := min(spanWords, len(old))
		a, b := whole(old[:n], &e.oldPad), whole(new[:n], &e.newPad)
		e.addRows(a, b)
		e.counts[0] -= uint32(len(a) - n)
		old, new = old[n:], new[n:]
	}
}

func (e *sparseEncoder[T]) addRows(old, new []T) {
	places := diff(&e.span, old, new)
	arrange(&e.span, old, &e.rule)
	for i, n := range e.span.totals {
		e.classes[i].reserve(min(int(n), len(places)))
	}
	for _, place := range places {
		w := old[place]
		class := e.rule.class(uint64(w))
		c := &e.classes[class]
		c.ranks = append(c.ranks, e.counts[class]+e.span.rank(class, place))
		c.steps = append(c.steps, stepBetween(w, new[place], e.coding.float))
	}
	for c, n := range e.span.totals {
		e.counts[c] += uint32(n)
	}
}

// mark is how far the row had come.
type mark struct {
	counts  [classCount]uint32
	changed [classCount]int
}

func (e *sparseEncoder[T]) mark() (m mark) {
	m.counts = e.counts
	for i, c := range e.classes {
		m.changed[i] = len(c.ranks)
	}
	return m
}

// back takes back what was added since.
func (e *sparseEncoder[T]) back(m mark) {
	e.counts = m.counts
	for i := range e.classes {
		e.classes[i].truncate(m.changed[i])
	}
}

// changed returns how many words changed since m.
func (e *sparseEncoder[T]) changed(m mark) (n int) {
	for i, c := range e.classes {
		n += len(c.ranks) - m.changed[i]
	}
	return n
}

// cost returns about how many bits the steps since m take.
func (e *sparseEncoder[T]) cost(m mark) (n int) {
	for i, c := range e.classes {
		for _, s := range c.steps[m.changed[i]:] {
			size, _ := split(s)
			n += 1 + bits.Len64(size)
		}
	}
	return n
}

// choose chooses the tables of the row, once all of it is there.
func (e *sparseEncoder[T]) choose() {
	for i, c := range e.classes {
		if len(c.ranks) == 0 {
			continue
		}
		seen := countSteps(c.steps)
		e.odds[i], e.models[i] = oddsOf(uint64(len(c.ranks)), uint64(e.counts[i])), stepsOf(&seen)
	}
}

// countSteps counts the symbols of steps.
func countSteps[T word](steps []T) (seen [maxStepSymbols]uint32) {
	for _, step := range steps {
		if (step+1)&^2 == 0 { // one up or down, as most are
			seen[0]++
			continue
		}
		size, _ := split(step)
		s, _ := stepSymbol(size)
		seen[s]++
	}
	return seen
}

// head appends what a decoder must know of the row: the floor, where there are exponents; which classes have changes;
// and for each such class their number and its tables. It returns the number of symbols that put writes.
func (e *sparseEncoder[T]) head(b []byte) (head []byte, symbols int) {
	n := e.coding.classes()
	if n > 1 {
		b = append(b, e.floor)
		var present uint16
		for i := range n {
			if len(e.classes[i].ranks) > 0 {
				present |= 1 << i
			}
		}
		b = append(b, byte(present), byte(present>>8))
	}
	for i := range n {
		c := &e.classes[i]
		changed := len(c.ranks)
		if changed == 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(changed))
		b = e.models[i].append(append(b, byte(e.odds[i])))
		symbols += changed
		if !e.models[i].certain() {
			symbols += changed
		}
	}
	return b, symbols
}

// put writes the row, in reverse.
func (e *sparseEncoder[T]) put(w *tansWriter) {
	for i := e.coding.classes() - 1; i >= 0; i-- {
		c := &e.classes[i]
		if len(c.ranks) == 0 {
			continue
		}
		putSigns(w, c.steps)
		putSteps(w, c.steps, &e.models[i])
		putGaps(w, c.ranks, gapsOf(e.odds[i]))
	}
}

func putSigns[T word](w *tansWriter, steps []T) {
	for len(steps) > 0 {
		last := steps[max(0, len(steps)-32):]
		var v uint64
		for i := len(last) - 1; i >= 0; i-- {
			v <<= 1
			if last[i]&topBit[T]() != 0 {
				v |= 1
			}
		}
		w.put(v, uint(len(last)))
		steps = steps[:len(steps)-len(last)]
	}
}

func putSteps[T word](w *tansWriter, steps []T, m *stepModel) {
	if m.certain() {
		putOpen(w, steps, m.lo)
		return
	}
	var t tansTable
	m.build(&t)
	for i := len(steps) - 1; i >= 0; i-- {
		size, _ := split(steps[i])
		s, open := stepSymbol(size)
		w.putWide(size&(1<<open-1), open)
		w.symbol(&t, s)
	}
}

// putOpen writes what the only symbol of steps leaves open.
func putOpen[T word](w *tansWriter, steps []T, symbol uint8) {
	_, open := stepStart(symbol)
	if open == 0 {
		return
	}
	for i := len(steps) - 1; i >= 0; i-- {
		size, _ := split(steps[i])
		w.putWide(size&(1<<open-1), open)
	}
}

func putGaps(w *tansWriter, ranks []uint32, t *gapTable) {
	states, turn := w.states, w.turn
	for i := len(ranks) - 1; i >= 0; i-- {
		gap := uint64(ranks[i])
		if i > 0 {
			gap -= uint64(ranks[i-1]) + 1
		}
		high := gap >> (t.low & 63)
		if high >= gapSymbols-1 {
			putLongGap(w, high)
			high = gapSymbols - 1
		}
		turn--
		next, v, n := t.code(states[turn%tansStates], uint8(high))
		states[turn%tansStates] = next
		w.putWide(gap&(1<<(t.low&63)-1)<<(n&63)|v, t.low+n)
	}
	w.states, w.turn = states, turn
}

// putLongGap writes what a gap has beyond the last symbol.
func putLongGap(w *tansWriter, high uint64) {
	more := high - (gapSymbols - 1) + 1
	n := uint(bits.Len64(more)) - 1
	w.put(more&(1<<n-1), n)
	w.put(uint64(n), gapLengthBits)
}

// gapLengthBits hold the length of what a gap has beyond the last symbol.
const gapLengthBits = 5
