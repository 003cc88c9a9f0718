package peers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
)

// Through returns a transport to the registry that has layers fetched from peers where the registry says so.
func (p *Peers) Through(next http.RoundTripper) http.RoundTripper { return transport{p, next} }

type transport struct {
	peers    *Peers
	registry http.RoundTripper
}

var blobPath = regexp.MustCompile(`^/v2/.+/blobs/(sha256:[0-9a-f]{64})$`)

// RoundTrip implements http.RoundTripper. The pull of a layer that another pull of this node's brings follows that.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	m := blobPath.FindStringSubmatch(r.URL.Path)
	if m == nil || r.Method != http.MethodGet || r.Header.Get("Range") != "" {
		return t.registry.RoundTrip(r)
	}
	select {
	case <-t.peers.announced:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	token := t.peers.token.Load()
	if token == nil {
		return t.registry.RoundTrip(r)
	}
	digest := m[1]
	for {
		if body, size, err := t.peers.open(r.Context(), digest); err == nil {
			return answer(r, body, size), nil
		}
		l, isFirst, err := t.peers.begin(digest)
		if err != nil {
			return t.registry.RoundTrip(r)
		}
		if isFirst {
			return t.start(r, l, *token)
		}
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
	}
}

// start has a layer brought, and answers with it as it comes. The bytes go on coming if who asked stops reading: others may want them.
func (t transport) start(r *http.Request, l *layer, token string) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	forget := context.AfterFunc(t.peers.ending, cancel)
	context.AfterFunc(ctx, func() { forget() })
	stop := context.AfterFunc(r.Context(), cancel) // until there is an answer
	b := &bringing{transport: t, request: r.WithContext(ctx), layer: l, token: token}
	resp, err := b.fetch()
	if !stop() && err == nil {
		err = errors.Join(r.Context().Err(), resp.Body.Close())
	}
	if err != nil || resp.StatusCode != http.StatusOK || resp.ContentLength < 0 {
		t.peers.abandon(l)
		context.AfterFunc(r.Context(), cancel) // the answer is the caller's to read
		return resp, err
	}
	l.begins(resp.ContentLength, cancel)
	body, err := t.peers.follow(r.Context(), l)
	go b.bring(resp) // Run waits for it
	if err != nil {
		return nil, err
	}
	return answer(r, body, resp.ContentLength), nil
}

func answer(r *http.Request, body io.ReadCloser, size int64) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Length": {strconv.FormatInt(size, 10)}},
		ContentLength: size, Body: body, Request: r,
	}
}

// open opens a layer that is here, or on its way.
func (p *Peers) open(ctx context.Context, digest string) (body io.ReadCloser, size int64, err error) {
	p.mu.Lock()
	l := p.coming[digest]
	p.mu.Unlock()
	if l == nil {
		return p.openStored(digest)
	}
	select {
	case <-l.known:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if l.total < 0 {
		return nil, 0, gone(digest)
	}
	body, err = p.follow(ctx, l)
	return body, l.total, err
}

func (p *Peers) openStored(digest string) (io.ReadCloser, int64, error) {
	f, err := os.Open(p.path(digest))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	now := time.Now()
	os.Chtimes(f.Name(), now, now) //nolint:errcheck // it goes too soon at worst
	return f, info.Size(), nil
}

// begin notes that a layer is on its way, unless it is already.
func (p *Peers) begin(digest string) (l *layer, isFirst bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.coming[digest]; l != nil {
		return l, false, nil
	}
	if p.over {
		return nil, false, gone(digest)
	}
	f, err := os.CreateTemp(p.opts.Dir, file.Unfinished)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, false, err
	}
	l = newLayer(digest, f.Name())
	p.coming[digest] = l
	p.brings.Add(1) // until abandon, or the end of bring
	return l, true, nil
}

// abandon gives up a layer of which nothing has come.
func (p *Peers) abandon(l *layer) {
	defer p.brings.Done()
	p.forget(l)
	os.Remove(l.path) //nolint:errcheck // the next start removes it
	close(l.known)
	l.end(gone(l.digest))
}

func (p *Peers) forget(l *layer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.coming, l.digest)
}

// bringing is how a layer comes.
type bringing struct {
	transport
	request  *http.Request
	layer    *layer
	token    string
	fromPeer bool
}

// fetch asks the registry for a layer, and the peer that it names. If that doesn't answer, the registry sends the layer itself.
func (b *bringing) fetch() (*http.Response, error) {
	ask := b.request.Clone(b.request.Context())
	ask.Header.Set(acs.PeerToken, b.token)
	if b.peers.isMistrusted(b.layer.digest) {
		ask.Header.Set(acs.PeerFailed, "1")
	}
	resp, err := b.registry.RoundTrip(ask)
	if err != nil || resp.StatusCode != http.StatusTemporaryRedirect || resp.Header.Get(acs.PeerCertificate) == "" {
		return resp, err
	}
	resp.Body.Close() //nolint:errcheck // it's empty
	sent, err := b.peers.ask(ask.Context(), resp.Header.Get("Location"), resp.Header.Get(acs.PeerCertificate))
	if err == nil {
		b.fromPeer = true
		return sent, nil
	}
	b.peers.opts.Log.Info("a peer doesn't send a layer; the registry does", "layer", b.layer.digest, "error", err)
	return b.fallBack(0)
}

// fallBack asks the registry for a layer, from a byte on, after a peer has failed.
func (b *bringing) fallBack(from int64) (*http.Response, error) {
	ask := b.request.Clone(b.request.Context())
	ask.Header.Set(acs.PeerToken, b.token)
	ask.Header.Set(acs.PeerFailed, "1")
	if from > 0 {
		ask.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	return b.registry.RoundTrip(ask)
}

// ask asks a peer, which shows the certificate that the registry has told of. Nothing that the registry is told goes there.
func (p *Peers) ask(ctx context.Context, url, fingerprint string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: cmp.Or(patience/3, time.Second)}).DialContext,
		TLSHandshakeTimeout:   patience,
		ResponseHeaderTimeout: patience,
		DisableKeepAlives:     true,
		DisableCompression:    true,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS13,
			InsecureSkipVerify: true, //nolint:gosec // VerifyConnection knows the very certificate
			VerifyConnection: func(s tls.ConnectionState) error {
				if sum := sha256.Sum256(s.PeerCertificates[0].Raw); hex.EncodeToString(sum[:]) != fingerprint {
					return errors.New("the peer has another certificate than the registry says")
				}
				return nil
			},
		},
	}
	resp, err := client.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || resp.ContentLength < 0 {
		return nil, errors.Join(fmt.Errorf("the peer answers %s", resp.Status), resp.Body.Close())
	}
	return resp, nil
}

// bring copies a layer into its file as fast as it comes, however fast it's unpacked.
func (b *bringing) bring(resp *http.Response) {
	l, p := b.layer, b.peers
	defer p.brings.Done()
	err := b.receive(resp)
	if err == nil {
		err = os.Rename(l.path, p.path(l.digest))
	}
	if err != nil {
		os.Remove(l.path) //nolint:errcheck // the next start removes it
	} else if failed := p.tidy(); failed != nil {
		p.opts.Log.Warn("cannot remove old layers", "error", failed)
	}
	p.forget(l)
	l.end(err)
	select {
	case p.news <- struct{}{}:
	default:
	}
}

func (b *bringing) receive(resp *http.Response) error {
	f, err := os.OpenFile(b.layer.path, os.O_WRONLY, 0)
	if err != nil {
		return errors.Join(err, resp.Body.Close())
	}
	defer f.Close() //nolint:errcheck // what is missing is found by its digest
	into := &growing{layer: b.layer, file: f, hash: sha256.New()}
	err = into.copy(resp.Body)
	if err != nil && b.fromPeer && b.request.Context().Err() == nil && into.failed == nil {
		b.peers.opts.Log.Info("a peer has stopped in a layer; the registry sends the rest", "layer", b.layer.digest, "error", err)
		err = b.receiveRest(into)
	}
	if err != nil {
		return err
	}
	got := "sha256:" + hex.EncodeToString(into.hash.Sum(nil))
	isRight := got == b.layer.digest && into.size == b.layer.total
	b.peers.trust(b.layer.digest, isRight || !b.fromPeer)
	if !isRight {
		return fmt.Errorf("the bytes of layer %s have the digest %s", b.layer.digest, got)
	}
	return nil
}

// receiveRest has the registry send what a peer didn't.
func (b *bringing) receiveRest(into *growing) error {
	resp, err := b.fallBack(into.size)
	if err != nil {
		return err
	}
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK: // it's on its way there too, and can only be sent whole
		if _, err := io.CopyN(io.Discard, resp.Body, into.size); err != nil {
			return errors.Join(err, resp.Body.Close())
		}
	default:
		return errors.Join(fmt.Errorf("the registry answers %s", resp.Status), resp.Body.Close())
	}
	return into.copy(resp.Body)
}

func (p *Peers) isMistrusted(digest string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mistrust[digest]
}

// trust notes whether peers may be asked for a layer: not after one has sent other bytes.
func (p *Peers) trust(digest string, may bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.mistrust, digest); !may {
		p.mistrust[digest] = true
	}
}
