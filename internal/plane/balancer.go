package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/metering"
	"github.com/pintle/pintle/internal/elb/balancers"
	"github.com/pintle/pintle/internal/elb/configuration"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/file"
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

// localBalancer is the process that carries load balancers out on this machine. It outlives the control plane, which finds it again by the
// lock that it holds from the first moment on.
type localBalancer struct{ plane *Plane }

func (b localBalancer) dir() string  { return filepath.Join(b.plane.options.Data, "balancer") }
func (b localBalancer) lock() string { return balancerLock(b.plane.options.Data) }
func (b localBalancer) told() string { return filepath.Join(b.dir(), "endpoint.json") }

// run has a process while there are load balancers.
func (b localBalancer) run(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		v := b.plane.State.Watch()
		wait := time.Second
		if v.LoadBalancers.Len() > 0 {
			if err := b.ensure(); err != nil {
				failures++
				wait = min(time.Minute, time.Second<<min(failures, 6))
				b.plane.log.Error("the load balancers' process", "error", err)
			} else {
				failures = 0
			}
		}
		waiting, cancel := context.WithTimeout(ctx, wait)
		if v.LoadBalancers.Len() > 0 {
			<-waiting.Done()
		} else {
			v.LoadBalancers.Watch()
			v.Changed(waiting) //nolint:errcheck // it's time to look again either way
		}
		cancel()
	}
	return ctx.Err()
}

// ensure starts the process unless it runs. One that follows another address is ended first; its successor has its ports.
func (b localBalancer) ensure() error {
	if err := os.MkdirAll(b.dir(), 0o700); err != nil {
		return err
	}
	var follows string
	text, err := os.ReadFile(b.told())
	if err == nil {
		err = json.Unmarshal(text, &follows)
	}
	if pid, runs := file.Holder(b.lock()); runs {
		if err == nil && follows == b.plane.Endpoint() || pid == 0 {
			return nil
		}
		return syscall.Kill(pid, syscall.SIGTERM)
	}
	if err := file.WriteJSON(b.told(), b.plane.Endpoint(), true); err != nil {
		return err
	}
	return b.start()
}

// start starts the process, which inherits the lock.
func (b localBalancer) start() error {
	o := b.plane.options
	program, err := os.Executable()
	if err != nil {
		return err
	}
	lock, err := file.Reserve(b.lock())
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // the process has it
	log, err := os.OpenFile(filepath.Join(b.dir(), "balancer.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own
	args := []string{"balancer", "--endpoint", b.plane.Endpoint(), "--data", b.dir(), "--lock-fd", "3"}
	cmd := exec.Command(program, append(args, o.Balancer.Arguments...)...)
	cmd.Env = append(os.Environ(), "AWS_REGION="+o.Region)
	if o.AccessKeyID != "" {
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+o.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+o.SecretAccessKey, "AWS_SESSION_TOKEN=")
	}
	if o.Balancer.Authority != "" {
		cmd.Env = append(cmd.Env, "AWS_CA_BUNDLE="+o.Balancer.Authority)
	}
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // neither ctrl-C nor whatever ends the control plane should reach it
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() //nolint:errcheck // the lock and the log tell how it went
	return nil
}

// StopBalancer ends the process that carries load balancers out on this machine, and waits until it has ended.
func (p *Plane) StopBalancer(ctx context.Context) error { return stopBalancer(ctx, p.options.Data) }

// stopBalancer ends the process of a data directory.
func stopBalancer(ctx context.Context, data string) error {
	lock := balancerLock(data)
	told := 0
	for {
		pid, runs := file.Holder(lock)
		if !runs {
			return nil
		}
		if pid != told && pid != 0 {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				return err
			}
			told = pid
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the load balancers' process %d does not end", pid)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func balancerLock(data string) string { return filepath.Join(data, "balancer", "balancer.lock") }

// runBalancer runs the process for load balancers on this machine, if there is to be one.
func (p *Plane) runBalancer(ctx context.Context) error {
	if !p.options.Balancer.Local || p.listener == nil {
		return nil
	}
	return localBalancer{p}.run(ctx)
}

// countRequests makes metrics of what a balancer process has counted.
func (p *Plane) countRequests(_ context.Context, counts []report.Count) {
	v, now := p.State.View(), p.now()
	samples := append(metering.Requests(counts, v, now), metering.Hosts(v, now)...)
	if err := p.putMetrics(samples); err != nil {
		p.log.Error("cannot keep the load balancers' metrics", "error", err)
	}
}
