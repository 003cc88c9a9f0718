// Package imds is the instance metadata service that tasks find at 169.254.169.254: what their machine is as an EC2 instance, and the
// credentials of its role, in both versions of the service. It knows only what it's handed; the agent serves it inside containers' network
// namespaces.
package imds

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// Server is the service of one instance.
type Server struct {
	instance func() *acs.PintleInstance
	log      *slog.Logger
	key      [sha256.Size]byte // seals tokens; they end with the agent, and clients ask for others
}

// New returns the service. instance returns what the control plane has told, or nil before it has.
func New(instance func() *acs.PintleInstance, log *slog.Logger) *Server {
	s := &Server{instance: instance, log: log}
	rand.Read(s.key[:]) // never fails
	return s
}

// EC2's user guide, "Use IMDS": the headers of version 2, and how long a token may last.
const (
	tokenHeader = "X-Aws-Ec2-Metadata-Token"
	ttlHeader   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	maxTTL      = 6 * time.Hour
)

// hopTimeout is how long a caller is kept waiting whose answer would need more hops than it may have. Clients give up sooner.
const hopTimeout = 10 * time.Second

// From returns the service for callers that many hops away: those in an instance's own network, such as tasks of mode awsvpc, are one hop
// away, and containers behind a bridge two.
func (s *Server) From(hops int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := s.instance()
		w.Header().Set("Server", "EC2ws")
		switch {
		case i == nil:
			refuse(w, http.StatusServiceUnavailable)
		case i.Disabled:
			refuse(w, http.StatusForbidden)
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			s.putToken(w, r, hops > i.HopLimit)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			refuse(w, http.StatusMethodNotAllowed)
		case !s.mayRead(r, i.TokensRequired):
			refuse(w, http.StatusUnauthorized)
		default:
			read(w, r, i)
		}
	})
}

// Serve serves callers that many hops away until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener, hops int) {
	web := &http.Server{
		Handler:           s.From(hops),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	defer context.AfterFunc(ctx, func() { web.Close() })() //nolint:errcheck // Serve returns it
	web.Serve(l)                                           //nolint:errcheck // it ends with ctx
}

// putToken answers the request for a token. What has come through a proxy gets none, so that nobody is talked into asking for one.
func (s *Server) putToken(w http.ResponseWriter, r *http.Request, tooFar bool) {
	if tooFar { // the answer's packets would be dropped on their way
		select {
		case <-r.Context().Done():
		case <-time.After(hopTimeout):
		}
		panic(http.ErrAbortHandler)
	}
	if r.Header.Get("X-Forwarded-For") != "" {
		refuse(w, http.StatusForbidden)
		return
	}
	seconds, err := strconv.Atoi(r.Header.Get(ttlHeader))
	ttl := time.Duration(seconds) * time.Second
	if err != nil || ttl < time.Second || ttl > maxTTL {
		refuse(w, http.StatusBadRequest)
		return
	}
	w.Header().Set(ttlHeader, strconv.Itoa(seconds))
	write(w, s.token(time.Now().Add(ttl)))
}

// token returns a token that is valid until a time.
func (s *Server) token(until time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	return base64.URLEncoding.EncodeToString(append(b, s.seal(b)...))
}

func (s *Server) seal(b []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	h.Write(b)
	return h.Sum(nil)
}

// mayRead reports whether a request has a valid token, or has and needs none.
func (s *Server) mayRead(r *http.Request, required bool) bool {
	token := r.Header.Get(tokenHeader)
	if token == "" {
		return !required
	}
	b, err := base64.URLEncoding.DecodeString(token)
	if err != nil || len(b) != 8+sha256.Size || !hmac.Equal(b[8:], s.seal(b[:8])) {
		return false
	}
	return time.Now().Unix() < int64(binary.BigEndian.Uint64(b))
}

// versions matches the path's first part: the newest version, or that of a day.
var versions = regexp.MustCompile(`^/(latest|\d{4}-\d{2}-\d{2})(/|$)`)

// read answers from the instance's data. The path of a folder lists it.
func read(w http.ResponseWriter, r *http.Request, i *acs.PintleInstance) {
	path := r.URL.Path
	if path == "/" {
		write(w, "latest")
		return
	}
	at := versions.FindStringIndex(path)
	if at == nil {
		refuse(w, http.StatusNotFound)
		return
	}
	files := filesOf(i)
	path = strings.TrimSuffix(path[at[1]:], "/")
	if text, ok := files[path]; ok {
		write(w, text)
		return
	}
	list := listOf(files, path)
	if len(list) == 0 {
		refuse(w, http.StatusNotFound)
		return
	}
	write(w, strings.Join(list, "\n"))
}

// listOf lists what is in a folder: files by their names, folders with a slash behind.
func listOf(files map[string]string, folder string) (out []string) {
	prefix := folder + "/"
	if folder == "" {
		prefix = ""
	}
	for path := range files {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		name, _, more := strings.Cut(rest, "/")
		if more {
			name += "/"
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func write(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain")
	w.Write([]byte(text)) //nolint:errcheck // the caller has gone
}

func refuse(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }
