package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/ecs/enrollment"
)

func newToken() *cobra.Command {
	c := new(tokenCmd)
	cmd := newVerb("token [flags]", "Make a token with which machines join as nodes; list and revoke tokens.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	cmd.AddCommand(new(tokenListCmd).verb(), new(tokenRevokeCmd).verb(), new(joinCmd).verb())
	return checked(cmd, c.validate)
}

type tokenCmd struct {
	endpointFlags
	Expires time.Duration
	Uses    int
}

func (c *tokenCmd) define(f flags) {
	c.endpointFlags.define(f)
	f.DurationVar(&c.Expires, "expires", time.Hour, "How long machines can join with it.")
	f.IntVar(&c.Uses, "uses", 1, "How many machines can join with it.")
}

func (c *tokenCmd) validate() error {
	switch {
	case c.Uses < 1 || c.Uses > enrollment.MaxUses:
		return fmt.Errorf("--uses must be from 1 to %d", enrollment.MaxUses)
	case c.Expires < time.Second || c.Expires > enrollment.MaxLifetime:
		return fmt.Errorf("--expires must be from 1s to %s", enrollment.MaxLifetime)
	}
	return nil
}

// Run prints a new token. Nobody can see it again.
func (c *tokenCmd) Run(ctx context.Context) error {
	body, err := json.Marshal(enrollment.NewToken{Seconds: int64(c.Expires / time.Second), Uses: c.Uses})
	if err != nil {
		return err
	}
	b, err := c.call(ctx, http.MethodPost, "/pintle/tokens/new", body)
	if err != nil {
		return err
	}
	var token string
	if err := json.Unmarshal(b, &token); err != nil {
		return err
	}
	fmt.Println(token)
	return nil
}

type tokenListCmd struct{ endpointFlags }

func (c *tokenListCmd) verb() *cobra.Command {
	cmd := newVerb("list [flags]", "List the tokens that machines can join with, without their secrets.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run lists tokens.
func (c *tokenListCmd) Run(ctx context.Context) error {
	b, err := c.call(ctx, http.MethodGet, "/pintle/tokens", nil)
	if err != nil {
		return err
	}
	var tokens []console.Token
	if err := json.Unmarshal(b, &tokens); err != nil {
		return err
	}
	w := newTable("ID", "MADE", "EXPIRES", "USES LEFT")
	for _, t := range tokens {
		w.row(t.ID, t.CreatedAt.Format(time.RFC3339), t.ExpiresAt.Format(time.RFC3339), t.UsesLeft)
	}
	return w.Flush()
}

type tokenRevokeCmd struct {
	endpointFlags
	ID string
}

func (c *tokenRevokeCmd) verb() *cobra.Command {
	const short = "Revoke a token. Nodes that have joined with it stay: deregister their container instances to revoke their keys."
	cmd := newVerb("revoke [flags] ID", short, argument(&c.ID, "the id of a token"), c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run revokes a token.
func (c *tokenRevokeCmd) Run(ctx context.Context) error {
	body, err := json.Marshal(c.ID)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, http.MethodPost, "/pintle/tokens/end", body)
	return err
}
