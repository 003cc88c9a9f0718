package metering

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/elb/report"
)

// TestRequests: what a load balancer answers itself is among its codes, and no request for a target.
func TestRequests(t *testing.T) {
	const (
		balancer = "arn:aws:elasticloadbalancing:r:1:loadbalancer/app/web/1"
		group    = "arn:aws:elasticloadbalancing:r:1:targetgroup/g/2"
	)
	got := map[string]string{}
	for _, s := range Requests([]report.Count{
		{LoadBalancer: balancer, TargetGroup: group, Requests: 3, Bytes: 500, Codes: map[string]int64{"HTTPCode_Target_2XX_Count": 3}},
		{LoadBalancer: balancer, Requests: 2, Codes: map[string]int64{"HTTP_Redirect_Count": 2}},
		{LoadBalancer: "arn:aws:elasticloadbalancing:r:1:loadbalancer/net/n/3", Flows: 4, Bytes: 7},
	}, world(t, "disabled").View(), time.Unix(9, 0)) {
		key := s.Metric.Namespace + " " + s.Metric.Name
		for _, d := range s.Metric.Dimensions {
			key += " " + d.Value
		}
		got[key] += fmt.Sprintf("%g %s", s.Set.Sum, s.Unit)
	}
	want := map[string]string{
		"AWS/ApplicationELB ProcessedBytes app/web/1":                            "500 Bytes",
		"AWS/ApplicationELB RequestCount app/web/1":                              "3 Count",
		"AWS/ApplicationELB RequestCount app/web/1 targetgroup/g/2":              "3 Count",
		"AWS/ApplicationELB HTTPCode_Target_2XX_Count app/web/1":                 "3 Count",
		"AWS/ApplicationELB HTTPCode_Target_2XX_Count app/web/1 targetgroup/g/2": "3 Count",
		"AWS/ApplicationELB RequestCountPerTarget targetgroup/g/2":               "3 Count",
		"AWS/ApplicationELB RequestCountPerTarget app/web/1 targetgroup/g/2":     "3 Count",
		"AWS/ApplicationELB HTTP_Redirect_Count app/web/1":                       "2 Count",
		"AWS/NetworkELB ProcessedBytes net/n/3":                                  "7 Bytes",
		"AWS/NetworkELB NewFlowCount net/n/3":                                    "4 Count",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}
