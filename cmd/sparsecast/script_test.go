package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the command as its users do, one theme a file of testdata.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(patience),
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"checkpoint": makeCheckpoint,
			"policy":     makePolicies,
			"flip":       flipBit,
			"cut":        cutOff,
			"occupy":     occupyPort,
			"exits":      exitsWith,
			"until":      untilItWorks,
		},
	})
}

// makeCheckpoint writes a checkpoint: checkpoint FILE NAME:DTYPE:2x3=PATTERN..., the pattern in hexadecimal, repeated.
func makeCheckpoint(ts *testscript.TestScript, _ bool, args []string) {
	var w weights
	for _, arg := range args[1:] {
		t, err := parseTensor(arg)
		ts.Check(err)
		w = append(w, t)
	}
	ts.Check(w.save(ts.MkAbs(args[0])))
}

// makePolicies writes step_*.safetensors of a made-up policy: policy DIR BYTES UPDATES.
func makePolicies(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	updates, err := strconv.Atoi(args[2])
	ts.Check(err)
	_, err = policySteps(ts.MkAbs(args[0]), size, updates, 2e-6)
	ts.Check(err)
}

// flipBit changes one bit of a file: flip FILE OFFSET, which counts from the end when it is negative.
func flipBit(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 0x10
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o600))
}

// cutOff leaves the first bytes of a file: cut FILE BYTES, or without the last ones when the number is negative.
func cutOff(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if n < 0 {
		n += info.Size()
	}
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// occupyPort listens on a TCP port and writes its number in place of PORT: occupy FILE...
func occupyPort(ts *testscript.TestScript, _ bool, args []string) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { ln.Close() })
	_, port, err := net.SplitHostPort(ln.Addr().String())
	ts.Check(err)
	for _, name := range args {
		b, err := os.ReadFile(ts.MkAbs(name))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name), bytes.ReplaceAll(b, []byte("PORT"), []byte(port)), 0o600))
	}
}

// exitsWith runs a command that must end with just that code: exits CODE COMMAND ARG...
func exitsWith(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s ended with code %d, want %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// untilItWorks runs a command again and again until it succeeds and prints what matches: until PATTERN COMMAND ARG...
func untilItWorks(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	end := time.Now().Add(patience)
	for {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s never printed %q: %v", strings.Join(args[1:], " "), args[0], err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// parseTensor reads NAME:DTYPE:2x3=PATTERN; a shape of 1 dimension is one number, of none is empty.
func parseTensor(s string) (tensor, error) {
	head, pattern, ok := strings.Cut(s, "=")
	parts := strings.Split(head, ":")
	if !ok || len(parts) != 3 {
		return tensor{}, fmt.Errorf("%q: want NAME:DTYPE:SHAPE=PATTERN", s)
	}
	var shape []uint64
	for _, d := range strings.FieldsFunc(parts[2], func(r rune) bool { return r == 'x' }) {
		n, err := strconv.ParseUint(d, 10, 16)
		if err != nil {
			return tensor{}, err
		}
		shape = append(shape, n)
	}
	return filled(parts[0], parts[1], shape, pattern)
}
