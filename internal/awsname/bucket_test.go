package awsname

import "testing"

// TestBucketOf has hosts without a bucket; the TestVirtualHosts of package wire has those with one.
func TestBucketOf(t *testing.T) {
	for _, host := range []string{"127.0.0.1:4566", "[::1]:4566", "localhost", "s3.localhost", "localhost.localstack.cloud:4566", "s3.localhost.localstack.cloud:4566", "b.localstack.cloud", "s3.amazonaws.com", "s3.us-east-1.amazonaws.com", "ecs.us-east-1.amazonaws.com", "pintle.example.com", "123456789012.dkr.ecr.us-east-1.localhost:4566", "123456789012.dkr.ecr.us-east-1.amazonaws.com"} {
		if b := BucketOf(host); b != "" {
			t.Errorf("%s has the bucket %q", host, b)
		}
	}
}
