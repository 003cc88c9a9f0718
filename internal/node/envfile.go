package node

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/dataset"
)

// Objects reads the files with containers' variables, and data sets. It's S3.
type Objects interface{ dataset.Client }

// maxEnvironmentFile is the most bytes of a file. A process can't have more in its environment.
const maxEnvironmentFile = 1 << 20

// environmentFile fetches an object by its ARN, as a task's execution role.
func (a *Agent) environmentFile(ctx context.Context, role acs.IAMRoleCredentials, arn string) (text string, err error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" || parts[2] != "s3" {
		return "", fmt.Errorf("unable to parse bucket and key from s3 ARN specified in environmentFile %s", arn)
	}
	bucket, key, found := strings.Cut(parts[5], "/")
	if !found || bucket == "" || key == "" {
		return "", fmt.Errorf("unable to parse bucket and key from s3 ARN specified in environmentFile %s", arn)
	}
	out, err := a.config.Objects.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key}, func(o *s3.Options) {
		o.Credentials = as(role)
		o.RetryMaxAttempts = maxTries
	})
	if err != nil {
		return "", fmt.Errorf("unable to download env file with key %s from bucket %s, error: %w", key, bucket, short(err))
	}
	defer out.Body.Close() //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(out.Body, maxEnvironmentFile+1))
	if err != nil {
		return "", fmt.Errorf("unable to download env file with key %s from bucket %s, error: %w", key, bucket, err)
	}
	if len(b) > maxEnvironmentFile {
		return "", fmt.Errorf("the env file with key %s from bucket %s has more than %d bytes", key, bucket, maxEnvironmentFile)
	}
	return string(b), nil
}
