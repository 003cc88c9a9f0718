package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
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
	f.StringVar(&c.Endpoint, "endpoint", "http://127.0.0.1:4566", "The control plane's URL.")
	f.env("endpoint", "AWS_ENDPOINT_URL")
}

// awsConfig returns the SDK's configuration for an endpoint. Without configured credentials it uses made-up ones: a control plane on
// loopback accepts any, and others refuse these.
func awsConfig(ctx context.Context, endpoint string) (aws.Config, error) {
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	return configWithKey(ctx, endpoint, region, os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"))
}

func configWithKey(ctx context.Context, endpoint, region, key, secret string) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithBaseEndpoint(endpoint),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(cmp.Or(key, "pintle"), cmp.Or(secret, "pintle"), "")))
}

// clients are the SDK's clients.
type clients struct {
	ecs  *awsecs.Client
	logs *cloudwatchlogs.Client
}

func (f clientFlags) clients(ctx context.Context) (clients, error) {
	c, err := awsConfig(ctx, f.Endpoint)
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
