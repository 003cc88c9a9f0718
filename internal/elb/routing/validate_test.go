package routing

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// whole is a configuration with something of everything.
const whole = `{
  "Balancers": [
    {"ARN": "lb", "Name": "web", "Type": "application", "Listeners": [
      {"ARN": "l80", "Protocol": "HTTP", "Port": 80, "Rules": [
        {"ARN": "r1", "Priority": 10, "Conditions": [
          {"Field": "path-pattern", "Values": ["/api/*"]},
          {"Field": "query-string", "Query": [{"Key": "v", "Value": "1"}]}],
         "Actions": [{"Type": "forward", "Forward": {"Groups": [{"ARN": "g", "Weight": 1}, {"ARN": "h2", "Weight": 0}]}}]},
        {"ARN": "r2", "Priority": 20, "Conditions": [{"Field": "host-header", "Values": ["*.example.com"]}],
         "Actions": [{"Type": "redirect", "Redirect": {"StatusCode": "HTTP_301", "Protocol": "HTTPS", "Port": "443"}}]},
        {"ARN": "r0", "Actions": [{"Type": "fixed-response", "Fixed": {"StatusCode": 404}}]}]}]},
    {"ARN": "nlb", "Type": "network", "Listeners": [
      {"ARN": "l53", "Protocol": "TCP", "Port": 81, "Rules": [
        {"ARN": "r3", "Actions": [{"Type": "forward", "Forward": {"Groups": [{"ARN": "u"}]}}]}]}]}],
  "Groups": [
    {"ARN": "g", "Protocol": "HTTP", "Targets": [{"ID": "i-1", "Address": "10.0.0.1", "Port": 80}]},
    {"ARN": "h2", "Protocol": "HTTP", "ProtocolVersion": "HTTP2"},
    {"ARN": "u", "Protocol": "TCP"}]
}`

func TestValidate(t *testing.T) {
	for _, c := range []struct{ name, old, new, field string }{
		{"all is well", "", "", ""},
		{"a type", `"application"`, `"gateway"`, "Balancers[0].Type"},
		{"an ARN twice", `"ARN": "r2"`, `"ARN": "r1"`, "Balancers[0].Listeners[0].Rules[1].ARN"},
		{"a protocol", `"Protocol": "HTTP", "Port": 80`, `"Protocol": "TLS", "Port": 80`, "Balancers[0].Listeners[0].Protocol"},
		{"a certificate", `"Protocol": "HTTP", "Port": 80`, `"Protocol": "HTTPS", "Port": 80`, "Balancers[0].Listeners[0].Certificates"},
		{"what is not there", `"Protocol": "TCP", "Port"`, `"Protocol": "QUIC", "Port"`, "Balancers[1].Listeners[0].Protocol"},
		{"a group that is not there", `"Protocol": "TCP"}`, `"Protocol": "QUIC"}`, "Groups[2].Protocol"},
		{"UDP to TCP", `"Protocol": "TCP", "Port"`, `"Protocol": "UDP", "Port"`, "Balancers[1].Listeners[0].Rules[0].Actions[0].Forward.Groups[0].ARN"},
		{"TCP to both", `"Protocol": "TCP"}`, `"Protocol": "TCP_UDP"}`, ""},
		{"TLS without a certificate", `"Protocol": "TCP", "Port"`, `"Protocol": "TLS", "Port"`, "Balancers[1].Listeners[0].Certificates"},
		{"ALPN without TLS", `"Protocol": "TCP", "Port"`, `"Protocol": "TCP", "ALPNPolicy": "HTTP2Only", "Port"`, "Balancers[1].Listeners[0].ALPNPolicy"},
		{"the proxy protocol", `"Protocol": "TCP"}`, `"Protocol": "TCP", "Attributes": {"ProxyProtocol": true}}`, ""},
		{"the proxy protocol in datagrams", `"Protocol": "TCP"}`, `"Protocol": "TCP_UDP", "Attributes": {"ProxyProtocol": true}}`,
			"Groups[2].Attributes.ProxyProtocol"},
		{"a port twice", `"Port": 81`, `"Port": 80`, "Balancers[1].Listeners[0].Port"},
		{"a port", `"Port": 80, "Rules"`, `"Port": 0, "Rules"`, "Balancers[0].Listeners[0].Port"},
		{"the order", `"Priority": 10`, `"Priority": 20`, "Balancers[0].Listeners[0].Rules[1].Priority"},
		{"no default", `"ARN": "r0",`, `"ARN": "r0", "Priority": 30,`, "Balancers[0].Listeners[0].Rules[2]"},
		{"a path", `"/api/*"`, `"/a b"`, "Balancers[0].Listeners[0].Rules[0].Conditions[0].Values[0]"},
		{"too many values", `["/api/*"]`, `["/1","/2","/3","/4","/5"]`, "Balancers[0].Listeners[0].Rules[0].Conditions"},
		{"a host", `"*.example.com"`, `"localhost"`, "Balancers[0].Listeners[0].Rules[1].Conditions[0].Values[0]"},
		{"authenticate", `"Type": "redirect"`, `"Type": "authenticate-oidc"`, "Balancers[0].Listeners[0].Rules[1].Actions[0].Type"},
		{"what a type has", `"Type": "redirect"`, `"Type": "forward"`, "Balancers[0].Listeners[0].Rules[1].Actions[0].Forward"},
		{"a circle", `"Protocol": "HTTPS", "Port": "443"`, `"Protocol": "HTTP", "Port": "80"`, "Balancers[0].Listeners[0].Rules[1].Actions[0].Redirect"},
		{"a code", `404`, `302`, "Balancers[0].Listeners[0].Rules[2].Actions[0].Fixed.StatusCode"},
		{"a group", `"ARN": "g", "Weight"`, `"ARN": "x", "Weight"`, "Balancers[0].Listeners[0].Rules[0].Actions[0].Forward.Groups[0].ARN"},
		{"a group's protocol", `{"ARN": "u"}`, `{"ARN": "g"}`, "Balancers[1].Listeners[0].Rules[0].Actions[0].Forward.Groups[0].ARN"},
		{"gRPC without TLS", `"ProtocolVersion": "HTTP2"`, `"ProtocolVersion": "GRPC"`,
			"Balancers[0].Listeners[0].Rules[0].Actions[0].Forward.Groups[1].ARN"},
		{"an address", `"10.0.0.1"`, `"example.com"`, "Groups[0].Targets[0].Address"},
		{"a matcher", `"Protocol": "HTTP", "Targets"`, `"Protocol": "HTTP", "HealthCheck": {"Matcher": "500"}, "Targets"`, "Groups[0].HealthCheck.Matcher"},
		{"a time-out", `"Protocol": "HTTP", "Targets"`, `"Protocol": "HTTP", "HealthCheck": {"IntervalSeconds": 5, "TimeoutSeconds": 6}, "Targets"`,
			"Groups[0].HealthCheck.TimeoutSeconds"},
		{"slow start", `"Protocol": "HTTP", "Targets"`,
			`"Protocol": "HTTP", "Attributes": {"SlowStartSeconds": 30, "Algorithm": "least_outstanding_requests"}, "Targets"`,
			"Groups[0].Attributes.SlowStartSeconds"},
		{"stickiness", `"Protocol": "TCP"}`, `"Protocol": "TCP", "Attributes": {"Stickiness": {"Type": "lb_cookie"}}}`, "Groups[2].Attributes.Stickiness.Type"},
		{"a cookie", `"Protocol": "HTTP", "Targets"`,
			`"Protocol": "HTTP", "Attributes": {"Stickiness": {"Type": "app_cookie", "CookieName": "AWSALB"}}, "Targets"`,
			"Groups[0].Attributes.Stickiness.CookieName"},
	} {
		if c.old != "" && !strings.Contains(whole, c.old) {
			t.Fatalf("%s: no %s", c.name, c.old)
		}
		var b Balancers
		if err := json.Unmarshal([]byte(strings.Replace(whole, c.old, c.new, 1)), &b); err != nil {
			t.Fatal(c.name, err)
		}
		err, _ := Validate(&b).(*Error)
		switch {
		case c.field == "" && err != nil, c.field != "" && (err == nil || err.Field != c.field):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestJSON: what the control plane sends arrives.
func TestJSON(t *testing.T) {
	var b, again Balancers
	if err := json.Unmarshal([]byte(whole), &b); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(b, again) {
		t.Errorf("%v\n%+v\n%+v", err, b, again)
	}
}
