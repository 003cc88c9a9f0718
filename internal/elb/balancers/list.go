package balancers

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

func (l *Loop) serveList(_ context.Context, w http.ResponseWriter, _ call.Call, _ []byte) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(l.List()) //nolint:errcheck // it only fails if the caller is gone
}

// List returns where all listeners are.
func (l *Loop) List() []report.Listener {
	v := l.store.View()
	problems := l.Problems()
	out := []report.Listener{}
	for row := range v.Listeners.All() {
		b := v.LoadBalancers.Get(*row.LoadBalancerArn)
		if b == nil {
			continue
		}
		one := report.Listener{
			LoadBalancer: aws.ToString(b.LoadBalancerName),
			Protocol:     string(row.Protocol),
			Port:         int(aws.ToInt32(row.Port)),
			Problem:      cmp.Or(problems[*row.ListenerArn], "no process"),
		}
		found := false
		for p := range v.Balancers.All() {
			address, problem := p.Addresses[*row.ListenerArn], p.Problems[*row.ListenerArn]
			if p.Lost == nil && (address != "" || problem != "") {
				found = true
				out = append(out, at(one, b, p, address, problem))
			}
		}
		if !found {
			out = append(out, one)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(strings.Compare(a.LoadBalancer, b.LoadBalancer), a.Port-b.Port, strings.Compare(a.Process, b.Process)) < 0
	})
	return out
}

// at returns a listener as one process has it.
func at(l report.Listener, b *state.LoadBalancer, p *state.Balancer, address, problem string) report.Listener {
	l.Process = p.ID
	l.Address = address
	l.Problem = problem
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.IsLoopback() {
		l.URL = strings.ToLower(l.Protocol) + "://" + aws.ToString(b.DNSName) + ":" + port
	}
	return l
}
