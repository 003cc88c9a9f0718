// Package account identifies the owner of a control plane, and holds the small rules that all of AWS's services share: how ARNs
// are made and read, how lists are paged, what tags may be, and how a call is refused. Every service has an Account in its
// Options. It knows no service, no store and no HTTP. Each service words its own refusals.
package account

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// partition is the AWS partition of everything here.
const partition = "aws"

// Account is one account in one region, with its clock.
type Account struct {
	ID     string // twelve digits
	Region string
	Now    func() time.Time
}

// New returns an account in a region.
func New(id, region string, now func() time.Time) Account {
	return Account{ID: id, Region: region, Now: now}
}

// ARN returns the ARN of a resource of the account in its region.
func (a Account) ARN(service, resource string) string {
	return arn.ARN{Partition: partition, Service: service, Region: a.Region, AccountID: a.ID, Resource: resource}.String()
}

// GlobalARN returns the ARN of a resource without a region, such as IAM's roles and CloudWatch's dashboards.
func (a Account) GlobalARN(service, resource string) string {
	return arn.ARN{Partition: partition, Service: service, AccountID: a.ID, Resource: resource}.String()
}

// zone matches the names of AWS's Availability Zones, and a zone's region.
var zone = regexp.MustCompile(`^([a-z]{2}(?:-[a-z]+)+-\d+)[a-z]$`)

// IsForeignZone reports whether a zone is another region's. Zones may have any other names: machines are where their owners say.
func (a Account) IsForeignZone(name string) bool {
	parts := zone.FindStringSubmatch(name)
	return parts != nil && parts[1] != a.Region
}

// Root returns the ARN of the account's root principal.
func (a Account) Root() string { return a.GlobalARN("iam", "root") }

// ResourceOf returns the name that follows a prefix such as "alarm:" in a service's ARN. It returns false if the ARN is
// malformed, belongs to another service, account or region, or if the name is empty.
func (a Account) ResourceOf(service, prefix, arn string) (name string, ok bool) {
	return cutPrefix(a.ARN(service, prefix), arn)
}

// GlobalResourceOf is ResourceOf for a resource without a region.
func (a Account) GlobalResourceOf(service, prefix, arn string) (name string, ok bool) {
	return cutPrefix(a.GlobalARN(service, prefix), arn)
}

func cutPrefix(prefix, s string) (rest string, ok bool) {
	if len(s) <= len(prefix) || !strings.HasPrefix(s, prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// IsForeign reports whether an ARN isn't of a resource of the account in its region.
func (a Account) IsForeign(text string) bool {
	parsed, err := arn.Parse(text)
	return err != nil || parsed.Partition != partition || parsed.Region != a.Region || parsed.AccountID != a.ID
}

// UUID returns the same UUID for the same parts. If a call is killed halfway and repeated, the repetition redoes its work
// instead of adding to it.
func UUID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	x := hex.EncodeToString(sum[:])
	return x[:8] + "-" + x[8:12] + "-5" + x[13:16] + "-a" + x[17:20] + "-" + x[20:32]
}
