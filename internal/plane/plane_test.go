package plane

import (
	"bytes"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/file/filetest"
	"github.com/pintle/pintle/internal/sqs/queues"
)

// TestFullDisk: a control plane that can no longer write its queues ends with an error, so that its supervisor restarts it.
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
	go func() { ended <- p.Run(t.Context()) }()
	free := filetest.Fill(t, 1)
	defer free()
	if _, err := p.Queues.CreateQueue(queues.Queue{Name: "q"}); err == nil {
		t.Error("a queue was made on a full disk")
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "can no longer be written") {
		t.Errorf("it ends with %v", err)
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
