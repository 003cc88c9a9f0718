// Command oldclient calls AWS as SDKs do that know of no other endpoint: by the names of AWS's hosts, over TLS, with the task role's credentials.
// It prints a line for each call.
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
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

func main() {
	key, err := credentials()
	if err != nil {
		fmt.Println("credentials:", err)
		os.Exit(1)
	}
	for _, c := range []struct{ service, method, url, body string }{
		{"sqs", "POST", "https://sqs.us-east-1.amazonaws.com/", "Action=CreateQueue&Version=2012-11-05&QueueName=old"},
		{"sqs", "POST", "https://queue.amazonaws.com/000000000000/old", "Action=SendMessage&Version=2012-11-05&MessageBody=hello"},
		{"s3", "PUT", "https://an.old.bucket.s3.amazonaws.com/", ""},
		{"s3", "PUT", "https://an.old.bucket.s3.amazonaws.com/a%20key", "content"},
		{"s3", "GET", "https://s3-us-east-1.amazonaws.com/an.old.bucket/a%20key", ""},
		{"dynamodb", "GET", "https://dynamodb.us-east-1.amazonaws.com/", ""},
	} {
		fmt.Println(call(key, c.service, c.method, c.url, c.body))
	}
}

// credentials asks for those of the task's role.
func credentials() (key aws.Credentials, err error) {
	r, err := http.Get("http://169.254.170.2" + os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))
	if err != nil {
		return key, err
	}
	defer r.Body.Close()
	var k struct{ AccessKeyId, SecretAccessKey, Token string } //nolint:revive // the members' names
	err = json.NewDecoder(r.Body).Decode(&k)
	return aws.Credentials{AccessKeyID: k.AccessKeyId, SecretAccessKey: k.SecretAccessKey, SessionToken: k.Token}, err
}

// call makes a signed call, and returns what became of it in a line.
func call(key aws.Credentials, service, method, url, body string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	sign := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" }
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hash, service, "us-east-1", time.Now(), sign); err != nil {
		return err.Error()
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return service + " failed: " + err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %s %s", service, answer.Status, strings.ReplaceAll(string(text), "\n", " "))
}
