package nameserver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Server answers queries at sockets.
type Server struct {
	names     *Names
	upstream  *upstream
	machine   func() netip.Addr
	plane     func() netip.Addr
	aws       *AWS
	forwarded chan struct{} // holds a place for each question that the machine's name servers are asked now
}

const (
	maxForwarded = 256 // questions of all tasks together that wait for the machine's name servers
	maxWaiting   = 64  // of one socket
	tcpPatience  = 10 * time.Second
	// failurePause is how long a socket rests after a failure that may last, such as that there are no file descriptors left.
	failurePause = 20 * time.Millisecond
)

// Options configures a Server.
type Options struct {
	// ResolvConf is the path of the file that names the machine's name servers, as resolv.conf does.
	ResolvConf string
	// Machine returns an address at which tasks reach their machine, in whose network its loopback isn't.
	Machine func() netip.Addr
	// Plane returns an address at which tasks reach the control plane's machine.
	Plane func() netip.Addr
	// AWS answers the names of AWS's hosts to tasks; nil leaves them to the machine's name servers.
	AWS *AWS
}

// NewServer returns a server of names.
func NewServer(names *Names, o Options) *Server {
	return &Server{names: names, upstream: &upstream{path: o.ResolvConf}, machine: o.Machine, plane: o.Plane, aws: o.AWS, forwarded: make(chan struct{}, maxForwarded)}
}

// Clients are those who ask at a socket.
type Clients int

// Tasks in networks of their own may ask for any name, and Strangers only for Cloud Map's.
const (
	Tasks Clients = iota
	Strangers
)

// ServeUDP answers queries until the socket is closed or ctx ends, and then closes it.
func (s *Server) ServeUDP(ctx context.Context, socket net.PacketConn, who Clients) {
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	own := make(chan struct{}, maxWaiting)
	buffer := make([]byte, maxQuerySize+1)
	for {
		n, from, err := socket.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as an ICMP message about an earlier answer
			pause(ctx)
			continue
		}
		query := append([]byte{}, buffer[:n]...)
		out, forward := s.own(query, true, who)
		if forward == nil {
			s.write(socket, from, out)
			continue
		}
		select {
		case own <- struct{}{}:
		default:
			s.write(socket, from, out) // it has too many questions open; out says that this failed
			continue
		}
		waiting.Go(func() {
			defer func() { <-own }()
			s.write(socket, from, s.ask(ctx, forward))
		})
	}
}

func (s *Server) write(socket net.PacketConn, to net.Addr, out []byte) {
	if out != nil {
		socket.WriteTo(out, to) //nolint:errcheck // who gets no answer asks again
	}
}

// ServeTCP answers queries over connections until ctx ends. The listener bounds how many there are.
func (s *Server) ServeTCP(ctx context.Context, l net.Listener, who Clients) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			pause(ctx)
			continue
		}
		open.Go(func() {
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			defer c.Close()
			s.converse(ctx, c, who)
		})
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(failurePause):
	}
}

// converse answers the queries of one connection, one after the other.
func (s *Server) converse(ctx context.Context, c net.Conn, who Clients) {
	for {
		c.SetDeadline(time.Now().Add(tcpPatience)) //nolint:errcheck // reading fails, too, then
		query, err := readFrame(c, maxQuerySize)
		if err != nil {
			return
		}
		out, forward := s.own(query, false, who)
		if forward != nil {
			out = s.ask(ctx, forward)
		}
		if out == nil || writeFrame(c, out) != nil {
			return
		}
	}
}

// readFrame reads a message with its length in front.
func readFrame(r io.Reader, most int) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n > most {
		return nil, errors.New("a message that is too long")
	}
	message := make([]byte, n)
	_, err := io.ReadFull(r, message)
	return message, err
}

func writeFrame(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}

// pending is a question for the machine's name servers.
type pending struct {
	message []byte // as it came
	query   *query
	known   *directory
	reply   reply // what is known already, of an alias
	overUDP bool
}

// own answers a query by itself, or says what others must be asked for a task. The answer is then the one of who doesn't ask them.
func (s *Server) own(message []byte, overUDP bool, who Clients) (out []byte, forward *pending) {
	q, err := parse(message, overUDP)
	if errors.Is(err, errIgnored) {
		return nil, nil
	}
	known := s.names.known.Load()
	if known == nil {
		known = newDirectory(nil, nil)
	}
	if err != nil {
		return known.pack(&query{header: q.header, size: plainSize}, reply{code: dnsmessage.RCodeFormatError}), nil
	}
	if r, ours := s.aws.answer(q); ours && who == Tasks {
		return known.pack(q, r), nil
	}
	r := known.answer(q)
	s.relocate(r.answers, who)
	s.relocate(r.additional, who)
	if who == Tasks && (!r.ours || r.alias.Length > 0) {
		forward = &pending{message, q, known, r, overUDP}
	}
	if !r.ours {
		r.code = dnsmessage.RCodeRefused
	}
	return known.pack(q, r), forward
}

// relocate replaces addresses on loopback, which a machine has that the control plane is on, by one at which tasks reach it, and that which stands
// for all of a machine by the control plane's, since it's that one's.
func (s *Server) relocate(all []dnsmessage.Resource, who Clients) {
	for i, r := range all {
		a, ok := r.Body.(*dnsmessage.AResource)
		if !ok {
			continue
		}
		at := netip.AddrFrom4(a.A)
		switch {
		case at.IsLoopback() && who == Tasks:
			at = s.machine()
		case at.IsUnspecified():
			at = s.plane()
		}
		if at.Is4() {
			all[i].Body = &dnsmessage.AResource{A: at.As4()}
		}
	}
}

// ask asks the machine's name servers, and returns the answer, which may be that they didn't.
func (s *Server) ask(ctx context.Context, p *pending) []byte {
	failed := p.known.pack(p.query, reply{code: dnsmessage.RCodeServerFailure})
	select {
	case s.forwarded <- struct{}{}:
		defer func() { <-s.forwarded }()
	default:
		return failed
	}
	if p.reply.alias.Length > 0 {
		return s.follow(ctx, p, failed)
	}
	out, err := s.upstream.exchange(ctx, p.message, p.query.question, p.overUDP)
	if err != nil || len(out) > p.query.size {
		return failed
	}
	return out
}

// follow completes the answer of an alias with what others say of the name behind it.
func (s *Server) follow(ctx context.Context, p *pending, failed []byte) []byte {
	question := dnsmessage.Question{Name: p.reply.alias, Type: p.query.question.Type, Class: dnsmessage.ClassINET}
	m := dnsmessage.Message{Header: dnsmessage.Header{RecursionDesired: true}, Questions: []dnsmessage.Question{question}}
	message, err := m.Pack()
	if err != nil {
		return failed
	}
	out, err := s.upstream.exchange(ctx, message, question, true)
	if err != nil || m.Unpack(out) != nil {
		return failed
	}
	r := p.reply
	r.code = m.RCode
	r.answers = append(r.answers, m.Answers...)
	return p.known.pack(p.query, r)
}
