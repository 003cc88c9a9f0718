package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire"
)

// gpuRow is one GPU as /pintle/gpus tells of it.
type gpuRow struct {
	Cluster, Node, InstanceType string
	Connected                   bool
	ID, Model                   string
	Simulated                   bool
	Task, Container             string
	UtilizationPct              float64
	MemoryUsedMiB, MemoryMiB    int64
	TemperatureC                float64
	Fault                       *state.GPUFault
}

// gpuFault is what /pintle/gpus/fault takes: an error to make up of a simulated GPU, or with XID 0 that a
// GPU was repaired.
type gpuFault struct {
	GPU string
	XID uint64
}

// maxFault is the most bytes of one.
const maxFault = 4 << 10

// gpuHandler serves the table that no AWS API has: GPUs, who holds each, and what it is doing.
func (s *server) gpuHandler(v *wire.Verifier) http.Handler {
	return signed(v, func(_ context.Context, w http.ResponseWriter, _ []byte) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.gpuRows()) //nolint:errcheck // the caller is gone
	})
}

// signed serves callers that have signed their request, where there is a verifier, with what they sent.
func signed(v *wire.Verifier, serve func(ctx context.Context, w http.ResponseWriter, body []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxFault))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if v != nil {
			_, err := v.Verify(r.Context(), "pintle", wire.Signed{Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Host: r.Host, Header: r.Header, Body: body})
			if err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
		}
		serve(r.Context(), w, body)
	})
}

// faultHandler passes a gpuFault on to the GPU's node.
func (s *server) faultHandler(v *wire.Verifier) http.Handler {
	pass := signed(v, func(ctx context.Context, w http.ResponseWriter, body []byte) {
		var f gpuFault
		if err := json.Unmarshal(body, &f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if status, err := s.fault(ctx, f); err != nil {
			http.Error(w, err.Error(), status)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" { // which no web page may send elsewhere
			http.Error(w, "post application/json", http.StatusUnsupportedMediaType)
			return
		}
		pass.ServeHTTP(w, r)
	})
}

func (s *server) fault(ctx context.Context, f gpuFault) (status int, err error) {
	for n := range s.store.View().ContainerInstances.All() {
		i := slices.IndexFunc(n.GPUs, func(g state.GPU) bool { return g.ID == f.GPU })
		if i < 0 || aws.ToString(n.Status) == "INACTIVE" {
			continue
		}
		if f.XID != 0 && !n.GPUs[i].Simulated {
			return http.StatusBadRequest, fmt.Errorf("GPU %s is not simulated: no errors are made up of it", f.GPU)
		}
		if err := s.link.Fault(ctx, *n.ContainerInstanceArn, f.GPU, f.XID); err != nil {
			return http.StatusConflict, fmt.Errorf("node %s: %w", lastPart(n.ContainerInstanceArn), err)
		}
		return http.StatusOK, nil
	}
	return http.StatusNotFound, fmt.Errorf("there is no GPU %q", f.GPU)
}

func (s *server) gpuRows() []gpuRow {
	v := s.store.View()
	rows := []gpuRow{}
	for n := range v.ContainerInstances.All() {
		if aws.ToString(n.Status) == "INACTIVE" {
			continue
		}
		held := map[string]*state.Task{}
		containers := map[string]string{}
		for t := range v.Tasks.By(state.TasksByInstance, *n.ContainerInstanceArn) {
			for _, g := range t.GPUs {
				if t.Holds() {
					held[g.ID], containers[g.ID] = t, g.Container
				}
			}
		}
		telemetry, _ := s.link.Telemetry(*n.ContainerInstanceArn)
		load := map[string]acs.GPULoad{}
		for _, l := range telemetry.GPUs {
			load[l.ID] = l
		}
		for _, g := range n.GPUs {
			row := gpuRow{
				Cluster: lastPart(&n.ClusterArn), Node: lastPart(n.ContainerInstanceArn), Connected: n.AgentConnected,
				ID: g.ID, Model: g.Model, Simulated: g.Simulated, Container: containers[g.ID],
				UtilizationPct: load[g.ID].UtilizationPct, MemoryUsedMiB: load[g.ID].MemoryUsedMiB, MemoryMiB: load[g.ID].MemoryMiB, TemperatureC: load[g.ID].TemperatureC,
				Fault: g.Fault,
			}
			for _, a := range n.Attributes {
				if *a.Name == "ecs.instance-type" {
					row.InstanceType = aws.ToString(a.Value)
				}
			}
			if t := held[g.ID]; t != nil {
				row.Task = lastPart(t.TaskArn)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

type gpusCmd struct {
	List  gpuListCmd  `cmd:"" default:"withargs" help:"List GPUs: their nodes, who is pinned to each, its load and its health. The default."`
	Fault gpuFaultCmd `cmd:"" help:"Make up an error of a simulated GPU, to see what comes of it."`
	Clear gpuClearCmd `cmd:"" help:"Say that a GPU was repaired, or a simulated one is well again: tasks get it again, unless its driver still says otherwise."`
}

type gpuFaultCmd struct {
	endpointFlags
	GPU string `arg:"" help:"Id of the GPU."`
	XID uint64 `name:"xid" default:"79" help:"Number of the error, as NVIDIA's driver has it: 79 is a GPU that has fallen off the bus."`
}

// Run makes up an error.
func (c *gpuFaultCmd) Run(ctx context.Context) error {
	if c.XID == 0 {
		return errors.New("--xid must not be 0")
	}
	return c.fault(ctx, gpuFault{c.GPU, c.XID})
}

type gpuClearCmd struct {
	endpointFlags
	GPU string `arg:"" help:"Id of the GPU."`
}

// Run says that a GPU was repaired.
func (c *gpuClearCmd) Run(ctx context.Context) error { return c.fault(ctx, gpuFault{GPU: c.GPU}) }

func (f endpointFlags) fault(ctx context.Context, what gpuFault) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = f.call(ctx, http.MethodPost, "/pintle/gpus/fault", body)
	return err
}

type gpuListCmd struct {
	endpointFlags
	Cluster string `help:"Only this cluster's."`
}

// Run prints the table.
func (c *gpuListCmd) Run(ctx context.Context) error {
	rows, err := c.fetch(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tTYPE\tGPU\tMODEL\tTASK\tLOAD\tMEMORY\tTEMP\tHEALTH")
	free, broken := 0, 0
	for _, r := range rows {
		task, model, health := "-", r.Model, "ok"
		if r.Task != "" {
			task = r.Task + "/" + r.Container
		}
		switch {
		case r.Fault != nil:
			broken++
			health = r.Fault.Reason + ", since " + r.Fault.Since.Format(time.RFC3339)
		case r.Task == "":
			free++
		}
		if r.Simulated {
			model += " (simulated)"
		}
		if !r.Connected {
			model += " (node away)"
		}
		fmt.Fprintf(w, "%.8s\t%s\t%s\t%s\t%s\t%.0f %%\t%d/%d MiB\t%.0f °C\t%s\n", r.Node, r.InstanceType, r.ID, model, task, r.UtilizationPct, r.MemoryUsedMiB, r.MemoryMiB, r.TemperatureC, health)
	}
	fmt.Fprintf(w, "%d GPUs, %d free, %d broken\n", len(rows), free, broken)
	return w.Flush()
}

func (c *gpuListCmd) fetch(ctx context.Context) ([]gpuRow, error) {
	b, err := c.call(ctx, http.MethodGet, "/pintle/gpus", nil)
	if err != nil {
		return nil, err
	}
	var rows []gpuRow
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(r gpuRow) bool { return c.Cluster != "" && r.Cluster != c.Cluster }), nil
}

// call calls what no AWS API has, signed as AWS's are.
func (f endpointFlags) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	config, err := awsConfig(ctx, f.Endpoint)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, f.Endpoint+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	key, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), "pintle", config.Region, time.Now()); err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("no control plane answers at %s: %w (start one with: pintle up)", f.Endpoint, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(b))
	}
	return b, nil
}
