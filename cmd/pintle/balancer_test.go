package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// freePort returns a port from below those that the kernel gives to whoever asks for any.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 21000 + rand.IntN(11000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// TestBalancer: the verb answers as its file says, takes up a change, keeps what it has when the file is bad, and ends.
func TestBalancer(t *testing.T) {
	port := freePort(t)
	config := filepath.Join(t.TempDir(), "balancers.json")
	write := func(body string) {
		text := fmt.Sprintf(`{"Balancers": [{"ARN": "b", "Type": "application", "Listeners": [{"ARN": "l", "Protocol": "HTTP", "Port": %d,
			"Rules": [{"ARN": "r", "Actions": [{"Type": "fixed-response", "Fixed": {"StatusCode": 200, "MessageBody": %q}}]}]}]}]}`, port, body)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	answer := func() string {
		resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}
	until := func(want string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); answer() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q and not %q", answer(), want)
			}
		}
	}
	write("one")
	ctx, cancel := context.WithCancel(t.Context())
	c := &balancerCmd{Config: config, Listen: "127.0.0.1", Connections: 100, DrainTime: time.Second}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	until("one")
	write("another")
	until("another")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestBalancerRefusesAFile(t *testing.T) {
	for text, want := range map[string]string{
		`{"Balancers": [{"ARN": "b", "Type": "gateway"}]}`: "Balancers[0].Type",
		`{"Balancers": [{"ARN": "b", "Subnets": []}]}`:     `unknown field "Subnets"`,
		`{"Groups": [{"ARN": "g", "Protocol": "QUIC"}]}`:   "Groups[0].Protocol",
		`{} {}`: "something follows",
		`{"Groups": [{"ARN": "g", "HealthCheck": {"Path": true}}]}`: "HealthCheck.Path",
	} {
		config := filepath.Join(t.TempDir(), "balancers.json")
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &balancerCmd{Config: config, Listen: "127.0.0.1", Connections: 100, DrainTime: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // it balances for as long if it takes the file
		defer cancel()
		if err := c.Run(ctx); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), config) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
