package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/node/function"
)

func newGpus() *cobra.Command {
	c := new(gpuListCmd)
	cmd := newVerb(
		"gpus [flags]", "List GPUs with their nodes, tasks, load and health; simulate faults.", noArguments, c.Run,
	)
	c.define(flags{cmd.Flags()})
	cmd.AddCommand(new(gpuListCmd).verb(), new(gpuFaultCmd).verb(), new(gpuClearCmd).verb())
	return cmd
}

func (c *gpuListCmd) verb() *cobra.Command {
	cmd := newVerb(
		"list [flags]", "List GPUs with their nodes, tasks, load and health. The default.", noArguments, c.Run,
	)
	c.define(flags{cmd.Flags()})
	return cmd
}

func (c *gpuFaultCmd) verb() *cobra.Command {
	cmd := newVerb(
		"fault [flags] GPU", "Simulate an error of a simulated GPU, to see what happens.", argument(&c.GPU, "the id of a GPU"), c.Run,
	)
	c.define(flags{cmd.Flags()})
	return cmd
}

func (c *gpuClearCmd) verb() *cobra.Command {
	const short = "Say that a GPU was repaired, or end a simulated fault. Tasks get the GPU again, unless its driver still reports a fault."
	cmd := newVerb("clear [flags] GPU", short, argument(&c.GPU, "the id of a GPU"), c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

type gpuFaultCmd struct {
	endpointFlags
	GPU string
	XID uint64
}

func (c *gpuFaultCmd) define(f flags) {
	c.endpointFlags.define(f)
	f.Uint64Var(&c.XID, "xid", 79, "Number of the error in NVIDIA's driver: 79 is a GPU that has fallen off the bus.")
}

// Run simulates an error.
func (c *gpuFaultCmd) Run(ctx context.Context) error {
	if c.XID == 0 {
		return errors.New("--xid must not be 0")
	}
	if err := c.postFault(ctx, console.Fault{GPU: c.GPU, XID: c.XID}); err != nil {
		return err
	}
	fmt.Printf("%s has an error now, XID %d, which is simulated. It ends with: pintle gpus clear %s\n", c.GPU, c.XID, c.GPU)
	return nil
}

type gpuClearCmd struct {
	endpointFlags
	GPU string
}

func (c *gpuClearCmd) define(f flags) {
	c.endpointFlags.define(f)
}

// Run says that a GPU was repaired.
func (c *gpuClearCmd) Run(ctx context.Context) error {
	if err := c.postFault(ctx, console.Fault{GPU: c.GPU}); err != nil {
		return err
	}
	fmt.Printf("%s counts as repaired, unless its driver still reports a fault: pintle gpus shows it\n", c.GPU)
	return nil
}

func (f endpointFlags) postFault(ctx context.Context, what console.Fault) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = f.call(ctx, http.MethodPost, "/pintle/gpus/fault", body)
	return err
}

type gpuListCmd struct {
	endpointFlags
	Cluster string
}

func (c *gpuListCmd) define(f flags) {
	c.endpointFlags.define(f)
	f.StringVar(&c.Cluster, "cluster", "", "Only this cluster's.")
}

// Run prints the table.
func (c *gpuListCmd) Run(ctx context.Context) error {
	rows, err := c.fetch(ctx)
	if err != nil {
		return err
	}
	c.noteReadOnly(ctx)
	w := newTable("NODE", "TYPE", "GPU", "MODEL", "TASK", "LOAD", "MEMORY", "TEMP", "HEALTH")
	free, broken, away := 0, 0, 0
	for _, r := range rows {
		task, model, health := "-", r.Model, "ok"
		if r.Task != "" {
			task = r.Task + "/" + r.Container
		}
		switch {
		case r.Fault != nil:
			broken++
			health = r.Fault.Reason + ", since " + r.Fault.Since.Format(time.RFC3339)
		case !r.Connected: // nothing is placed there
			away++
		case r.Task == "":
			free++
		}
		if r.Simulated {
			model += " (simulated)"
		}
		if !r.Connected {
			model += " (node away)"
		}
		load, memory, temperature := readings(r)
		w.row(fmt.Sprintf("%.8s", r.Node), r.InstanceType, r.ID, model, task, load, memory, temperature, health)
	}
	fmt.Fprintf(w, "%s, %d free, %d broken", counted(len(rows), "GPU"), free, broken)
	if away > 0 {
		fmt.Fprintf(w, ", %d on nodes that are away", away)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// readings returns what a GPU's node has told of it. Amazon's agent tells nothing, and no node does in its first second.
func readings(r console.GPU) (load, memory, temperature string) {
	load, memory, temperature = "-", "-", "-"
	if r.UtilizationPct != nil {
		load = fmt.Sprintf("%.0f %%", *r.UtilizationPct)
	}
	if r.MemoryMiB > 0 {
		memory = fmt.Sprintf("%d/%d MiB", r.MemoryUsedMiB, r.MemoryMiB)
		temperature = fmt.Sprintf("%.0f °C", r.TemperatureC)
	}
	return load, memory, temperature
}

func (c *gpuListCmd) fetch(ctx context.Context) ([]console.GPU, error) {
	b, err := c.call(ctx, http.MethodGet, "/pintle/gpus", nil)
	if err != nil {
		return nil, err
	}
	var rows []console.GPU
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, err
	}
	if c.Cluster == "" {
		return rows, nil
	}
	rows = slices.DeleteFunc(rows, func(r console.GPU) bool { return r.Cluster != c.Cluster })
	if len(rows) > 0 {
		return rows, nil
	}
	return nil, c.clusterExists(ctx)
}

// clusterExists returns an error if the cluster is not there.
func (c *gpuListCmd) clusterExists(ctx context.Context) error {
	cl, err := clientFlags{c.endpointFlags, c.Cluster}.clients(ctx)
	if err != nil {
		return err
	}
	out, err := cl.ecs.DescribeClusters(ctx, &awsecs.DescribeClustersInput{Clusters: []string{c.Cluster}})
	if err == nil && len(out.Clusters) == 0 {
		err = fmt.Errorf("there is no cluster %s: aws ecs list-clusters lists them", c.Cluster)
	}
	return err
}

// noteReadOnly tells people that the control plane takes no changes, if that's so, and why. Amazon ECS doesn't answer.
func (f endpointFlags) noteReadOnly(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if why := f.readOnly(ctx); why != "" {
		fmt.Fprintln(plainWriter{os.Stderr}, "pintle: the control plane takes no changes:", why)
	}
}

// readOnly returns why the control plane takes no changes, or "".
func (f endpointFlags) readOnly(ctx context.Context) string {
	if f.Endpoint == "" { // AWS itself
		return ""
	}
	var health struct{ Status, Reason string }
	b, err := f.call(ctx, http.MethodGet, "/pintle/health", nil)
	if err != nil || json.Unmarshal(b, &health) != nil || health.Status != "read-only" {
		return ""
	}
	return cmp.Or(health.Reason, "it cannot write (its owner is told why)")
}

// call makes a call that no AWS API has, signed like AWS's.
func (f endpointFlags) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	config, err := awsConfig(f.Endpoint)
	if err != nil {
		return nil, err
	}
	return callPintle(ctx, config, method, f.Endpoint+path, body)
}

// signPintle signs a request of one of Pintle's own paths.
func signPintle(ctx context.Context, config aws.Config, r *http.Request, body []byte) error {
	key, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash) // so that all is checked before the body is read
	return v4.NewSigner().SignHTTP(ctx, key, r, hash, "pintle", config.Region, time.Now())
}

// calling returns what calls the control plane for the execution environments of functions.
func calling(config aws.Config, endpoint string) function.Call {
	return func(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, method, endpoint+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		maps.Copy(r.Header, header)
		if err := signPintle(ctx, config, r, body); err != nil {
			return nil, err
		}
		return config.HTTPClient.Do(r)
	}
}

// callPintle calls a URL with a configuration's key and client.
func callPintle(ctx context.Context, config aws.Config, method, url string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if err := signPintle(ctx, config, r, body); err != nil {
		return nil, err
	}
	resp, err := config.HTTPClient.Do(r)
	if err != nil {
		return nil, notReached(err)
	}
	defer resp.Body.Close()
	return readAnswer(resp)
}

// readAnswer reads what the control plane answers, and makes an error of a refusal.
func readAnswer(resp *http.Response) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, err
	}
	switch {
	case isPage(resp):
		return nil, errors.New(noControlPlane)
	case resp.StatusCode == http.StatusOK:
		return b, nil
	case wantsTLS(resp):
		return nil, errors.New(askByTLS(resp))
	case resp.StatusCode < http.StatusInternalServerError: // the control plane says what is wrong
		text := string(bytes.TrimSpace(b))
		code, _, _ := strings.Cut(text, ":")
		return nil, errors.New(text + advice(code))
	default:
		return nil, fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(b))
	}
}
