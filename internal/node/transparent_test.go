package node

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/node/runtime"
)

type plain struct{ runtime.Runtime }

func (plain) Name() string { return "process" }

// standIn starts what a node of its own has to stand in for AWS.
func standIn(t *testing.T, c Config) (*Agent, *attendant) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	t.Cleanup(func() { cancel(); g.Wait() }) //nolint:errcheck // it ends with ctx
	a, at := New(c), &attendant{ctx: ctx, group: g}
	if err := a.startTransparent(at); err != nil {
		t.Fatal(err)
	}
	if err := a.startNames(at); err != nil {
		t.Fatal(err)
	}
	return a, at
}

// TestTransparentEnvironment: who has a network of its own finds the authority where it's mounted; who shares the machine's has a proxy, too.
func TestTransparentEnvironment(t *testing.T) {
	c := Config{Runtime: oci{}, Endpoint: "https://pintle.example.com", DataDir: t.TempDir(), Transparent: &Transparent{}}
	a, _ := standIn(t, c)
	a.metadata = a.proxy
	task := sleeper()
	env := a.environment(&task, "token")
	if env["AWS_CA_BUNDLE"] != "/etc/pintle/aws/bundle.pem" || env["NODE_EXTRA_CA_CERTS"] != "/etc/pintle/aws/ca.pem" || env["HTTPS_PROXY"] != "" {
		t.Errorf("in its own network: %v", env)
	}
	if mounts := a.awsMounts(); len(mounts) != 1 || !mounts[0].ReadOnly || mounts[0].Source != filepath.Join(c.DataDir, "aws", "public") {
		t.Errorf("the mounts are %v", mounts)
	}
	task.NetworkMode = "host"
	env = a.environment(&task, "token")
	if env["SSL_CERT_FILE"] != "/etc/pintle/aws/bundle.pem" || env["HTTPS_PROXY"] != "http://"+a.proxy.String() ||
		env["NO_PROXY"] != "localhost,127.0.0.1,169.254.169.254,fd00:ec2::254,169.254.170.2,pintle.example.com" {
		t.Errorf("in the machine's network: %v", env)
	}
	c.Runtime, c.DataDir = plain{}, t.TempDir()
	a, _ = standIn(t, c)
	a.metadata = a.proxy
	env = a.environment(&task, "token")
	if bundle := filepath.Join(c.DataDir, "aws", "public", "bundle.pem"); env["AWS_CA_BUNDLE"] != bundle || a.awsMounts() != nil {
		t.Errorf("as a plain process: %v, %v", env, a.awsMounts())
	}
	port := a.proxy.String()
	if again, _ := standIn(t, Config{Runtime: plain{}, Endpoint: c.Endpoint, DataDir: t.TempDir(), Transparent: &Transparent{}}); again.proxy.String() == port {
		t.Error("two nodes have one proxy")
	}
}

// TestTransparentIsOver: containers that began under --transparent ask for names here as long as they run, also once the node has no such flag.
func TestTransparentIsOver(t *testing.T) {
	c := Config{Runtime: oci{}, Endpoint: "http://127.0.0.1:1", DataDir: t.TempDir()}
	a, at := standIn(t, c)
	if at.inUse() || a.nameServer() != "" || len(a.environment(new(sleeper()), "t")["SSL_CERT_FILE"]) > 0 {
		t.Error("the node stands in for AWS without being told")
	}
	c.Transparent = &Transparent{}
	if a, at = standIn(t, c); !at.inUse() || a.nameServer() == "" {
		t.Error("the node doesn't answer names")
	}
	c.Transparent = nil
	if a, at = standIn(t, c); !at.inUse() || a.nameServer() != "" {
		t.Error("the node has forgotten its containers")
	}
}

// TestPasses: a task's connections go on to where it could connect itself, and to other services of AWS's if that's allowed.
func TestPasses(t *testing.T) {
	for name, want := range map[string][2]bool{"example.com": {true, true}, "dynamodb.us-east-1.amazonaws.com": {false, true}} {
		for i, others := range []bool{false, true} {
			a := New(Config{Runtime: plain{}, Transparent: &Transparent{Others: others}})
			if a.passes(name) != want[i] {
				t.Errorf("%s, others %v: %v", name, others, !want[i])
			}
		}
	}
}

// TestTransparentNeedsAControlPlane: what can't be led anywhere is refused when the agent starts, as it is where the agent can't answer names.
func TestTransparentNeedsAControlPlane(t *testing.T) {
	a := New(Config{Runtime: oci{}, DataDir: t.TempDir(), Transparent: &Transparent{}})
	if err := a.startTransparent(&attendant{}); err == nil {
		t.Error("there is no control plane")
	}
	if _, err := os.Stat(filepath.Join(a.config.DataDir, "aws", "public")); err == nil {
		t.Error("there are files for containers")
	}
}
