package plane

import (
	"context"
	"net/http"

	"github.com/pintle/pintle/internal/cloudwatch/metering"
	"github.com/pintle/pintle/internal/elb/balancers"
	"github.com/pintle/pintle/internal/elb/configuration"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/connection"
	"github.com/pintle/pintle/internal/wire/sign"
)

// BalancerOptions say whether the control plane runs a process for its load balancers on this machine.
type BalancerOptions struct {
	Local     bool
	Arguments []string // flags of the process
	Authority string   // the file of the authority that it trusts; empty for the system's
}

// newBalancers returns the loop that load balancers' processes connect to.
func (p *Plane) newBalancers() *balancers.Loop {
	return balancers.New(p.State, balancers.Options{
		Options: configuration.Options{CookieKey: p.cookieKey(), Certificate: p.listenerCertificate},
		Now:     p.now,
		Counted: p.countRequests,
		Buckets: p.s3(),
		Account: p.account(),
		Log:     p.log,
	})
}

func (p *Plane) cookieKey() []byte {
	if p.issuer == nil {
		return nil
	}
	return p.issuer.CookieKey()
}

// listenerCertificate returns an imported certificate with its private key.
func (p *Plane) listenerCertificate(arn string) (routing.Certificate, bool) {
	row := p.State.View().Certificates.Get(arn)
	if row == nil {
		return routing.Certificate{}, false
	}
	key, err := p.vault.Decrypt(row.PrivateKey, arn)
	if err != nil {
		p.log.Error("a certificate's private key", "certificate", arn, "error", err)
		return routing.Certificate{}, false
	}
	return routing.Certificate{ARN: arn, Certificate: row.Certificate + "\n" + row.Chain, PrivateKey: key}, true
}

// verifyBalancer checks who has signed a balancer process's request.
func (p *Plane) verifyBalancer(r *http.Request) (by func([]byte) (call.Call, error), whole bool, err error) {
	if p.verifier == nil {
		return func([]byte) (call.Call, error) { return call.Call{Service: "pintle"}, nil }, true, nil
	}
	claim, err := p.verifier.Check(r.Context(), "pintle", sign.HeadOf(r), r.ContentLength)
	if err != nil {
		return nil, false, err
	}
	return func(body []byte) (call.Call, error) {
		caller, err := claim.Verify(r.Context(), body)
		if err == nil {
			connection.Know(r.Context())
		}
		return call.Call{Service: "pintle", Identity: caller.Identity}, err
	}, claim.StatesBody(), nil
}

// countRequests makes metrics of what a balancer process has counted.
func (p *Plane) countRequests(_ context.Context, counts []report.Count) {
	v, now := p.State.View(), p.now()
	samples := append(metering.Requests(counts, v, now), metering.Hosts(v, now)...)
	if err := p.putMetrics(samples); err != nil {
		p.log.Error("cannot keep the load balancers' metrics", "error", err)
	}
}
