package balancers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Buckets stores objects. It's S3.
type Buckets interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// bucket is where a load balancer's access log goes.
type bucket struct {
	name, prefix string
	left         time.Time // since when the load balancer logs no more, or is gone
}

// keepBuckets is how long it's known where the log of a load balancer went that logs no more. Its last lines still come.
const keepBuckets = time.Hour

// logging returns the load balancers whose requests are to be logged, and notes where to.
func (l *Loop) logging(v *state.View) (arns []string) {
	now := l.opts.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for row := range v.LoadBalancers.All() {
		if name, prefix, ok := row.AccessLogs(); ok {
			arns = append(arns, *row.LoadBalancerArn)
			l.logs[*row.LoadBalancerArn] = bucket{name: name, prefix: prefix}
		}
	}
	slices.Sort(arns)
	for arn, b := range l.logs {
		switch _, logs := slices.BinarySearch(arns, arn); {
		case logs:
		case b.left.IsZero():
			b.left = now
			l.logs[arn] = b
		case now.Sub(b.left) > keepBuckets:
			delete(l.logs, arn)
		}
	}
	return arns
}

// Prefix returns what the keys of an account's access logs begin with in their bucket: the page "Access logs for your Application Load Balancer".
func Prefix(prefix string, owner account.Account) string {
	return path.Join(prefix, "AWSLogs", owner.ID) + "/"
}

// partID is what the id of a part of an access log looks like.
var partID = regexp.MustCompile(`^[0-9a-z]{8}$`)

// key returns the key of a part of an access log.
func (l *Loop) key(b bucket, part *report.AccessLog) (string, error) {
	_, resource, ok := strings.Cut(part.LoadBalancer, ":loadbalancer/")
	if !ok || !partID.MatchString(part.ID) {
		return "", fmt.Errorf("ID %q must have 8 letters or digits", part.ID)
	}
	address, err := netip.ParseAddr(part.Address)
	if err != nil {
		address = netip.IPv4Unspecified() // the process listens at a name
	}
	where := address.String()
	if address.Is4() {
		ip := address.As4()
		where = fmt.Sprintf("%03d.%03d.%03d.%03d", ip[0], ip[1], ip[2], ip[3])
	}
	end, owner := part.End.UTC(), l.opts.Account
	return Prefix(b.prefix, owner) + "elasticloadbalancing/" + owner.Region + end.Format("/2006/01/02/") + strings.Join([]string{
		owner.ID, "elasticloadbalancing", owner.Region, strings.ReplaceAll(resource, "/", "."), end.Format("20060102T1504Z"), where, part.ID,
	}, "_") + ".log.gz", nil
}

// serveAccessLog puts a part of an access log into its bucket. What can never be put there is dropped, as on AWS, and the log says so.
func (l *Loop) serveAccessLog(ctx context.Context, w http.ResponseWriter, _ call.Call, body []byte) {
	var part report.AccessLog
	if err := json.Unmarshal(body, &part); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if part.Dropped > 0 {
		l.opts.Log.Warn("a balancer had no room for lines of access logs", "balancer", part.Balancer, "lines", part.Dropped)
	}
	l.mu.Lock()
	b, known := l.logs[part.LoadBalancer]
	l.mu.Unlock()
	if !known {
		l.opts.Log.Warn("an access log is dropped: its load balancer logs no more", "arn", part.LoadBalancer)
		return
	}
	key, err := l.key(b, &part)
	if err != nil {
		l.opts.Log.Error("an access log is dropped", "balancer", part.Balancer, "error", err)
		return
	}
	_, err = l.opts.Buckets.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: bytes.NewReader(part.Data)})
	if refused, ok := errors.AsType[smithy.APIError](err); ok && refused.ErrorCode() == "NoSuchBucket" {
		l.opts.Log.Error("an access log is dropped: its bucket is gone", "arn", part.LoadBalancer, "bucket", b.name, "error", err)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}
