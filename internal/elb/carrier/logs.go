package carrier

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/elb/accesslog"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
)

// sendTimeout is how long the control plane may take to put a part of an access log into its bucket.
const sendTimeout = 30 * time.Second

// SendLog hands a part of an access log on to the control plane.
func (f *Carrier) SendLog(ctx context.Context, part accesslog.File) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return f.post(ctx, report.AccessLogPath, report.AccessLog{
		Balancer:     f.opts.ID,
		LoadBalancer: part.LoadBalancer,
		Address:      f.opts.Host,
		End:          part.End,
		ID:           part.ID,
		Dropped:      part.Dropped,
		Data:         part.Data,
	}, nil)
}

// logged returns the load balancers of a configuration whose requests are logged.
func logged(c *report.Configuration) map[string]accesslog.Certificates {
	all := map[string]accesslog.Certificates{}
	for i := range c.Balancers.Balancers {
		if b := &c.Balancers.Balancers[i]; slices.Contains(c.AccessLogs, b.ARN) {
			all[b.ARN] = certificates(b)
		}
	}
	return all
}

// shown is a certificate that a listener may show.
type shown struct {
	arn  string
	leaf *x509.Certificate
}

// certificates returns what tells the certificates of a load balancer's listeners: the first that is for the name that a client asks for, or
// else the default one.
func certificates(b *routing.Balancer) accesslog.Certificates {
	of := map[string][]shown{}
	for i := range b.Listeners {
		for _, c := range b.Listeners[i].Certificates {
			block, _ := pem.Decode([]byte(c.Certificate))
			if block == nil {
				continue
			}
			if leaf, err := x509.ParseCertificate(block.Bytes); err == nil {
				of[b.Listeners[i].ARN] = append(of[b.Listeners[i].ARN], shown{c.ARN, leaf})
			}
		}
	}
	return func(listener, name string) string {
		all := of[listener]
		if len(all) == 0 {
			return ""
		}
		if i := slices.IndexFunc(all, func(s shown) bool { return name != "" && s.leaf.VerifyHostname(name) == nil }); i >= 0 {
			return all[i].arn
		}
		return all[0].arn
	}
}
