package awsname

import (
	"regexp"
	"strings"
)

// BucketOf returns the bucket in the name of a host, with or without a port, or "" if there is none: bucket.s3.us-east-1.amazonaws.com,
// bucket.s3.localhost, bucket.localhost, or bucket.s3.localhost.localstack.cloud, which tflocal and similar tools use. The image registry's
// hosts, such as 123456789012.dkr.ecr.us-east-1.localhost, are no bucket's.
func BucketOf(hostPort string) string {
	host, _, _ := strings.Cut(hostPort, ":") // of an IPv6 address nothing is left that could be a bucket's name
	host = strings.TrimSuffix(strings.ToLower(host), ".localstack.cloud")
	if registryHost.MatchString(host) {
		return ""
	}
	if rest, ok := strings.CutSuffix(host, ".localhost"); ok {
		if rest == "s3" {
			return ""
		}
		return strings.TrimSuffix(rest, ".s3")
	}
	if name, isAWS := Parse(host); isAWS {
		return name.Bucket
	}
	return ""
}

var registryHost = regexp.MustCompile(`^\d{12}\.dkr\.ecr\.`)
