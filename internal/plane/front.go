package plane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/connection"
	"github.com/pintle/pintle/internal/wire/sign"
)

// openFront listens, and prepares the check of callers' signatures.
func (p *Plane) openFront() error {
	key, err := taskKey(p.options.Data)
	if err != nil {
		return err
	}
	if p.issuer, err = sts.NewIssuer(key, p.account()); err != nil {
		return err
	}
	if p.options.Listen == "" {
		return nil
	}
	if p.verifier, err = p.newVerifier(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", p.options.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen: %w (is pintle running already? choose another address with --listen)", err)
	case err != nil:
		return fmt.Errorf("cannot listen: %w (choose another address with --listen)", err)
	}
	p.listener = connection.Limit(listener, connectionLimits())
	return p.secure()
}

// maxStrangers is the most connections of callers that nobody knows. Each takes some 25 KB, and up to maxHeader more.
const maxStrangers = 2048

// maxHeader is the most bytes of a request's headers.
const maxHeader = 32 << 10

// connectionLimits leaves half of the process's file descriptors to its files and to nodes. Anybody may connect, and connections mustn't
// keep the stores from being written.
func connectionLimits() connection.Limits {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		files.Cur = 1024
	}
	all := int(min(files.Cur, 1<<20) / 2)
	strangers := min(all/2, maxStrangers)
	return connection.Limits{Strangers: strangers, Known: all - strangers}
}

// webServer returns the server of all callers. It doesn't limit how long a body takes: wire does.
func (p *Plane) webServer() *http.Server {
	return &http.Server{
		Handler:           p.front,
		ConnContext:       p.listener.Context,
		ConnState:         p.listener.State,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
}

// newVerifier returns the verifier of signatures. It's nil only on loopback without a key. Elsewhere a key is required.
func (p *Plane) newVerifier() (*sign.Verifier, error) {
	o := p.options
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: %w", o.Listen, err)
	}
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	if o.AccessKeyID != "" && o.SecretAccessKey != "" {
		return p.verifierFor(nil), nil
	}
	if local {
		return nil, nil
	}
	return nil, fmt.Errorf(
		"%s can be reached from outside: set PINTLE_ACCESS_KEY_ID and PINTLE_SECRET_ACCESS_KEY, which callers then sign with", o.Listen)
}

// verifierFor returns a verifier of the signatures that it is only for; with nil it is for all.
func (p *Plane) verifierFor(only func(accessKeyID string) bool) *sign.Verifier {
	return &sign.Verifier{Region: p.options.Region, Global: map[string]string{"iam": "us-east-1"}, Lookup: p.lookup, Only: only}
}

// lookup returns the secret of an access key: the operator's, a node's, an IAM user's, or one issued to a task or a session. The credentials
// of a session end with its role.
func (p *Plane) lookup(_ context.Context, id, token string) (sign.Credential, error) {
	if id == p.options.AccessKeyID {
		return sign.Credential{SecretAccessKey: p.options.SecretAccessKey, Identity: call.Identity{Principal: p.account().Root()}}, nil
	}
	if key, instance, ok := p.enrollment.Lookup(id); ok {
		return sign.Credential{SecretAccessKey: key.SecretAccessKey, Identity: call.Identity{
			Principal: p.account().GlobalARN("iam", "user/node/"+id),
			Node:      true,
			Instance:  instance,
		}}, nil
	}
	if secret, user, ok := p.IAM.Secret(id); ok {
		return sign.Credential{SecretAccessKey: secret, Identity: call.Identity{Principal: user}}, nil
	}
	s, err := p.issuer.Lookup(id, token)
	if err != nil {
		return sign.Credential{}, sign.ErrUnknownKey
	}
	if p.isOver(s) || s.RoleID != "" && p.IAM.RoleID(s.Role) != s.RoleID {
		s.Expires = time.Unix(0, 0)
	}
	return sign.Credential{
		SecretAccessKey: s.SecretAccessKey,
		SessionToken:    token,
		Expires:         s.Expires,
		Identity:        call.Identity{Principal: s.Arn, Task: s.Task, Role: s.Role, Session: s.Session},
	}, nil
}

// callersVerifier returns the verifier of calls to the services. Where no signatures are checked and policies are enforced all the same, it
// checks those with a key such as users and sessions have: one that is inactive, gone or over mustn't open more than it did. Everybody else
// is the account's owner.
func (p *Plane) callersVerifier() *sign.Verifier {
	if p.verifier != nil || !p.options.EnforceIAM {
		return p.verifier
	}
	return p.verifierFor(isIssued)
}

// isIssued reports whether an access key's id has the form of those that IAM and STS issue.
func isIssued(id string) bool {
	return len(id) == 20 && (strings.HasPrefix(id, "AKIA") || strings.HasPrefix(id, "ASIA"))
}

// isOver reports whether the task or the instance that has a session's credentials has ended.
func (p *Plane) isOver(s sts.Session) bool {
	v := p.State.View()
	if s.Instance != "" {
		i := v.Instances.Get(s.Instance)
		return i == nil || i.IsOver()
	}
	return s.Task != "" && hasEnded(v.Tasks.Get(s.Task))
}

// hasEnded reports whether a task is STOPPED or forgotten. Its credentials end with it.
func hasEnded(t *state.Task) bool { return t == nil || *t.LastStatus == "STOPPED" }
