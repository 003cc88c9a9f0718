package docker

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
)

// TestOwnNetwork: a container in its task's network finds its own host name.
func TestOwnNetwork(t *testing.T) {
	cni, err := network.OpenBridge(t.Context(), t.TempDir(), netip.MustParsePrefix("10.213.0.0/16"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetworks(engine, cni)
	if err != nil {
		t.Fatal(err)
	}
	task := "own-" + runtimetest.Mark
	var netns, ip string
	for range 2 { // a second agent makes it again
		if netns, ip, _, err = n.Create(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if err := n.Delete(t.Context(), task); err != nil {
			t.Error(err)
		}
	}()
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := runtimetest.MakeImage(path); err != nil {
		t.Fatal(err)
	}
	spec := &runtime.Spec{
		ID:         task,
		Owner:      "me",
		Image:      "rootfs:" + path,
		Entrypoint: []string{"/bin/sh", "-c", `grep -c "$(hostname)" /etc/hosts; grep "$(hostname)" /etc/hosts; grep www /etc/hosts`},
		ExtraHosts: []string{"www:127.255.0.1"},
		Network:    runtime.Network{Mode: "netns", NetNS: netns, IP: ip},
	}
	if _, err := engine.Pull(t.Context(), spec.Image, nil); err != nil {
		t.Fatal(err)
	}
	if err := engine.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	defer engine.Remove(t.Context(), spec.ID) //nolint:errcheck // a test
	if err := engine.Start(t.Context(), spec.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Wait(t.Context(), spec.ID); err != nil {
		t.Fatal(err)
	}
	var lines []string
	emit := func(l runtime.Line) error { lines = append(lines, l.Text); return nil }
	if err := engine.Logs(t.Context(), spec.ID, "", false, emit); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 3 || lines[0] != "1" || !strings.HasPrefix(lines[1], ip+"\t") || lines[2] != "127.255.0.1\twww" {
		t.Errorf("got %q, its address is %s", lines, ip)
	}
}
