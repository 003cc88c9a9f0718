package plane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/peers"
)

// registerNode gives a node a key, registers it in a cluster, and returns its configuration and ARN.
func (p *Plane) registerNode(t *testing.T, cluster string) (aws.Config, string) {
	t.Helper()
	key := p.join(t)
	config := p.config(key.AccessKeyID, key.SecretAccessKey, "")
	out, err := awsecs.NewFromConfig(config).RegisterContainerInstance(t.Context(), &awsecs.RegisterContainerInstanceInput{
		Cluster:        &cluster,
		TotalResources: []types.Resource{{Name: aws.String("CPU"), IntegerValue: 1024}, {Name: aws.String("MEMORY"), IntegerValue: 1024}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return config, *out.ContainerInstance.ContainerInstanceArn
}

// announce tells the control plane of a peer, and returns the answer and its status.
func (p *Plane) announce(ctx context.Context, config aws.Config, a acs.PeerAnnouncement) (welcome acs.PeerWelcome, status int, err error) {
	body, err := json.Marshal(a)
	if err != nil {
		return welcome, 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Endpoint()+acs.PeerPath, bytes.NewReader(body))
	if err != nil {
		return welcome, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	key, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		return welcome, 0, err
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), "pintle", config.Region, time.Now()); err != nil {
		return welcome, 0, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return welcome, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return welcome, resp.StatusCode, errors.New(string(text))
	}
	return welcome, resp.StatusCode, json.NewDecoder(resp.Body).Decode(&welcome)
}

// TestWhoAnnouncesPeers: a node speaks for itself, and nobody else for one but the owner.
func TestWhoAnnouncesPeers(t *testing.T) {
	p := serveSigned(t)
	config, arn := p.registerNode(t, "default")
	_, other := p.registerNode(t, "default")
	putTask(t, p, "RUNNING")
	c := p.issuer.Issue(aTask, "arn:aws:iam::000000000000:role/worker", "", "TaskApplication")
	task := p.config(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	good := acs.PeerAnnouncement{ContainerInstance: arn, Address: "127.0.0.1:1", Certificate: strings.Repeat("0", 64), Key: make([]byte, 32)}
	with := func(change func(*acs.PeerAnnouncement)) acs.PeerAnnouncement {
		a := good
		change(&a)
		return a
	}
	for _, c := range []struct {
		name string
		by   aws.Config
		what acs.PeerAnnouncement
		want int
	}{
		{"the node", config, good, 200},
		{"the owner", p.config("AKID", "secret", ""), good, 200},
		{"a task", task, good, 403},
		{"nobody", p.config("AKID", "wrong", ""), good, 403},
		{"the node for another", config, with(func(a *acs.PeerAnnouncement) { a.ContainerInstance = other }), 403},
		{"no instance", p.config("AKID", "secret", ""), with(func(a *acs.PeerAnnouncement) { a.ContainerInstance = "x" }), 400},
		{"no address", config, with(func(a *acs.PeerAnnouncement) { a.Address = "" }), 400},
		{"a short key", config, with(func(a *acs.PeerAnnouncement) { a.Key = a.Key[:8] }), 400},
		{"too many layers", config, with(func(a *acs.PeerAnnouncement) { a.Layers = make([]string, 41) }), 400},
	} {
		if _, status, err := p.announce(t.Context(), c.by, c.what); status != c.want {
			t.Errorf("%s: %d %v", c.name, status, err)
		}
	}
}

// counted counts the layers that the registry sends itself.
type counted struct {
	mu   sync.Mutex
	sent map[string]int
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusOK && resp.ContentLength > 100_000 && strings.Contains(r.URL.Path, "/blobs/") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent[r.URL.Path]++
	}
	return resp, err
}

// TestPeerPulls: ten nodes of a cluster and one of another pull an image at once. Each layer comes from the registry once for each cluster.
func TestPeerPulls(t *testing.T) {
	p := serveSigned(t)
	createRepository(t, p, "team/app")
	if _, err := p.ECS.CreateCluster(t.Context(), &awsecs.CreateClusterInput{ClusterName: aws.String("other")}); err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(2<<20, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(p.reference(t, "team/app:v1"), image, logIn(t, p.config("AKID", "secret", "")), remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	registry := &counted{sent: map[string]int{}}
	var running, pulls sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer running.Wait()
	defer cancel()
	for i := range 11 {
		cluster := "default"
		if i == 10 {
			cluster = "other"
		}
		config, arn := p.registerNode(t, cluster)
		node, err := peers.Open(peers.Options{
			Dir: t.TempDir(), Address: "127.0.0.1:0", Instance: func() string { return arn }, Log: slog.New(slog.DiscardHandler),
			Announce: func(ctx context.Context, a acs.PeerAnnouncement) (acs.PeerWelcome, error) {
				welcome, _, err := p.announce(ctx, config, a)
				return welcome, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { node.Run(ctx) }) //nolint:errcheck // it ends with its context
		password := logIn(t, config)
		pulls.Go(func() {
			pulled, err := remote.Image(p.reference(t, "team/app:v1"), password, remote.WithContext(ctx), remote.WithTransport(node.Through(registry)))
			if err == nil {
				err = validate.Image(pulled)
			}
			if err != nil {
				t.Errorf("node %d: %v", i, err)
			}
		})
	}
	pulls.Wait()
	if len(registry.sent) != 3 {
		t.Errorf("the registry sent %d layers", len(registry.sent))
	}
	for layer, times := range registry.sent {
		if times != 2 {
			t.Errorf("%s was sent %d times", layer, times)
		}
	}
}
