package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/certificate"
	"github.com/pintle/pintle/internal/ecs/enrollment"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node"
	"github.com/pintle/pintle/internal/pattern"
)

// membership is what a node keeps of having joined, in its data directory.
type membership struct {
	Token string // the id of the join token
	login
}

// check refuses to call a control plane whose certificate is known without asking for it.
func (l login) check() error {
	if l.CA != "" && !strings.HasPrefix(l.Endpoint, "https://") {
		return fmt.Errorf("the control plane has a certificate, and is called over HTTPS, not at %s", l.Endpoint)
	}
	return nil
}

// login returns how the agent calls its control plane: as the node that it has joined as, or with the environment's credentials.
func (c *agentCmd) login(ctx context.Context) (login, error) {
	path := filepath.Join(c.Data, "membership.json")
	var m membership
	if err := file.ReadJSON(path, &m); err != nil && !errors.Is(err, os.ErrNotExist) {
		return login{}, fmt.Errorf("read which control plane this node has joined: %w", err)
	}
	if c.Join != "" {
		i, err := enrollment.ParseInvitation(c.Join)
		if err != nil {
			return login{}, fmt.Errorf("--join: %w", err)
		}
		if c.Elsewhere {
			i.Endpoint = c.Endpoint
		}
		if i.ID != m.Token { // else this node has joined with it
			if m, err = join(ctx, i, c.Data); err != nil {
				return login{}, err
			}
			if err := file.WriteJSON(path, m, true); err != nil {
				return login{}, err
			}
		}
	}
	if m.Token != "" {
		if c.Elsewhere {
			m.Endpoint = c.Endpoint
		}
		return m.login, m.check()
	}
	return login{
		Endpoint:        c.Endpoint,
		Region:          regionHere("us-east-1"),
		AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
		CA:              cmp.Or(os.Getenv("AWS_CA_BUNDLE"), authorityHere(c.Endpoint)),
	}, nil
}

// agent returns an agent's configuration for its calls and for its web sockets.
func (l login) agent() (aws.Config, node.Authority, error) {
	config, err := configOf(l)
	if err != nil || l.CA == "" {
		return config, node.Authority{}, err
	}
	trusting, err := trust(l.CA)
	return config, node.Authority{TLS: trusting, Path: l.CA}, err
}

// joinTimeout is how long a control plane may take to answer.
const joinTimeout = 30 * time.Second

// join gets a key for an invitation, and keeps the certificate of the control plane's authority in a directory.
func join(ctx context.Context, i enrollment.Invitation, dir string) (membership, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if err := (login{Endpoint: i.Endpoint, CA: i.Fingerprint}).check(); err != nil {
		return membership{}, err
	}
	if i.Fingerprint != "" { // before the token is used up
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return membership{}, err
		}
	}
	answer, err := enroll(ctx, i)
	if err != nil {
		return membership{}, fmt.Errorf("join %s: %w", i.Endpoint, err)
	}
	m := membership{i.ID, login{
		Endpoint:        i.Endpoint,
		Region:          answer.Region,
		AccessKeyID:     answer.AccessKeyID,
		SecretAccessKey: answer.SecretAccessKey,
	}}
	if i.Fingerprint == "" {
		return m, nil
	}
	if !certificate.HasFingerprint(answer.CA, i.Fingerprint) {
		return m, fmt.Errorf("join %s: it has another certificate authority than the join token names", i.Endpoint)
	}
	m.CA = filepath.Join(dir, "ca.pem")
	return m, file.Replace(m.CA, []byte(answer.CA), true)
}

// enroll shows an invitation to its control plane.
func enroll(ctx context.Context, i enrollment.Invitation) (answer enrollment.Answer, err error) {
	body, err := json.Marshal(enrollment.Request{ID: i.ID, Secret: i.Secret})
	if err != nil {
		return answer, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(i.Endpoint, "/")+"/pintle/join", bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	r.Header.Set("Content-Type", "application/json")
	var pinned *tls.Config
	if i.Fingerprint != "" {
		pinned = certificate.Pinned(i.Fingerprint)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: pinned}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(r)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return answer, err
	}
	if resp.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(b))
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return answer, err
	}
	for _, text := range []string{answer.AccessKeyID, answer.SecretAccessKey, answer.Region} {
		if !joinWord.MatchString(text) {
			return answer, errors.New("its answer has no key")
		}
	}
	return answer, nil
}

// joinWord is what keys and regions are made of. Whoever answers may be no control plane, and the answer ends up in configuration files.
var joinWord = pattern.New(`^[A-Za-z0-9+/=_-]+$`, 256)

// joinCmd gets a key for nodes that have no --join: Amazon's agent.
type joinCmd struct {
	Token string
	CA    string
}

func (c *joinCmd) verb() *cobra.Command {
	cmd := newVerb(
		"join [flags] TOKEN", "Exchange a join token for a node's key, and print it as the environment of Amazon's agent.",
		argument(&c.Token, "a join token"), c.Run,
	)
	f := flags{cmd.Flags()}
	f.path(&c.CA, "ca", "DIRECTORY", ".", "Directory for the certificate of the control plane's authority, ca.pem, if it has one.")
	return cmd
}

// Run prints a key.
func (c *joinCmd) Run(ctx context.Context) error {
	i, err := enrollment.ParseInvitation(c.Token)
	if err != nil {
		return err
	}
	m, err := join(ctx, i, c.CA)
	if err != nil {
		return err
	}
	fmt.Printf("ECS_BACKEND_HOST=%s\nAWS_DEFAULT_REGION=%s\nAWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\n",
		strings.TrimSuffix(m.Endpoint, "/"), m.Region, m.AccessKeyID, m.SecretAccessKey)
	if m.CA != "" {
		fmt.Println("SSL_CERT_FILE=" + m.CA)
	}
	return nil
}
