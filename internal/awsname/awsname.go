// Package awsname reads the names of AWS's hosts: which service a name belongs to, which region, and which bucket. It also lists the services that
// Pintle has. The wire tells services apart by it, and whatever stands in for AWS asks it which names are Pintle's to answer. It is pure.
package awsname

import (
	"regexp"
	"strings"
)

// Domain is what all names end in that are read here.
const Domain = "amazonaws.com"

// Host is what a name says. What it leaves out is "".
type Host struct {
	Service string // as signatures name it
	Region  string
	Bucket  string
}

// served are the services that Pintle has, as signatures name them.
var served = map[string]bool{
	"acm": true, "application-autoscaling": true, "autoscaling": true, "cloudcontrolapi": true, "cloudformation": true, "ec2": true, "ecr": true,
	"ecs": true, "elasticfilesystem": true, "elasticloadbalancing": true, "events": true, "iam": true, "lambda": true, "logs": true,
	"monitoring": true, "s3": true, "scheduler": true, "secretsmanager": true, "servicediscovery": true, "sns": true, "sqs": true, "ssm": true, "sts": true,
}

// Served reports whether Pintle has the service that a name belongs to.
func Served(name string) bool {
	h, ok := Parse(name)
	return ok && served[h.Service]
}

// Services lists the services that Pintle has.
func Services() (names []string) {
	for name := range served {
		names = append(names, name)
	}
	return names
}

// IsAWS reports whether a name is AWS's.
func IsAWS(name string) bool { return name == Domain || strings.HasSuffix(name, "."+Domain) }

// Fold returns a name as it's compared: in lower case, without the dot at its end.
func Fold(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

var (
	region   = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d$`)
	registry = regexp.MustCompile(`^\d{12}\.dkr\.ecr$`)
	nodeEnd  = regexp.MustCompile(`^ecs-(a-\d+|t-\d+|telemetry)$`) // where ECS's agents connect
)

// aliases are names of endpoints that differ from what signatures say.
var aliases = map[string]string{
	"api.ecr":               "ecr",
	"data-servicediscovery": "servicediscovery",
	"email":                 "ses",
	"queue":                 "sqs",
}

// Parse reads a host's name, without a port. It reports whether the name is one of AWS's.
func Parse(name string) (Host, bool) {
	rest, isAWS := strings.CutSuffix(Fold(name), "."+Domain)
	if !isAWS || rest == "" {
		return Host{}, false
	}
	labels := strings.Split(rest, ".")
	if h, isS3 := objects(labels); isS3 {
		return h, true
	}
	h := Host{}
	switch last := len(labels) - 1; {
	case last == 0:
	case region.MatchString(labels[last]):
		h.Region, labels = labels[last], labels[:last]
	case region.MatchString(labels[0]): // us-east-1.queue.amazonaws.com
		h.Region, labels = labels[0], labels[1:]
	}
	service := strings.TrimSuffix(strings.Join(labels, "."), "-fips")
	switch {
	case aliases[service] != "":
		service = aliases[service]
	case registry.MatchString(service):
		service = "ecr"
	case nodeEnd.MatchString(service):
		service = "ecs"
	}
	h.Service = service
	return h, true
}

// objects reads the names of S3: s3, s3.REGION, s3-REGION and s3.dualstack.REGION, each with a bucket before it, whose own name may have such parts.
func objects(labels []string) (Host, bool) {
	for i := len(labels) - 1; i >= max(0, len(labels)-3); i-- {
		h := Host{Service: "s3", Bucket: strings.Join(labels[:i], ".")}
		after := labels[i+1:]
		if len(after) > 0 && after[0] == "dualstack" {
			after = after[1:]
		}
		older, isOlder := strings.CutPrefix(labels[i], "s3-")
		switch {
		case isOlder && len(labels) == i+1 && (region.MatchString(older) || older == "accelerate" || older == "external-1"):
			h.Region = older
			if !region.MatchString(older) {
				h.Region = ""
			}
			return h, true
		case labels[i] != "s3" && labels[i] != "s3-fips" && labels[i] != "s3-accelerate":
		case len(after) == 0:
			return h, true
		case len(after) == 1 && region.MatchString(after[0]):
			h.Region = after[0]
			return h, true
		}
	}
	return Host{}, false
}
