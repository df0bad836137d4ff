package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

// process is one node of the fleet: sparsecast node in a process of its own.
type process struct {
	name   string
	dir    string
	id     string
	cmd    *exec.Cmd
	client *api.Client
	stdin  io.Closer // the node stops when it is closed, also by our death
	exited chan struct{}
}

func (p *process) config() string { return filepath.Join(p.dir, "node.yaml") }
func (p *process) log() string    { return filepath.Join(p.dir, "node.log") }
func (p *process) socket() string { return filepath.Join(p.dir, "api.sock") }

// start runs the node and waits until it answers.
func (p *process) start(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	p.cmd = exec.Command(exe, "node", "--config", p.config(), "--stop-on-eof")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A signal from the terminal is for us: we stop the nodes in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.exited = make(chan struct{})
	go func() { // ends with the child
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	if p.client, err = api.Dial("unix:"+p.socket(), ""); err != nil {
		return err
	}
	return p.await(ctx, "answer", func(api.Status) bool { return true })
}

// await polls the node until ok, or until it is clear that it never will be.
func (p *process) await(ctx context.Context, what string, ok func(api.Status) bool) error {
	for {
		s, err := p.client.Status(ctx)
		if err == nil && ok(s) {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended before it could %s%s", p.name, what, p.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to %s: %w", p.name, what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop asks the node to end and makes it end if it does not.
func (p *process) stop() error {
	if p.cmd == nil || p.cmd.Process == nil {
		return nil
	}
	p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("%s did not stop and was killed", p.name)
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s: %s%s", p.name, p.cmd.ProcessState, p.lastWords())
	}
	return nil
}

// lastWords returns the end of the node's log.
func (p *process) lastWords() string {
	b, err := os.ReadFile(p.log())
	if err != nil || len(b) == 0 {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	tail := bytes.Join(lines[max(0, len(lines)-5):], []byte("\n    "))
	return "\n  its log ends:\n    " + string(tail)
}

// peakMemory returns the largest resident size of the node so far in bytes, 0 where the system does not tell.
func (p *process) peakMemory() uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(b)) {
		var kib uint64
		if n, _ := fmt.Sscanf(l, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
