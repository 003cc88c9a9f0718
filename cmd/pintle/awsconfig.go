// The SDK's configuration, read from the environment. The SDK's own package for it knows single sign-on, profiles and web identities as well,
// which no verb needs, and they are 1.4 MB of the binary.

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/smithy-go/logging"

	"github.com/pintle/pintle/internal/sdkhttp"
)

// login is what it takes to call a control plane.
type login struct {
	Endpoint        string // empty calls AWS
	Region          string
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string `json:",omitempty"` // of keys that STS issued
	CA              string // path of the certificates of authorities to trust; empty trusts the system's
}

// keyHere returns the key in the environment that calls are signed with: the AWS CLI's, or the one that a control plane is started with.
func keyHere() aws.Credentials {
	if id := os.Getenv("AWS_ACCESS_KEY_ID"); id != "" {
		return aws.Credentials{
			AccessKeyID:     id,
			SecretAccessKey: cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "pintle"),
			SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
		}
	}
	if id := os.Getenv("PINTLE_ACCESS_KEY_ID"); id != "" {
		return aws.Credentials{AccessKeyID: id, SecretAccessKey: cmp.Or(os.Getenv("PINTLE_SECRET_ACCESS_KEY"), "pintle")}
	}
	return aws.Credentials{AccessKeyID: "pintle", SecretAccessKey: "pintle"}
}

// regionHere returns the region that the environment names, or another.
func regionHere(otherwise string) string {
	return cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), otherwise)
}

// awsConfig returns the SDK's configuration for an endpoint. Without configured credentials it uses made-up ones: a control plane on
// loopback accepts any, and others refuse these.
func awsConfig(endpoint string) (aws.Config, error) {
	key := keyHere()
	return configOf(login{
		Endpoint:        endpoint,
		Region:          regionHere("us-east-1"),
		AccessKeyID:     key.AccessKeyID,
		SecretAccessKey: key.SecretAccessKey,
		SessionToken:    key.SessionToken,
		CA:              cmp.Or(os.Getenv("AWS_CA_BUNDLE"), authorityHere(endpoint)),
	})
}

// configOf returns the SDK's configuration for a login.
func configOf(l login) (aws.Config, error) {
	c, err := baseConfig(l.CA)
	if err != nil {
		return aws.Config{}, err
	}
	c.Region = l.Region
	if l.Endpoint != "" {
		c.BaseEndpoint = &l.Endpoint
	}
	c.Credentials = credentials.NewStaticCredentialsProvider(
		cmp.Or(l.AccessKeyID, "pintle"), cmp.Or(l.SecretAccessKey, "pintle"), l.SessionToken,
	)
	return c, nil
}

// sidecarConfig returns the SDK's configuration in a container, on Pintle or on AWS: with the keys in the environment, the task role's
// credentials, or else those of the instance. A task without a role can still call a control plane that accepts any credentials.
func sidecarConfig(region string) (aws.Config, error) {
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	role := taskRole()
	if endpoint != "" && role == nil {
		return awsConfig(endpoint)
	}
	c, err := baseConfig(os.Getenv("AWS_CA_BUNDLE"))
	if err != nil {
		return aws.Config{}, err
	}
	c.Region = regionHere(region)
	c.ConfigSources = []any{endpointsHere{}}
	if endpoint != "" {
		c.BaseEndpoint = &endpoint // the SDK asks a source only where the environment has a variable for the service, or none for all
	}
	switch key := keyHere(); {
	case os.Getenv("AWS_ACCESS_KEY_ID") != "":
		c.Credentials = credentials.StaticCredentialsProvider{Value: key}
	case role != nil:
		c.Credentials = aws.NewCredentialsCache(role)
	default:
		c.Credentials = aws.NewCredentialsCache(ec2rolecreds.New())
	}
	return c, nil
}

// baseConfig returns what all configurations share. The path is of authorities' certificates to trust in place of the system's, or empty.
func baseConfig(authorities string) (aws.Config, error) {
	client := sdkhttp.New()
	if authorities != "" {
		trusting, err := trust(authorities)
		if err != nil {
			return aws.Config{}, err
		}
		client = sdkhttp.New(func(t *http.Transport) { t.TLSClientConfig = trusting })
	}
	c := aws.Config{
		HTTPClient:                 client,
		Logger:                     logging.Nop{}, // what goes wrong is in the error
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}
	if attempts := os.Getenv("AWS_MAX_ATTEMPTS"); attempts != "" {
		n, err := strconv.Atoi(attempts)
		if err != nil || n < 1 {
			return aws.Config{}, fmt.Errorf("AWS_MAX_ATTEMPTS is %q; it must be a number from 1 on", attempts)
		}
		c.RetryMaxAttempts = n
	}
	return c, nil
}

// taskRole returns what asks for the credentials of the task's role, as the variables that ECS sets in containers say; nil if there are none.
func taskRole() aws.CredentialsProvider {
	address := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		address = "http://169.254.170.2" + path
	}
	if address == "" {
		return nil
	}
	return endpointcreds.New(address, func(o *endpointcreds.Options) {
		o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(containerToken)
	})
}

// containerToken returns what the container's credentials are asked for with, or "". A file's text may change while the process runs.
func containerToken() (string, error) {
	path := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
	if path == "" {
		return os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN"), nil
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

// endpointsHere tells the SDK the endpoints that the environment names for a service of its own (AWS_ENDPOINT_URL_SQS).
type endpointsHere struct{}

// GetServiceBaseEndpoint returns the endpoint for a service, by the SDK's name of it: "Auto Scaling" is AUTO_SCALING in the variable.
func (endpointsHere) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	endpoint := os.Getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return endpoint, endpoint != "", nil
}
