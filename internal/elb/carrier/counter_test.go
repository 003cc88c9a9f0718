package carrier

import (
	"maps"
	"testing"

	"github.com/pintle/pintle/internal/elb/proxy"
)

// TestCodes: what a load balancer answers itself is told by class and, if it's an error of its own, by code.
func TestCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		of   proxy.Request
		want map[string]int64
	}{
		{"a target's answer", proxy.Request{Group: "g", Action: "forward", Status: 502, TargetStatus: 502}, map[string]int64{"HTTPCode_Target_5XX_Count": 1}},
		{"a target is too slow", proxy.Request{Group: "g", Action: "forward", Status: 504}, map[string]int64{"HTTPCode_ELB_5XX_Count": 1, "HTTPCode_ELB_504_Count": 1}},
		{"no target", proxy.Request{Group: "g", Action: "forward", Status: 503}, map[string]int64{"HTTPCode_ELB_5XX_Count": 1, "HTTPCode_ELB_503_Count": 1}},
		{"a client that is gone", proxy.Request{Group: "g", Action: "forward", Status: 460}, map[string]int64{"HTTPCode_ELB_4XX_Count": 1}},
		{"no such code", proxy.Request{Status: 505}, map[string]int64{"HTTPCode_ELB_5XX_Count": 1}},
		{"a redirect", proxy.Request{Action: "redirect", Status: 301}, map[string]int64{"HTTPCode_ELB_3XX_Count": 1, "HTTP_Redirect_Count": 1}},
		{"a fixed response", proxy.Request{Action: "fixed-response", Status: 200}, map[string]int64{"HTTP_Fixed_Response_Count": 1}},
	} {
		counter := NewCounter()
		counter.Request(&c.of)
		if got := counter.Take(); len(got) != 1 || !maps.Equal(got[0].Codes, c.want) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestNotConnected: a target that took no connection is counted, whether another one took the request or none; one that broke off its answer isn't.
func TestNotConnected(t *testing.T) {
	counter := NewCounter()
	for _, r := range []proxy.Request{
		{Group: "g", Status: 200, TargetStatus: 200, Unreached: 2}, {Group: "g", Status: 502, Unreached: 1}, {Group: "g", Status: 502},
	} {
		counter.Request(&r)
	}
	if got := counter.Take(); len(got) != 1 || got[0].NotConnected != 3 {
		t.Errorf("%+v", got)
	}
}
