package account

import (
	"net"
	"strings"
)

// Registry returns the host of the account's own registry on AWS, by which images are called here, too.
func (a Account) Registry() string { return a.ID + ".dkr.ecr." + a.Region + ".amazonaws.com" }

// OwnImage returns what follows the host in the name of an image of the account's own registry: at AWS's host, or at one below localhost or an
// address. The CDK's hotswaps name it by the endpoint that the CDK has for CloudFormation. No name server knows these hosts, so nobody else gets
// to see a token.
func (a Account) OwnImage(image string) (rest string, isOwn bool) {
	host, rest, _ := strings.Cut(image, "/")
	suffix, isOwn := strings.CutPrefix(host, a.ID+".dkr.ecr."+a.Region+".")
	if !isOwn || rest == "" {
		return "", false
	}
	if suffix == "amazonaws.com" {
		return rest, true
	}
	suffix, _, _ = strings.Cut(suffix, ":")
	return rest, suffix == "localhost" || net.ParseIP(suffix) != nil
}
