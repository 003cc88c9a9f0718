// Package prefixlist has AWS's prefix lists, which stand for the addresses of its services. It is pure. Package ec2 shows them, and security
// groups' rules name them.
package prefixlist

import (
	"crypto/sha256"
	"encoding/hex"
	"sort"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// gatewayServices have gateway endpoints, and so prefix lists: the VPC user guide's "AWS-managed prefix lists". The blocks of their
// addresses are AWS's business; here one of each stands for them, from those that nobody has on the Internet (RFC 2544).
var gatewayServices = map[string]string{"s3": "198.19.1.0/24", "dynamodb": "198.19.2.0/24"}

// HasGateway reports whether a service has gateway endpoints.
func HasGateway(service string) bool {
	_, ok := gatewayServices[service]
	return ok
}

// All returns a region's prefix lists, in the order of their ids.
func All(region string) []types.PrefixList {
	var all []types.PrefixList
	for service, block := range gatewayServices {
		name := "com.amazonaws." + region + "." + service
		sum := sha256.Sum256([]byte(name))
		all = append(all, types.PrefixList{
			PrefixListId:   new("pl-" + hex.EncodeToString(sum[:])[:8]),
			PrefixListName: &name,
			Cidrs:          []string{block},
		})
	}
	sort.Slice(all, func(i, j int) bool { return *all[i].PrefixListId < *all[j].PrefixListId })
	return all
}

// Find returns a region's prefix list with an id, or nil.
func Find(region, id string) *types.PrefixList {
	for _, l := range All(region) {
		if *l.PrefixListId == id {
			return &l
		}
	}
	return nil
}
