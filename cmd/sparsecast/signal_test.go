package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// stubborn is a command that heeds no signal; it ends when nobody holds its standard input any more.
func stubborn() {
	os.Exit(untilSignal(func(ctx context.Context) int {
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("told to stop")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	}))
}

// TestSecondSignalKills tells a command to stop that does not.
func TestSecondSignalKills(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.CommandContext(t.Context(), "stubborn")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan()
		_ = cmd.Process.Signal(s)
		if !lines.Scan() || lines.Text() != "told to stop" {
			t.Errorf("%v: got %q", s, lines.Text())
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if err := signalUntil(cmd.Process, s, ended); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != s {
			t.Errorf("%v: ended with %v, want by the signal", s, err)
		}
	}
}

// signalUntil repeats a signal, since the second may come before the first has done its work, and returns how the
// process ended.
func signalUntil(p *os.Process, s syscall.Signal, ended <-chan error) error {
	end := time.After(patience)
	for {
		_ = p.Signal(s)
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Millisecond):
		case <-end:
			_ = p.Kill()
			<-ended
			return nil
		}
	}
}
