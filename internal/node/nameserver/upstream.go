package nameserver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// upstream are the name servers of the machine.
type upstream struct {
	path string // of resolv.conf

	mu     sync.Mutex
	readAt time.Time
	all    []netip.AddrPort
}

const (
	serverPatience = 2 * time.Second // for one server's answer
	rereadAfter    = 5 * time.Second
	maxServers     = 3 // that resolv.conf has: resolv.conf(5)
)

var errNoServers = errors.New("the machine has no name servers")

// servers returns the name servers. The file may change, and is read again every few seconds at most.
func (u *upstream) servers() []netip.AddrPort {
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.readAt) < rereadAfter {
		return u.all
	}
	u.readAt = time.Now()
	b, err := os.ReadFile(u.path)
	if err != nil {
		return u.all
	}
	u.all = nil
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" || len(u.all) == maxServers {
			continue
		}
		if at, err := netip.ParseAddrPort(f[1]); err == nil {
			u.all = append(u.all, at)
		} else if a, err := netip.ParseAddr(f[1]); err == nil {
			u.all = append(u.all, netip.AddrPortFrom(a, 53))
		}
	}
	return u.all
}

// exchange asks one server after the other until one answers.
func (u *upstream) exchange(ctx context.Context, message []byte, q dnsmessage.Question, overUDP bool) ([]byte, error) {
	err := errNoServers
	for _, server := range u.servers() {
		var out []byte
		if out, err = exchangeWith(ctx, server, message, q, overUDP); err == nil {
			return out, nil
		}
	}
	return nil, err
}

// exchangeWith asks one server, under another id: the one of a container's own could be guessed.
func exchangeWith(ctx context.Context, server netip.AddrPort, message []byte, q dnsmessage.Question, overUDP bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	network := "tcp"
	if overUDP {
		network = "udp"
	}
	c, err := new(net.Dialer).DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline) //nolint:errcheck // reading fails, too, then
	asked := append([]byte{}, message...)
	rand.Read(asked[:2]) //nolint:errcheck // it never fails
	if overUDP {
		_, err = c.Write(asked)
	} else {
		err = writeFrame(c, asked)
	}
	if err != nil {
		return nil, err
	}
	for {
		out, err := receive(c, overUDP)
		if err != nil {
			return nil, err
		}
		if isAnswer(out, asked[:2], q) {
			copy(out, message[:2])
			return out, nil
		}
	}
}

func receive(c net.Conn, overUDP bool) ([]byte, error) {
	if !overUDP {
		return readFrame(c, 65535)
	}
	buffer := make([]byte, 65535)
	n, err := c.Read(buffer)
	return buffer[:n], err
}

// isAnswer reports whether a message is the answer to what was asked, and not somebody's guess of it.
func isAnswer(message, id []byte, q dnsmessage.Question) bool {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || !h.Response || h.ID != binary.BigEndian.Uint16(id) {
		return false
	}
	got, err := p.Question()
	return err == nil && got.Type == q.Type && got.Class == q.Class && strings.EqualFold(got.Name.String(), q.Name.String())
}
