package function

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// guarded is a listener on loopback that lets in nobody but processes of a user of this machine.
type guarded struct {
	net.Listener
	user int
	log  *slog.Logger
	once sync.Once
}

func newGuarded(l net.Listener, log *slog.Logger) *guarded {
	return &guarded{Listener: l, user: os.Geteuid(), log: log}
}

// Accept returns the next connection of the user's. Where the kernel doesn't tell whose connections are, it lets in everybody, and says so once.
func (g *guarded) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, err := ownerOf(c)
		switch {
		case err == nil && uid == g.user:
			return c, nil
		case err == nil:
			g.log.Warn("a process of another user was refused the Lambda Runtime API of an execution environment", "uid", uid)
		case errors.Is(err, unix.ENOENT): // it has gone
		default:
			g.once.Do(func() {
				g.log.Warn("any process of this machine reaches the Lambda Runtime API: the kernel doesn't tell whose connections are", "error", err)
			})
			return c, nil
		}
		c.Close() //nolint:errcheck // nobody is let in
	}
}

// noPages refuses what web pages send: a browser is a process of the user's, too, and runs what others wrote. Browsers say where a page is from, unless
// it came by a name that leads to this very address; then that name is the host.
func noPages(api http.Handler, at string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != at || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
			http.Error(w, "web pages are refused", http.StatusForbidden)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// The parts of the kernel's protocol that tells of sockets: sock_diag(7). Ports and addresses are in the network's order.
const (
	headerLength  = unix.NLMSG_HDRLEN
	requestLength = 56 // of a struct inet_diag_req_v2
	uidAt         = 64 // in a struct inet_diag_msg
	inodeAt       = 68 // as above, where it ends
	allStates     = ^uint32(0)
)

// ownerOf returns the user whose socket is at the other end of a connection within this machine.
func ownerOf(c net.Conn) (uid int, err error) {
	theirs, isTCP := c.RemoteAddr().(*net.TCPAddr)
	ours, isTCPToo := c.LocalAddr().(*net.TCPAddr)
	if !isTCP || !isTCPToo || theirs.IP.To4() == nil || ours.IP.To4() == nil {
		return 0, fmt.Errorf("%s is no address of IPv4", c.RemoteAddr())
	}
	message := make([]byte, headerLength+requestLength)
	binary.NativeEndian.PutUint32(message[0:], uint32(len(message)))
	binary.NativeEndian.PutUint16(message[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST)
	request := message[headerLength:]
	request[0], request[1] = unix.AF_INET, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[4:], allStates)
	binary.BigEndian.PutUint16(request[8:], uint16(theirs.Port))
	binary.BigEndian.PutUint16(request[10:], uint16(ours.Port))
	copy(request[12:], theirs.IP.To4())
	copy(request[28:], ours.IP.To4())
	for i := 48; i < requestLength; i++ {
		request[i] = 0xff // no cookie: whichever socket has these addresses
	}
	return askForUID(message)
}

func askForUID(message []byte) (uid int, err error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(s) //nolint:errcheck // it was only asked
	if err := unix.Sendto(s, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil {
		return 0, err
	}
	body := answer[min(n, headerLength):n]
	switch kind := binary.NativeEndian.Uint16(answer[4:]); {
	case kind == unix.NLMSG_ERROR && len(body) >= 4:
		return 0, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
	case kind != unix.SOCK_DIAG_BY_FAMILY || len(body) < inodeAt+4:
		return 0, errors.New("the kernel's answer is none")
	case binary.NativeEndian.Uint32(body[inodeAt:]) == 0:
		return 0, unix.ENOENT // it's nobody's any more: who has sent and closed would pass for root
	}
	return int(binary.NativeEndian.Uint32(body[uidAt:])), nil
}
