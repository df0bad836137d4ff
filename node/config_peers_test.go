package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsecast/sparsecast/node/files"
)

const other = "12D3KooWJWoaqZhDaoEFshF7Rh1bpY9ohihFhzcW6d69Lr2NASuq"

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadBootstrap(t *testing.T) {
	infos, err := loadBootstrap(files.OS{}, write(t, "# start here\n\n"+
		"/dns4/a.example/tcp/4001/p2p/"+publisher+" # the trainer\r\n"+
		"/ip4/10.0.0.2/udp/4001/quic-v1/p2p/"+other+"\n"+
		"  /dns4/a.example/udp/4001/quic-v1/p2p/"+publisher+"\n"+
		"/dns4/a.example/tcp/4001/p2p/"+publisher))
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != 2 || infos[0].ID.String() != publisher || len(infos[0].Addrs) != 2 || infos[1].ID.String() != other || len(infos[1].Addrs) != 1 {
		t.Errorf("got %v", infos)
	}
	if infos, err := loadBootstrap(files.OS{}, write(t, "")); err != nil || len(infos) != 0 {
		t.Errorf("empty: got %v, %v", infos, err)
	}
}

func TestLoadBootstrapRefuses(t *testing.T) {
	for _, line := range []string{"/dns4/a.example/tcp/4001", "a.example:4001", "/p2p/" + publisher, "/ip4/1.2.3.4/tcp/1/p2p/x"} {
		path := write(t, "# one\n\n"+line+"\n")
		if _, err := loadBootstrap(files.OS{}, path); err == nil || !strings.Contains(err.Error(), path+":3: ") || !strings.Contains(err.Error(), "write it as") {
			t.Errorf("%s: got %v, want the line and the form", line, err)
		}
	}
	if _, err := loadBootstrap(files.OS{}, "absent/file"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "write it, one multiaddr") {
		t.Errorf("absent: got %v", err)
	}
}

func TestLoadPeers(t *testing.T) {
	peers, err := loadPeers(files.OS{}, write(t, publisher+" # the trainer\n\n# hosts\n"+other+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for id, comment := range peers {
		got[id.String()] = comment
	}
	if len(got) != 2 || got[publisher] != "the trainer" || got[other] != "" {
		t.Errorf("got %v", got)
	}
}

func TestLoadPeersRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "lists nobody",
		"# only a comment\n":               "lists nobody",
		publisher + "\nx\n":                `:2: "x" is no peer ID: write one a line`,
		publisher + "\n\n" + publisher:     ":3: ",
		publisher + " " + other + "\n":     ":1: ",
		strings.Repeat("x", 1<<19) + "\n":  `:1: "` + strings.Repeat("x", 80) + `" is no`,
		"/p2p/" + publisher + "\n":         ":1: ",
		strings.Repeat("#\n", 1<<19) + "#": "larger than",
	} {
		path := write(t, text)
		if _, err := loadPeers(files.OS{}, path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %s", text, err, want)
		}
	}
	if _, err := loadPeers(files.OS{}, "absent/file"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "write it, one peer ID") {
		t.Errorf("absent: got %v", err)
	}
}
