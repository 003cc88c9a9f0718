package plane

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file/filetest"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestFullDisk: on a full disk each store refuses changes, and takes them again once there is room. The control plane goes on.
func TestFullDisk(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	p, err := Open(t.Context(), Options{
		Listen:  "127.0.0.1:0",
		Data:    t.TempDir(),
		Region:  "us-east-1",
		Account: "000000000000",
		Lost:    time.Minute,
		Settle:  time.Minute,
		Log:     slog.Default(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- p.Run(ctx) }()
	writes := map[string]func() error{
		"queues": func() error {
			_, err := p.Queues.CreateQueue(queues.Queue{Name: uuid.NewString()})
			return err
		},
		"state": func() error {
			return p.State.Update(t.Context(), func(tx *state.Tx) error {
				tx.Clusters.Put(&state.Cluster{Cluster: types.Cluster{ClusterName: aws.String(uuid.NewString())}})
				return nil
			})
		},
		"logs": func() error { return p.streams.CreateGroup(streams.Group{Name: uuid.NewString()}) },
		"metrics": func() error {
			return p.Metrics.Put([]metrics.Sample{{Metric: metrics.NewMetric("n", "m"), At: time.Now().Unix(), Set: metrics.One(1)}})
		},
		"objects": func() error { return p.objects.CreateBucket(t.Context(), uuid.NewString(), nil) },
	}
	for range 3 {
		free := filetest.Fill(t, 1)
		for name, write := range writes {
			if err := write(); !disk.IsUnwritable(err) {
				t.Errorf("%s, on a full disk: %v", name, err)
			}
		}
		free()
		for name, write := range writes {
			err := write()
			for disk.IsUnwritable(err) {
				time.Sleep(10 * time.Millisecond)
				err = write()
			}
			if err != nil {
				t.Errorf("%s, with room again: %v", name, err)
			}
		}
	}
	select {
	case err := <-ended:
		t.Errorf("it ends with %v", err)
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTaskKey: the key is made once, whole or not at all. A failed start on a full disk doesn't spoil later ones.
func TestTaskKey(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	dir := t.TempDir()
	free := filetest.Fill(t, 16)
	_, full := taskKey(dir)
	free()
	if full == nil {
		t.Error("a key was made on a full disk")
	}
	key, err := taskKey(dir)
	if err != nil || len(key) != 32 {
		t.Fatalf("the next start has a key of %d bytes, %v", len(key), err)
	}
	if again, err := taskKey(dir); err != nil || !bytes.Equal(again, key) {
		t.Errorf("the one after has another: %v", err)
	}
}

// TestEndpoint: a control plane that listens on all addresses of its machine names one that others reach.
func TestEndpoint(t *testing.T) {
	p, err := Open(t.Context(), Options{
		Listen:          "0.0.0.0:0",
		Data:            t.TempDir(),
		Region:          "us-east-1",
		Account:         "000000000000",
		AccessKeyID:     "AKID",
		SecretAccessKey: "secret",
		Log:             slog.Default(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // a test
	u, err := url.Parse(p.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || ip.IsUnspecified() {
		t.Errorf("nobody reaches %s", p.Endpoint())
	}
}

// TestFirstAddress: a machine whose network leads nowhere is reached at an address of that network.
func TestFirstAddress(t *testing.T) {
	for want, addresses := range map[string][]string{
		"127.0.0.1": {"127.0.0.1/8", "::1/128", "fe80::1/64"},
		"10.0.0.1":  {"127.0.0.1/8", "169.254.7.7/16", "10.0.0.1/24", "10.0.1.1/24"},
		"fd00::1":   {"::1/128", "fe80::1/64", "fd00::1/64"},
	} {
		var given []net.Addr
		for _, a := range addresses {
			ip, n, err := net.ParseCIDR(a)
			if err != nil {
				t.Fatal(err)
			}
			given = append(given, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		if got := firstAddress(given); got.String() != want {
			t.Errorf("%v: %s, want %s", addresses, got, want)
		}
	}
}

// TestNobodyIsConnectedAtFirst: a control plane that starts after a kill doesn't say of any node that it's connected to the one before.
func TestNobodyIsConnectedAtFirst(t *testing.T) {
	o := Options{Listen: "127.0.0.1:0", Data: t.TempDir(), Region: "us-east-1", Account: "000000000000", Log: slog.Default()}
	open := func() *Plane {
		p, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() }) //nolint:errcheck // a test
		return p
	}
	const arn = "arn:aws:ecs:us-east-1:000000000000:container-instance/default/i"
	p := open()
	statetest.Update(t, p.State, func(tx *state.Tx) {
		tx.ContainerInstances.Put(&state.ContainerInstance{ContainerInstance: types.ContainerInstance{
			ContainerInstanceArn: aws.String(arn), Status: aws.String("ACTIVE"), AgentConnected: true,
		}})
	})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if open().State.View().ContainerInstances.Get(arn).AgentConnected {
		t.Error("a node is connected to a control plane that doesn't serve yet")
	}
}
