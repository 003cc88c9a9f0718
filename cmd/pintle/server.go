package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"time"

	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/plane"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/trace"
	"github.com/pintle/pintle/internal/vault"
)

// serverFlags are the flags of every control plane.
type serverFlags struct {
	Listen  string
	Data    string
	Region  string
	Account string
	Lost    time.Duration

	Heartbeat time.Duration

	Settle time.Duration

	AdvertiseURL    string
	AccessKeyID     string
	SecretAccessKey string
	IAM             string
	SecretsKey      string
	SecretsKeyFile  string
	Console         string
	ScrapeToken     string
	TLS             string
	TLSCertificate  string
	Collector       string
	CollectorHeader string
	TLSKey          string
	GPUMetrics      bool
	Reaction        string
	ScaleIn         time.Duration
	MaxMetrics      int
	WebhookTo       []string
	Upstreams       []string
	Mirrors         map[string]string
	FunctionImages  map[string]string
	Serverless      string
	Verbose         bool

	fleetFlags
	Balancer       string
	BalancerListen string
	BalancerPorts  string
	SharedFiles    string // that of nodeFlags, for pintle up
}

// defineBalancer defines the flags of the process that carries load balancers out.
func (c *serverFlags) defineBalancer(f flags, otherwise string) {
	f.choice(&c.Balancer, "balancer", otherwise,
		"Whether this machine carries the load balancers' traffic, in a process of its own; none leaves it to pintle balancer --endpoint.", "local", "none")
	f.StringVar(&c.BalancerListen, "balancer-listen", "127.0.0.1", "Address that load balancers' listeners have on this machine.")
	f.StringVar(&c.BalancerPorts, "balancer-ports", defaultBalancerPorts, "Ports for listeners whose own ports aren't free.")
}

func (c *serverFlags) define(f flags) {
	f.StringVar(&c.Listen, "listen", "127.0.0.1:4566", "Address to listen on. Anything but loopback needs an access key.")
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle", "Directory for all state.")
	f.StringVar(&c.Region, "region", "us-east-1", "AWS region that it answers as.")
	f.StringVar(&c.Account, "account", "000000000000", "AWS account id that it answers as.")
	f.DurationVar(&c.Lost, "lost", 5*time.Minute, "How long a node may be disconnected before its tasks are given up.")
	f.DurationVar(&c.Heartbeat, "heartbeat", 0, "Time between heartbeats to nodes, at most 8s. A node that misses three is disconnected.")
	f.hidden("heartbeat")
	f.DurationVar(
		&c.Settle, "settle", 0,
		"How long a service's task must run before it counts as healthy, if it has no health check; default 40s, or 5s with "+
			"--reaction fast.",
	)
	f.placeholder("settle", "DURATION")
	f.StringVar(&c.AdvertiseURL, "advertise", "", "URL under which nodes reach this control plane; default the one that each has reached it at.")
	f.StringVar(&c.AccessKeyID, "access-key-id", "", "Access key that callers sign with.")
	f.env("access-key-id", "PINTLE_ACCESS_KEY_ID")
	f.StringVar(&c.SecretAccessKey, "secret-access-key", "", "Its secret. Better in the environment than on the command line.")
	f.env("secret-access-key", "PINTLE_SECRET_ACCESS_KEY")
	f.choice(
		&c.IAM, "iam", "auto",
		"Whom policies bind: auto binds IAM's users, roles and their tasks wherever an access key is set; enforce does so without one too, "+
			"and lets roles that IAM doesn't have do nothing.",
		"auto", "enforce",
	)
	f.StringVar(
		&c.SecretsKey, "secrets-key", "",
		"Key that encrypts parameters and secrets on disk: 32 bytes in base64. Without one, whoever can read the data directory can read "+
			"them. Better in the environment than on the command line.",
	)
	f.env("secrets-key", "PINTLE_SECRETS_KEY")
	f.file(&c.SecretsKeyFile, "secrets-key-file", "File with that key.")
	f.choice(
		&c.Console, "console", "on", "Pages for a browser at /console: off has none, and with read-only nothing can be done there.", "on", "read-only", "off",
	)
	f.file(&c.ScrapeToken, "scrape-token", "File with the token that Prometheus brings to /metrics, which is closed without one off loopback.")
	f.StringVar(&c.Collector, "otlp-endpoint", "", "URL of an OpenTelemetry collector, for traces of what starts tasks, by OTLP over HTTP.")
	f.env("otlp-endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT")
	f.StringVar(&c.CollectorHeader, "otlp-headers", "", "What it wants to be told besides, as name=value,... Better in the environment than on the command line.")
	f.env("otlp-headers", "OTEL_EXPORTER_OTLP_HEADERS")
	f.choice(
		&c.TLS, "tls", "off",
		"Whether to serve HTTPS: auto makes a certificate authority in the data directory, which nodes learn from their join tokens.",
		"auto", "off",
	)
	f.file(&c.TLSCertificate, "tls-certificate", "Certificate to serve HTTPS with, in PEM, with those between it and its authority.")
	f.file(&c.TLSKey, "tls-key", "Its key.")
	f.BoolVar(
		&c.GPUMetrics, "gpu-metrics", true,
		"Publish the nodes' GPU load to CloudWatch. Without it, a sidecar or a collector must do that, as on AWS.",
	)
	f.negation(&c.GPUMetrics, "no-gpu-metrics", "Don't publish them.")
	f.choice(
		&c.Reaction, "reaction", "faithful",
		"How fast target tracking reacts: faithful, like AWS (data points of a minute, three to scale out, fifteen to scale in), or "+
			"fast (data points of ten seconds, one and six, evaluated as they arrive; for queues by what arrives, what waits and how "+
			"long a task takes to start).",
		"faithful", "fast",
	)
	f.DurationVar(
		&c.ScaleIn, "scale-in", 0,
		"How long a capacity provider with managed scaling must need fewer instances before it removes them; default 15m, or 1m with "+
			"--reaction fast.",
	)
	f.placeholder("scale-in", "DURATION")
	f.IntVar(
		&c.MaxMetrics, "max-metrics", 500000,
		"How many metrics are kept, at 700 bytes of memory each. Those reported longest ago go first, but none of the last three hours.",
	)
	f.repeated(
		&c.WebhookTo, "webhook-to", "ADDRESS",
		"Address or network of this machine, such as 127.0.0.1, that web hooks of alarms may reach; repeat for more. Without it they "+
			"reach other machines only.",
	)
	f.repeated(
		&c.Upstreams, "upstream-registry", "HOST",
		"Registry, with its port, from which pull-through cache rules of ECR may take images, besides those that AWS lets in; repeat for more.",
	)
	pairs(
		f, &c.Mirrors, "mirror", "", "HOST=PREFIX",
		"Registry whose images tasks get from this one, such as public.ecr.aws=public: those in its repositories below that prefix; repeat for more. "+
			"Names without a host are docker.io's.",
		asIs,
	)
	pairs(
		f, &c.FunctionImages, "function-image", "", "RUNTIME=IMAGE",
		"Image in which functions of a runtime of Lambda run, such as python3.12=registry.example/python:3.12, instead of AWS's base image; "+
			"repeat for more.",
		asIs,
	)
	f.StringVar(
		&c.Serverless, "serverless-cluster", "default",
		"Cluster whose nodes run what needs no machines on AWS: Lambda's functions, and Fargate's tasks for which their own cluster has no room. "+
			"With none named, Fargate's tasks stay in their cluster.",
	)
	f.BoolVarP(&c.Verbose, "verbose", "v", false, "Log more.")
	c.fleetFlags.define(f)
}

// reaction returns how fast target tracking reacts.
func (f serverFlags) reaction() scaling.Reaction {
	if f.Reaction == "fast" {
		return scaling.Fast
	}
	return scaling.Faithful
}

// settle returns how long tasks run before they count as healthy, if no flag says so.
func (f serverFlags) settle() time.Duration {
	if f.Reaction == "fast" {
		return 5 * time.Second
	}
	return 40 * time.Second
}

// open opens a control plane with the cluster default.
func (f serverFlags) open(ctx context.Context) (*plane.Plane, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	p, err := plane.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	_, err = p.ECS.CreateCluster(ctx, &awsecs.CreateClusterInput{})
	return p, err
}

// validate checks what the flags have to do with each other, and those that pflag has no kind for.
func (f *serverFlags) validate() error {
	err := errors.Join(f.check(), f.checkTLS())
	if _, _, malformed := net.SplitHostPort(f.Listen); malformed != nil {
		err = errors.Join(err, fmt.Errorf("--listen %s: it must be an address and a port, such as 127.0.0.1:4566", f.Listen))
	}
	if !accountForm.MatchString(f.Account) {
		err = errors.Join(err, fmt.Errorf("--account %s: an account's id has 12 digits", f.Account))
	}
	for _, d := range []struct {
		flag string
		is   time.Duration
	}{{"lost", f.Lost}, {"settle", f.Settle}, {"scale-in", f.ScaleIn}} {
		if d.is < 0 {
			err = errors.Join(err, fmt.Errorf("--%s %v: it must not be negative", d.flag, d.is))
		}
	}
	if malformed := plane.CheckFunctionImages(f.FunctionImages); malformed != nil {
		err = errors.Join(err, fmt.Errorf("--function-image: %w", malformed))
	}
	if malformed := plane.CheckMirrors(f.Mirrors); malformed != nil {
		err = errors.Join(err, fmt.Errorf("--mirror: %w", malformed))
	}
	if _, malformed := networks(f.WebhookTo); malformed != nil {
		err = errors.Join(err, fmt.Errorf("--webhook-to: %w", malformed))
	}
	return err
}

var accountForm = regexp.MustCompile(`^\d{12}$`)

// options returns the control plane's options. It also sets the default logger.
func (f serverFlags) options() (plane.Options, error) {
	level := slog.LevelWarn
	if f.Verbose {
		level = slog.LevelDebug
	}
	log := newLogger(os.Stderr, level)
	slog.SetDefault(log)
	o := plane.Options{
		Version:         version,
		Region:          f.Region,
		Account:         f.Account,
		Data:            f.Data,
		Listen:          f.Listen,
		Advertise:       f.AdvertiseURL,
		AccessKeyID:     f.AccessKeyID,
		SecretAccessKey: f.SecretAccessKey,
		EnforceIAM:      f.IAM == "enforce",
		FileSystems:     f.SharedFiles,
		TLS: plane.TLSOptions{
			Auto:        f.TLS == "auto",
			Certificate: f.TLSCertificate,
			Key:         f.TLSKey,
		},
		Heartbeat:    f.Heartbeat,
		Lost:         f.Lost,
		Settle:       cmp.Or(f.Settle, f.settle()),
		Reaction:     f.reaction(),
		ScaleIn:      f.ScaleIn,
		NoGPUMetrics: !f.GPUMetrics,
		MaxMetrics:   f.MaxMetrics,
		Upstreams:    f.Upstreams,
		Mirrors:      f.Mirrors,
		Console:      f.Console,

		FunctionImages:    f.FunctionImages,
		ServerlessCluster: f.Serverless,

		Fleet: plane.FleetOptions{
			Kind:    f.Fleet,
			Pool:    f.FleetPool,
			Program: f.FleetProgram,
			Most:    f.FleetMost,
			Agent:   f.FleetAgent,

			Authority: f.authority(),
		},
		Balancer: plane.BalancerOptions{
			Local:     f.Balancer == "local",
			Arguments: []string{"--listen", f.BalancerListen, "--ports", f.BalancerPorts},
			Authority: f.authority(),
		},
		Log: log,
	}
	keepOwnKeys()
	var err error
	if o.SecretsKey, err = f.secretsKey(); err != nil {
		return o, err
	}
	if o.WebhookTo, err = networks(f.WebhookTo); err != nil {
		return o, err
	}
	if o.ScrapeToken, err = f.scrapeToken(); err != nil {
		return o, fmt.Errorf("--scrape-token: %w", err)
	}
	if o.Trace.Header, err = trace.ParseHeaders(f.CollectorHeader); err != nil {
		return o, fmt.Errorf("--otlp-headers: %w", err)
	}
	o.Trace.Endpoint = f.Collector
	if f.Prices == "" {
		return o, nil
	}
	if o.Prices, err = instancetype.ReadPrices(f.Prices); err != nil {
		return o, fmt.Errorf("--prices: %w", err)
	}
	return o, nil
}

// minToken is the fewest characters of a token: anybody may guess as often as they like.
const minToken = 16

// scrapeToken reads the token for Prometheus, or returns "" if there is none.
func (f serverFlags) scrapeToken() (string, error) {
	if f.ScrapeToken == "" {
		return "", nil
	}
	b, err := os.ReadFile(f.ScrapeToken)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if len(token) < minToken {
		return "", fmt.Errorf("%s has a token of %d characters; it needs %d, such as from: openssl rand -hex 16", f.ScrapeToken, len(token), minToken)
	}
	return token, nil
}

// keepOwnKeys takes the control plane's keys, which were read, out of the environment, which the agents and programs that it starts inherit.
func keepOwnKeys() {
	for _, name := range []string{"PINTLE_SECRETS_KEY", "PINTLE_SECRET_ACCESS_KEY"} {
		os.Unsetenv(name) //nolint:errcheck // it never fails on Linux
	}
}

// secretsKey returns the operator's key of secrets, or nil if there is none.
func (f serverFlags) secretsKey() ([]byte, error) {
	name, text := "--secrets-key", f.SecretsKey
	switch {
	case f.SecretsKey != "" && f.SecretsKeyFile != "":
		return nil, errors.New("--secrets-key and --secrets-key-file can't both be given")
	case f.SecretsKeyFile != "":
		b, err := os.ReadFile(f.SecretsKeyFile)
		if err != nil {
			return nil, err
		}
		name, text = "--secrets-key-file", string(b)
	case f.SecretsKey == "":
		return nil, nil
	}
	key, err := vault.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// checkTLS checks the flags of TLS.
func (f serverFlags) checkTLS() error {
	if (f.TLSCertificate == "") != (f.TLSKey == "") {
		return errors.New("--tls-certificate and --tls-key go together")
	}
	if f.TLS == "auto" && f.TLSCertificate != "" {
		return errors.New("--tls auto makes a certificate, so --tls-certificate can't be given too")
	}
	return nil
}

// authority returns the path of the certificate that the control plane's own clients have to trust, or "".
func (f serverFlags) authority() string {
	switch {
	case f.TLS == "auto":
		return plane.Authority(f.Data)
	case f.TLSCertificate != "":
		return f.TLSCertificate
	}
	return ""
}

// networks parses addresses and networks.
func networks(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 127.0.0.0/8", text)
		}
		out = append(out, prefix)
	}
	return out, nil
}
