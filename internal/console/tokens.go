package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/pintle/pintle/internal/ecs/enrollment"
	"github.com/pintle/pintle/internal/wire/call"
)

// Token is a join token in /pintle/tokens, without its secret.
type Token struct {
	ID        string
	CreatedAt time.Time
	ExpiresAt time.Time
	UsesLeft  int
}

func (c *Console) serveTokens(_ context.Context, w http.ResponseWriter, _ []byte) {
	out := []Token{}
	for _, t := range c.opts.Enrollment.List() {
		out = append(out, Token{t.ID, t.CreatedAt, t.ExpiresAt, t.UsesLeft})
	}
	writeJSON(w, out)
}

// serveNewToken makes a join token. Its text is answered this once.
func (c *Console) serveNewToken(ctx context.Context, w http.ResponseWriter, body []byte) {
	var in enrollment.NewToken
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t, secret, err := c.opts.Enrollment.Create(ctx, in)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	i := enrollment.Invitation{Endpoint: c.opts.Endpoint(call.From(ctx).Endpoint), ID: t.ID, Secret: secret}
	if c.opts.Authority != nil {
		i.Fingerprint = c.opts.Authority.Fingerprint()
	}
	writeJSON(w, i.String())
}

// serveEndToken revokes the token whose id is the body.
func (c *Console) serveEndToken(ctx context.Context, w http.ResponseWriter, body []byte) {
	var id string
	err := json.Unmarshal(body, &id)
	if err == nil {
		err = c.opts.Enrollment.Revoke(ctx, id)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// serveJoin gives a machine a key for a join token, which is all that it has to show.
func (c *Console) serveJoin(ctx context.Context, w http.ResponseWriter, body []byte) {
	var in enrollment.Request
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := enrollment.Answer{Region: c.opts.Region}
	if c.opts.Authority != nil {
		answer.CA = c.opts.Authority.PEM()
	}
	var err error
	answer.Key, err = c.opts.Enrollment.Join(ctx, in.ID, in.Secret)
	switch {
	case errors.Is(err, enrollment.ErrRefused):
		http.Error(w, err.Error(), http.StatusForbidden)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		writeJSON(w, answer)
	}
}
