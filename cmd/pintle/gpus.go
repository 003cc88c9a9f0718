package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
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
}

// gpuHandler serves the table that no AWS API has: GPUs, who holds each, and what it is doing.
func (s *server) gpuHandler(v *wire.Verifier) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v != nil {
			_, err := v.Verify(r.Context(), "pintle", wire.Signed{Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Host: r.Host, Header: r.Header})
			if err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.gpuRows()) //nolint:errcheck // the caller is gone
	})
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
	clientFlags
}

// Run prints the table.
func (c *gpusCmd) Run(ctx context.Context) error {
	rows, err := c.fetch(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tTYPE\tGPU\tMODEL\tTASK\tLOAD\tMEMORY\tTEMP")
	free := 0
	for _, r := range rows {
		task, model := "-", r.Model
		if r.Task != "" {
			task = r.Task + "/" + r.Container
		} else {
			free++
		}
		if r.Simulated {
			model += " (simulated)"
		}
		if !r.Connected {
			model += " (node away)"
		}
		fmt.Fprintf(w, "%.8s\t%s\t%s\t%s\t%s\t%.0f %%\t%d/%d MiB\t%.0f °C\n", r.Node, r.InstanceType, r.ID, model, task, r.UtilizationPct, r.MemoryUsedMiB, r.MemoryMiB, r.TemperatureC)
	}
	fmt.Fprintf(w, "%d GPUs, %d free\n", len(rows), free)
	return w.Flush()
}

func (c *gpusCmd) fetch(ctx context.Context) ([]gpuRow, error) {
	config, err := awsConfig(ctx, c.Endpoint)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Endpoint+"/pintle/gpus", nil)
	if err != nil {
		return nil, err
	}
	key, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	empty := sha256.Sum256(nil)
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(empty[:]), "pintle", config.Region, time.Now()); err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("no control plane answers at %s: %w (start one with: pintle up)", c.Endpoint, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, b)
	}
	var rows []gpuRow
	return rows, json.Unmarshal(b, &rows)
}
