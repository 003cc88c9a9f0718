package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// noSettings takes everything that the machine's own environment says about AWS away from a test.
func noSettings(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PINTLE_ACCESS_KEY_ID", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
		"AWS_ENDPOINT_URL_SQS", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_MAX_ATTEMPTS", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	} {
		t.Setenv(name, "") // which puts it back in the end
		os.Unsetenv(name)  //nolint:errcheck // the name is a good one. The SDK tells a variable that is empty from none
	}
}

// TestSidecarKey: in a container the environment's key comes first, then the task's role, asked for with the token that ECS gives; a task
// without a role calls a control plane with the key of everybody.
func TestSidecarKey(t *testing.T) {
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "secret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Write([]byte(`{"AccessKeyId": "role", "SecretAccessKey": "s", "Token": "t"}`)) //nolint:errcheck // a test
	}))
	defer role.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		settings  map[string]string
		id, token string
	}{
		"the environment's": {map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SESSION_TOKEN": "b", "AWS_CONTAINER_CREDENTIALS_FULL_URI": role.URL}, "a", "b"},
		"the role's": {map[string]string{
			"AWS_CONTAINER_CREDENTIALS_FULL_URI": role.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "secret", "AWS_ENDPOINT_URL": "http://x",
		}, "role", "t"},
		"the role's, with a file": {map[string]string{
			"AWS_CONTAINER_CREDENTIALS_FULL_URI": role.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file,
		}, "role", "t"},
		"everybody's": {map[string]string{"AWS_ENDPOINT_URL": "http://x"}, "pintle", ""},
	} {
		t.Run(name, func(t *testing.T) {
			noSettings(t)
			for k, v := range c.settings {
				t.Setenv(k, v)
			}
			config, err := sidecarConfig("r")
			if err != nil {
				t.Fatal(err)
			}
			key, err := config.Credentials.Retrieve(t.Context())
			if err != nil || key.AccessKeyID != c.id || key.SessionToken != c.token {
				t.Errorf("%+v, %v; want %s", key, err, c.id)
			}
		})
	}
}

// TestSidecarEndpoints: a variable for one service counts before the one for all.
func TestSidecarEndpoints(t *testing.T) {
	noSettings(t)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x")
	t.Setenv("AWS_ENDPOINT_URL", "http://all")
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://objects")
	config, err := sidecarConfig("r")
	if err != nil {
		t.Fatal(err)
	}
	if got := sqs.NewFromConfig(config).Options(); *got.BaseEndpoint != "http://all" || got.Region != "r" {
		t.Errorf("SQS: %s in %s", *got.BaseEndpoint, got.Region)
	}
	if got := s3.NewFromConfig(config).Options().BaseEndpoint; *got != "http://objects" {
		t.Errorf("S3: %s", *got)
	}
	os.Unsetenv("AWS_ENDPOINT_URL") //nolint:errcheck // as above
	if config, err = sidecarConfig("r"); err != nil {
		t.Fatal(err)
	}
	if got := sqs.NewFromConfig(config).Options().BaseEndpoint; got != nil {
		t.Errorf("SQS, on AWS: %s", *got)
	}
	if got := s3.NewFromConfig(config).Options().BaseEndpoint; *got != "http://objects" {
		t.Errorf("S3, on AWS: %s", *got)
	}
}

// TestAttempts: AWS_MAX_ATTEMPTS is taken, and said to be wrong where it is.
func TestAttempts(t *testing.T) {
	noSettings(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "7")
	if c, err := awsConfig("http://x"); err != nil || c.RetryMaxAttempts != 7 {
		t.Errorf("%d, %v", c.RetryMaxAttempts, err)
	}
	t.Setenv("AWS_MAX_ATTEMPTS", "many")
	if _, err := awsConfig("http://x"); err == nil {
		t.Error("a word is taken for a number")
	}
}
