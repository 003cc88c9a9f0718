package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// Protection protects the worker's task from scale-in and from deployments.
type Protection interface {
	Protect(ctx context.Context, d time.Duration) error
	Unprotect(context.Context) error
}

// How long protection lasts, when it is renewed, how long the task must be idle before it is cleared (so that a busy queue doesn't cost two
// calls for each message), and how long a call may take.
const (
	protectFor    = 20 * time.Minute
	renewAfter    = protectFor / 2
	clearAfter    = 5 * time.Second
	protectTime   = 5 * time.Second
	guardInterval = time.Second
)

// guard keeps the task protected while any loop works.
type guard struct {
	protection Protection
	log        *slog.Logger

	mu        sync.Mutex // held during calls to ECS too, so that they stay in order
	busy      int
	idleSince time.Time
	protected time.Time // when protection was last granted; zero if it isn't on
	failed    time.Time // when a request last failed
}

func newGuard(p Protection, log *slog.Logger) *guard {
	return &guard{protection: p, log: log}
}

// enter returns when the task is protected. If ECS won't protect it, work goes on anyway: an interrupted message comes again.
func (g *guard) enter(ctx context.Context) {
	if g.protection == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy++
	g.update(ctx)
}

func (g *guard) leave() {
	if g.protection == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.idleSince = time.Now()
}

// run renews and clears the protection until ctx ends, and then clears it.
func (g *guard) run(ctx context.Context) {
	if g.protection == nil {
		return
	}
	for ctx.Err() == nil {
		sleep(ctx, guardInterval)
		g.mu.Lock()
		g.update(ctx)
		g.mu.Unlock()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear(context.WithoutCancel(ctx))
}

// update renews or clears the protection if that's due. The caller holds mu.
func (g *guard) update(ctx context.Context) {
	switch now := time.Now(); {
	case ctx.Err() != nil:
	case g.busy > 0 && now.Sub(g.protected) >= renewAfter && now.Sub(g.failed) >= time.Minute:
		g.protect(ctx)
	case g.busy == 0 && now.Sub(g.idleSince) >= clearAfter:
		g.clear(ctx)
	}
}

func (g *guard) protect(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, protectTime)
	defer cancel()
	if err := g.protection.Protect(ctx, protectFor); err != nil {
		g.failed = time.Now()
		g.log.Warn("the task is not protected from scale-in", "error", err)
		return
	}
	g.protected = time.Now()
	g.failed = time.Time{}
}

func (g *guard) clear(ctx context.Context) {
	if g.protected.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, protectTime)
	defer cancel()
	if err := g.protection.Unprotect(ctx); err != nil && time.Since(g.protected) < protectFor {
		g.log.Warn("the task's protection is not cleared", "error", err)
		g.idleSince = time.Now() // delays the next attempt
		return
	}
	g.protected = time.Time{}
}

// Endpoint implements Protection with the task scale-in protection endpoint. AgentURI is the value of ECS_AGENT_URI.
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-scale-in-protection-endpoint.html
type Endpoint struct{ AgentURI string }

// Protect protects the task for a time.
func (e Endpoint) Protect(ctx context.Context, d time.Duration) error {
	return e.put(ctx, map[string]any{"ProtectionEnabled": true, "ExpiresInMinutes": int(d / time.Minute)})
}

// Unprotect clears the protection.
func (e Endpoint) Unprotect(ctx context.Context) error {
	return e.put(ctx, map[string]any{"ProtectionEnabled": false})
}

// maxAnswer is how many bytes of the endpoint's answer are read.
const maxAnswer = 64 << 10

func (e Endpoint) put(ctx context.Context, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, e.AgentURI+"/task-protection/v1/state", bytes.NewReader(b))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	var answer struct {
		Failure struct{ Reason, Detail string }
		Error   struct{ Code, Message string }
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer)
	switch {
	case answer.Error.Code != "":
		return fmt.Errorf("%s: %s", answer.Error.Code, answer.Error.Message)
	case answer.Failure.Reason != "":
		return fmt.Errorf("%s %s", answer.Failure.Reason, answer.Failure.Detail)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the endpoint answers %s", resp.Status)
	}
	return err
}
