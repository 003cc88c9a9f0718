// Package dns has the names that EC2 gives to private addresses:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-naming.html
// It is pure.
package dns

import "strings"

// Domain returns the domain of a region's private names.
func Domain(region string) string {
	if region == "us-east-1" {
		return "ec2.internal"
	}
	return region + ".compute.internal"
}

// Name returns the name of a private IPv4 address.
func Name(ip, region string) string {
	return "ip-" + strings.ReplaceAll(ip, ".", "-") + "." + Domain(region)
}
