package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go/logging"

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

// keyHere returns the key in the environment that calls are signed with: the AWS CLI's, or the one that a control plane is started with.
func keyHere() (id, secret string) {
	if id = os.Getenv("AWS_ACCESS_KEY_ID"); id != "" {
		return id, cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "pintle")
	}
	if id = os.Getenv("PINTLE_ACCESS_KEY_ID"); id != "" {
		return id, cmp.Or(os.Getenv("PINTLE_SECRET_ACCESS_KEY"), "pintle")
	}
	return "pintle", "pintle"
}

// awsConfig returns the SDK's configuration for an endpoint. Without configured credentials it uses made-up ones: a control plane on
// loopback accepts any, and others refuse these.
func awsConfig(ctx context.Context, endpoint string) (aws.Config, error) {
	key, secret := keyHere()
	return configWithKey(ctx, login{
		Endpoint:        endpoint,
		Region:          cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"),
		AccessKeyID:     key,
		SecretAccessKey: secret,
		CA:              authorityHere(endpoint),
	})
}

// login is what it takes to call a control plane.
type login struct {
	Endpoint        string
	Region          string
	AccessKeyID     string
	SecretAccessKey string
	CA              string // path of the certificate of its authority; empty if the system knows it, or AWS_CA_BUNDLE does
}

// configWithKey returns the SDK's configuration for a login.
func configWithKey(ctx context.Context, l login) (aws.Config, error) {
	client := awshttp.NewBuildableClient()
	if l.CA != "" {
		trusting, err := trust(l.CA)
		if err != nil {
			return aws.Config{}, err
		}
		client = client.WithTransportOptions(func(t *http.Transport) { t.TLSClientConfig = trusting })
	}
	return config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(client),
		config.WithLogger(logging.Nop{}), // what goes wrong is in the error
		config.WithRegion(l.Region),
		config.WithBaseEndpoint(l.Endpoint),
		config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(cmp.Or(l.AccessKeyID, "pintle"), cmp.Or(l.SecretAccessKey, "pintle"), ""),
		),
	)
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
// AWS_CA_BUNDLE comes first, which the SDK reads.
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
