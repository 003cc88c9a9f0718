// Package account is whose a control plane is, and the small rules that all of AWS's services share: how ARNs are made and
// read, how lists come in pages, what tags may be, and how a call is refused. Every service has an Account in its Options.
// It knows no service, no store and no HTTP; the words of a refusal are the service's own.
package account

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// partition is the one that everything here is in.
const partition = "aws"

// Account is one account in one region, with its clock.
type Account struct {
	ID     string // of twelve digits
	Region string
	Now    func() time.Time
}

// New returns an account in a region.
func New(id, region string, now func() time.Time) Account {
	return Account{ID: id, Region: region, Now: now}
}

// ARN is the ARN of a resource of the account in its region.
func (a Account) ARN(service, resource string) string {
	return arn.ARN{Partition: partition, Service: service, Region: a.Region, AccountID: a.ID, Resource: resource}.String()
}

// GlobalARN is the ARN of a resource that is in no region, as IAM's roles and CloudWatch's dashboards are.
func (a Account) GlobalARN(service, resource string) string {
	return arn.ARN{Partition: partition, Service: service, AccountID: a.ID, Resource: resource}.String()
}

// Root is the ARN of the account's own principal.
func (a Account) Root() string { return a.GlobalARN("iam", "root") }

// ResourceOf is what an ARN names in a service, behind a prefix such as "alarm:". It reports false for what is no ARN,
// another service's, another account's or another region's, and for an empty name.
func (a Account) ResourceOf(service, prefix, arn string) (name string, ok bool) {
	return behind(a.ARN(service, prefix), arn)
}

// GlobalResourceOf is ResourceOf for a resource that is in no region.
func (a Account) GlobalResourceOf(service, prefix, arn string) (name string, ok bool) {
	return behind(a.GlobalARN(service, prefix), arn)
}

func behind(prefix, s string) (rest string, ok bool) {
	if len(s) <= len(prefix) || !strings.HasPrefix(s, prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// UUID makes a UUID that is the same for the same parts. So what a call was killed in the midst of is done over by its
// repetition, and not beside it.
func UUID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	x := hex.EncodeToString(sum[:])
	return x[:8] + "-" + x[8:12] + "-5" + x[13:16] + "-a" + x[17:20] + "-" + x[20:32]
}
