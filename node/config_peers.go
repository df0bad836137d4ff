package node

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	"github.com/sparsecast/sparsecast/node/files"
)

// maxListFile bounds a list of peers, in bytes: more than ten thousand lines.
const maxListFile = 1 << 20

// loadBootstrap reads the peers to start from: one multiaddr with /p2p/ID a line, # begins a comment.
// Addresses of one peer are gathered; peers keep the order of the file.
func loadBootstrap(fsys files.FS, path string) ([]peer.AddrInfo, error) {
	var infos []peer.AddrInfo
	at := make(map[peer.ID]int)
	err := eachLine(fsys, path, func(text, _ string) error {
		info, err := peer.AddrInfoFromString(text)
		if err != nil {
			return fmt.Errorf("%w: write it as /dns4/host.example/tcp/4001/p2p/12D3KooW", err)
		}
		if len(info.Addrs) == 0 {
			return fmt.Errorf("%s has no address: write it as /dns4/host.example/tcp/4001/p2p/%s", text, info.ID)
		}
		i, known := at[info.ID]
		if !known {
			i = len(infos)
			at[info.ID] = i
			infos = append(infos, peer.AddrInfo{ID: info.ID})
		}
		if !multiaddr.Contains(infos[i].Addrs, info.Addrs[0]) {
			infos[i].Addrs = append(infos[i].Addrs, info.Addrs[0])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("bootstrap peers: %w", orNone(err, "write it, one multiaddr with /p2p/ID a line, or leave bootstrap: out"))
	}
	return infos, nil
}

// loadPeers reads an allow-list: one peer ID a line, and after # a comment that says who it is.
// It returns the comments by ID. An empty list is an error, since it would let nobody in.
func loadPeers(fsys files.FS, path string) (map[peer.ID]string, error) {
	peers := make(map[peer.ID]string)
	err := eachLine(fsys, path, func(text, comment string) error {
		id, err := peer.Decode(text)
		if err != nil {
			return fmt.Errorf("%.80q is no peer ID: write one a line, as sparsecast keygen prints it, and # before a comment", text)
		}
		if _, twice := peers[id]; twice {
			return fmt.Errorf("peer %s is listed twice: remove one line", id)
		}
		peers[id] = comment
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("allowed peers: %w", orNone(err, "write it, one peer ID a line, the same on all hosts"))
	}
	if len(peers) == 0 {
		return nil, fmt.Errorf("allowed peers: %s lists nobody: add one peer ID a line, or set peers: open", path)
	}
	return peers, nil
}

// orNone adds what to do to an error that says that there is no such file; the others say it.
func orNone(err error, hint string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// eachLine calls use with the text and the comment of every line that holds text, and names the line that use refuses.
func eachLine(fsys files.FS, path string, use func(text, comment string) error) error {
	b, err := readSmall(fsys, path, maxListFile)
	if err != nil {
		return err
	}
	return eachLineOf(path, b, use)
}

// eachLineOf is eachLine for a file that was read before.
func eachLineOf(path string, b []byte, use func(text, comment string) error) error {
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		text, comment, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := use(text, strings.TrimSpace(comment)); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return nil
}
