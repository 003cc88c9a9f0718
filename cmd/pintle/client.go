package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/certificate"
	"github.com/pintle/pintle/internal/plane"
)

// clientFlags are the flags of every verb that calls a control plane. The verbs use only AWS's APIs, so they work on Amazon ECS as well.
type clientFlags struct {
	endpointFlags
	Cluster string
}

func (c *clientFlags) define(f flags) {
	c.endpointFlags.define(f)
	f.StringVar(&c.Cluster, "cluster", "default", "The cluster.")
	f.env("cluster", "ECS_CLUSTER")
}

// endpointFlags are the flags of verbs that aren't about one cluster.
type endpointFlags struct {
	Endpoint string
}

func (c *endpointFlags) define(f flags) {
	f.endpoint(&c.Endpoint)
	f.env("endpoint", "AWS_ENDPOINT_URL")
}

// trust returns how to connect to a control plane whose authority's certificate is in a file.
func trust(path string) (*tls.Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the control plane's certificate authority: %w", err)
	}
	c, err := certificate.Trusting(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// authorityHere returns the path of the authority's certificate that a control plane on this machine has made, or "".
// AWS_CA_BUNDLE comes first.
func authorityHere(endpoint string) string {
	path := plane.Authority(expand("~/.pintle"))
	if _, err := os.Stat(path); err != nil || !strings.HasPrefix(endpoint, "https:") || os.Getenv("AWS_CA_BUNDLE") != "" {
		return ""
	}
	return path
}

// clients are the SDK's clients.
type clients struct {
	ecs  *awsecs.Client
	logs *cloudwatchlogs.Client
}

func (f clientFlags) clients(ctx context.Context) (clients, error) {
	c, err := awsConfig(f.Endpoint)
	if err != nil {
		return clients{}, err
	}
	return clients{awsecs.NewFromConfig(c), cloudwatchlogs.NewFromConfig(c)}, nil
}

// age returns how long ago a time was, for people.
func age(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return time.Since(*t).Round(time.Second).String()
}

// counted is a number of things for people: 1 node, 2 nodes.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
