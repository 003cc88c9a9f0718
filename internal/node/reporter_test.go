package node

import (
	"encoding/json"
	"testing"

	"github.com/pintle/pintle/internal/node/engine"
)

// TestBindings: a range of ports is one binding, and one of the same ports with the other protocol is another.
func TestBindings(t *testing.T) {
	got, err := json.Marshal(bindings([]engine.Port{
		{Container: 80, Host: 8080, Protocol: "tcp"},
		{Container: 81, Host: 8081, Protocol: "tcp"},
		{Container: 8000, Host: 49200, Protocol: "tcp", Range: "8000-8001"},
		{Container: 8001, Host: 49201, Protocol: "tcp", Range: "8000-8001"},
		{Container: 8000, Host: 50000, Protocol: "udp", Range: "8000-8001"},
		{Container: 8001, Host: 50001, Protocol: "udp", Range: "8000-8001"},
	}))
	const all = `"BindIP":"0.0.0.0",`
	want := `[{` + all + `"ContainerPort":80,"ContainerPortRange":null,"HostPort":8080,"HostPortRange":null,"Protocol":"tcp"},` +
		`{` + all + `"ContainerPort":81,"ContainerPortRange":null,"HostPort":8081,"HostPortRange":null,"Protocol":"tcp"},` +
		`{` + all + `"ContainerPort":null,"ContainerPortRange":"8000-8001","HostPort":null,"HostPortRange":"49200-49201","Protocol":"tcp"},` +
		`{` + all + `"ContainerPort":null,"ContainerPortRange":"8000-8001","HostPort":null,"HostPortRange":"50000-50001","Protocol":"udp"}]`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}
