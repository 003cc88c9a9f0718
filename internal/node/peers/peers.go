// Package peers lets the nodes of a cluster fetch layers of images from each other. The registry, Pintle's control plane, says where: a node asks it
// for a layer as ever, and is sent to a neighbour with a ticket that the neighbour's own key has made. Layers are kept as they came, so that they
// can be passed on, also while they come. What a neighbour sends is checked against its digest; a slow one or one that has gone costs time and no
// pull. The agent runs one, and gives its transport to whoever pulls images.
package peers

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
)

// Options are what a node needs to have peers.
type Options struct {
	Dir     string // for layers
	Address string // at which others reach it; its port may be 0
	Budget  int64  // how many bytes layers may take that aren't on their way; 0 is no limit
	// Announce tells the control plane of the node.
	Announce func(ctx context.Context, a acs.PeerAnnouncement) (acs.PeerWelcome, error)
	// Instance returns the node's container instance.
	Instance func() string
	Log      *slog.Logger
}

const (
	// announceEvery is how often the control plane is told.
	announceEvery = 30 * time.Second
	// maxSends is how many others a node sends layers to at the same time. More are told to ask the registry.
	maxSends = 16
)

// patience is how long a peer may send nothing before the registry is asked. A test has less.
var patience = 15 * time.Second

// Peers is a node's part.
type Peers struct {
	opts        Options
	key         [32]byte
	certificate tls.Certificate
	fingerprint string
	listener    net.Listener
	sends       chan struct{}
	news        chan struct{} // receives when there is something new to announce
	token       atomic.Pointer[string]
	announced   chan struct{} // closed once the control plane was told, or couldn't be

	ending context.Context // ends what brings layers
	end    context.CancelFunc
	brings sync.WaitGroup // what brings layers, from begin on

	mu       sync.Mutex
	over     bool              // no more layers are brought
	coming   map[string]*layer // by digest
	mistrust map[string]bool   // layers of which a peer has sent other bytes
}

// Open opens the node's layers, and listens. Run serves them.
func Open(opts Options) (*Peers, error) {
	p := &Peers{
		opts: opts, sends: make(chan struct{}, maxSends), news: make(chan struct{}, 1), announced: make(chan struct{}),
		coming: map[string]*layer{}, mistrust: map[string]bool{},
	}
	p.ending, p.end = context.WithCancel(context.Background())
	rand.Read(p.key[:]) // never fails
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := file.Clean(opts.Dir); err != nil {
		return nil, err
	}
	var err error
	if p.certificate, p.fingerprint, err = newCertificate(); err != nil {
		return nil, err
	}
	p.listener, err = net.Listen("tcp", opts.Address)
	return p, err
}

// Run serves layers and announces them until the context ends. The layers that are on their way by then are given up.
func (p *Peers) Run(ctx context.Context) error {
	server := &http.Server{
		Handler:           http.HandlerFunc(p.serve),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{p.certificate}, MinVersion: tls.VersionTLS13},
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // a connection for each layer
		ErrorLog:          slog.NewLogLogger(p.opts.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(p.listener, "", "") }()
	p.announceUntil(ctx)
	server.Close() //nolint:errcheck // whoever fetches asks the registry
	<-ended
	p.giveUp()
	return ctx.Err()
}

// giveUp ends what brings layers. Whoever pulls one asks the registry from now on.
func (p *Peers) giveUp() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.end()
	p.brings.Wait()
}

// announceUntil tells the control plane what there is, regularly and when it's new.
func (p *Peers) announceUntil(ctx context.Context) {
	each := time.NewTicker(announceEvery)
	defer each.Stop()
	for first := true; ctx.Err() == nil; first = false {
		err := p.announce(ctx)
		if first {
			close(p.announced)
		}
		if err != nil && ctx.Err() == nil {
			p.opts.Log.Warn("cannot tell the control plane which layers are here for other nodes", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-each.C:
		case <-p.news:
		}
	}
}

func (p *Peers) announce(ctx context.Context) error {
	digests, err := p.stored()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, announceEvery)
	defer cancel()
	welcome, err := p.opts.Announce(ctx, acs.PeerAnnouncement{
		ContainerInstance: p.opts.Instance(),
		Address:           p.listener.Addr().String(),
		Certificate:       p.fingerprint,
		Key:               p.key[:],
		Layers:            digests[:min(len(digests), acs.MaxPeerLayers)],
	})
	if err == nil {
		p.token.Store(&welcome.Token)
	}
	return err
}

var validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// path returns where a layer is once all of it has come.
func (p *Peers) path(digest string) string { return filepath.Join(p.opts.Dir, digest[len("sha256:"):]) }

// entries lists the layers that are here, the one that was used last first.
func (p *Peers) entries() ([]fs.FileInfo, error) {
	dir, err := os.ReadDir(p.opts.Dir)
	var all []fs.FileInfo
	for _, e := range dir {
		if info, err := e.Info(); err == nil && validDigest.MatchString("sha256:"+e.Name()) {
			all = append(all, info)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].ModTime().After(all[j].ModTime()) })
	return all, err
}

func (p *Peers) stored() (digests []string, err error) {
	all, err := p.entries()
	for _, info := range all {
		digests = append(digests, "sha256:"+info.Name())
	}
	return digests, err
}

// tidy removes the layers that weren't used for longest until the others fit into the budget.
func (p *Peers) tidy() error {
	all, err := p.entries()
	total := int64(0)
	for _, info := range all {
		if total += info.Size(); p.opts.Budget > 0 && total > p.opts.Budget {
			if failed := os.Remove(filepath.Join(p.opts.Dir, info.Name())); failed != nil {
				err = failed
			}
		}
	}
	return err
}

// serve sends a layer to whoever has a ticket for it.
func (p *Peers) serve(w http.ResponseWriter, r *http.Request) {
	digest := filepath.Base(r.URL.Path)
	expires, err := strconv.ParseInt(r.FormValue("expires"), 10, 64)
	ticket := acs.PeerTicket(p.key[:], digest, expires)
	switch {
	case r.Method != http.MethodGet || r.URL.Path != "/layers/"+digest || !validDigest.MatchString(digest):
		http.Error(w, "there are layers here, and nothing else", http.StatusNotFound)
		return
	case err != nil || !hmac.Equal([]byte(ticket), []byte(r.FormValue("ticket"))) || time.Now().Add(-time.Minute).Unix() > expires:
		http.Error(w, "the ticket isn't one for this layer, or is over", http.StatusForbidden)
		return
	}
	select {
	case p.sends <- struct{}{}:
		defer func() { <-p.sends }()
	default:
		http.Error(w, "too many fetch from here", http.StatusServiceUnavailable)
		return
	}
	p.send(w, r, digest)
}

// send sends a layer, as it comes if it's still on its way.
func (p *Peers) send(w http.ResponseWriter, r *http.Request, digest string) {
	body, size, err := p.open(r.Context(), digest)
	if err != nil {
		http.Error(w, "the layer isn't here", http.StatusNotFound)
		return
	}
	defer body.Close() //nolint:errcheck // it was read only
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		control.SetWriteDeadline(time.Now().Add(2 * patience)) //nolint:errcheck // then it waits longer
		if _, failed := w.Write(buf[:n]); failed != nil || err != nil {
			return // whoever fetches sees that bytes are missing
		}
		if n < len(buf) { // there is no more at the moment
			control.Flush() //nolint:errcheck // as above
		}
	}
}

// gone is the error of a layer that isn't here.
func gone(digest string) error { return fmt.Errorf("layer %s: %w", digest, fs.ErrNotExist) }
