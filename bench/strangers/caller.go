package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// caller is somebody with a key.
type caller struct {
	address     string
	kept, fresh *http.Client
	signer      *v4.Signer
}

func newCaller(address string) *caller {
	return &caller{
		address: address,
		kept:    &http.Client{Timeout: 20 * time.Second},
		fresh:   &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
		signer:  v4.NewSigner(),
	}
}

var describeTasks = []byte(`{"tasks":["0123456789abcdef0123456789abcdef"]}`)

// call describes a task that isn't there, on the connection that is kept or on a new one.
func (c *caller) call(kept bool) error {
	r, err := request(c.signer, secret, c.address, "AmazonEC2ContainerServiceV20141113.DescribeTasks", "ecs", describeTasks)
	if err != nil {
		return err
	}
	client := c.fresh
	if kept {
		client = c.kept
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %.200s", resp.Status, body)
	}
	return err
}

// request returns a signed request. With a wrong secret it's a forged one.
func request(s *v4.Signer, secret, address, target, service string, body []byte) (*http.Request, error) {
	r, err := http.NewRequest(http.MethodPost, "http://"+address+"/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Target", target)
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	sum := sha256.Sum256(body)
	key := aws.Credentials{AccessKeyID: keyID, SecretAccessKey: secret}
	return r, s.SignHTTP(context.Background(), key, r, hex.EncodeToString(sum[:]), service, "us-east-1", time.Now())
}
