package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/console"
)

// TestReadOnly: people are told why a control plane takes no changes, and nothing where it takes them or is Amazon's.
func TestReadOnly(t *testing.T) {
	for answer, want := range map[string]string{
		`{"status": "read-only", "reason": "no space left on /data"}`: "no space left on /data",
		`{"status": "read-only"}`:                                     "it cannot write (its owner is told why)",
		`{"status": "ok"}`:                                            "",
		`{"__type": "Forbidden"}`:                                     "",
		`<html>`:                                                      "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/pintle/health" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, answer)
		}))
		if got := (endpointFlags{server.URL}).readOnly(t.Context()); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
		server.Close()
	}
	if got := (endpointFlags{}).readOnly(t.Context()); got != "" {
		t.Errorf("AWS: %q", got)
	}
}

// TestGPUsOfNoCluster: a misspelt cluster isn't one without GPUs.
func TestGPUsOfNoCluster(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "") // with one the SDK makes a client of its own
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/pintle/gpus":
			fmt.Fprint(w, `[]`)
		default:
			fmt.Fprint(w, `{"clusters": [], "failures": [{"reason": "MISSING"}]}`)
		}
	}))
	defer server.Close()
	c := gpuListCmd{endpointFlags{server.URL}, "nosuch"}
	if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no cluster nosuch") {
		t.Errorf("got %v", err)
	}
}

// TestReason: a task that waits says what for.
func TestReason(t *testing.T) {
	waiting := types.Task{LastStatus: aws.String("PROVISIONING"), CapacityProviderName: aws.String("gpus"), CreatedAt: new(time.Now())}
	if got := reason(waiting); got != "waits for an instance of the capacity provider gpus" {
		t.Errorf("it says %q", got)
	}
	waiting.ContainerInstanceArn = aws.String("arn") // it waits for its network
	if got := reason(waiting); got != "" {
		t.Errorf("it says %q", got)
	}
	if got := reason(types.Task{LastStatus: aws.String("STOPPED"), StoppedReason: aws.String("done")}); got != "done" {
		t.Errorf("it says %q", got)
	}
	const exited = "Essential container in task exited"
	for want, of := range map[string][]string{
		"OutOfMemoryError: Container killed due to memory usage": {"", "OutOfMemoryError: Container killed due to memory usage"},
		exited: {"the runtime process ignores of this container: user", ""},
	} {
		killed := types.Task{LastStatus: aws.String("STOPPED"), StoppedReason: aws.String(exited)}
		for _, r := range of {
			killed.Containers = append(killed.Containers, types.Container{Reason: aws.String(r)})
		}
		if got := reason(killed); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// TestFaultsAreTold: people see that a fault was simulated or cleared, and what comes next.
func TestFaultsAreTold(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "")
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	f := endpointFlags{server.URL}
	for want, run := range map[string]func(context.Context) error{
		"g-1 has an error now, XID 79, which is simulated. It ends with: pintle gpus clear g-1\n": (&gpuFaultCmd{f, "g-1", 79}).Run,
		"g-1 counts as repaired, unless its driver still reports a fault: pintle gpus shows it\n": (&gpuClearCmd{f, "g-1"}).Run,
	} {
		got := printed(t, func() error { return run(t.Context()) })
		if got != want {
			t.Errorf("it prints %q, want %q", got, want)
		}
	}
}

// printed returns what a function prints.
func printed(t *testing.T, f func() error) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	failed := f()
	os.Stdout = stdout
	if err := errors.Join(failed, w.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadings: what nobody has told of a GPU isn't shown as 0.
func TestReadings(t *testing.T) {
	half := 50.0
	for want, r := range map[string]console.GPU{
		"- - -":                 {},
		"50 % 10/100 MiB 35 °C": {UtilizationPct: &half, MemoryUsedMiB: 10, MemoryMiB: 100, TemperatureC: 35},
		"- 10/100 MiB 35 °C":    {MemoryUsedMiB: 10, MemoryMiB: 100, TemperatureC: 35},
	} {
		load, memory, temperature := readings(r)
		if got := load + " " + memory + " " + temperature; got != want {
			t.Errorf("%+v: %s, want %s", r, got, want)
		}
	}
}
