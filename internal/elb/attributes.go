package elb

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/elb/routing"
)

// attribute is what an attribute may be. One with a single value is there because clients ask for it: what another value would
// switch on isn't carried out, so it's refused.
type attribute struct {
	key     string
	initial string
	values  []string // empty for numbers, and for any text
	low     int
	high    int
	orZero  bool // 0 is allowed beside low to high
	of      []string
}

// The kinds of load balancers and target groups that attributes may be of.
var (
	application = []string{string(types.LoadBalancerTypeEnumApplication)}
	network     = []string{string(types.LoadBalancerTypeEnumNetwork)}
	both        = slices.Concat(application, network)
	boolean     = []string{"true", "false"}
)

// loadBalancerAttributes are AWS's, in the order of API_LoadBalancerAttribute.
var loadBalancerAttributes = []attribute{
	{key: "deletion_protection.enabled", initial: "false", values: boolean, of: both},
	{key: "load_balancing.cross_zone.enabled", initial: "true", values: []string{"true"}, of: application},
	{key: "load_balancing.cross_zone.enabled", initial: "false", values: boolean, of: network}, // there is one zone, as it were
	{key: "access_logs.s3.enabled", initial: "false", values: boolean, of: application},
	{key: "access_logs.s3.enabled", initial: "false", values: []string{"false"}, of: network},
	{key: "access_logs.s3.bucket", of: both},
	{key: "access_logs.s3.prefix", of: both},
	{key: "ipv6.deny_all_igw_traffic", initial: "false", values: []string{"false"}, of: both},
	{key: "zonal_shift.config.enabled", initial: "false", values: []string{"false"}, of: both},
	{key: "idle_timeout.timeout_seconds", initial: "60", low: 1, high: 4000, of: application},
	{key: "client_keep_alive.seconds", initial: "3600", values: []string{"3600"}, of: application},
	{key: "connection_logs.s3.enabled", initial: "false", values: []string{"false"}, of: application},
	{key: "connection_logs.s3.bucket", of: application},
	{key: "connection_logs.s3.prefix", of: application},
	{key: "health_check_logs.s3.enabled", initial: "false", values: []string{"false"}, of: application},
	{key: "health_check_logs.s3.bucket", of: application},
	{key: "health_check_logs.s3.prefix", of: application},
	{key: "routing.http.desync_mitigation_mode", initial: "defensive", values: []string{"defensive", "strictest"}, of: application},
	{key: "routing.http.drop_invalid_header_fields.enabled", initial: "false", values: boolean, of: application},
	{key: "routing.http.preserve_host_header.enabled", initial: "false", values: boolean, of: application},
	{key: "routing.http.x_amzn_tls_version_and_cipher_suite.enabled", initial: "false", values: []string{"false"}, of: application},
	{key: "routing.http.xff_client_port.enabled", initial: "false", values: []string{"false"}, of: application},
	{key: "routing.http.xff_header_processing.mode", initial: "append", values: []string{"append", "preserve", "remove"}, of: application},
	{key: "routing.http2.enabled", initial: "true", values: boolean, of: application},
	{key: "waf.fail_open.enabled", initial: "false", values: []string{"false"}, of: application},
	{key: "dns_record.client_routing_policy", initial: "any_availability_zone", values: []string{"any_availability_zone"}, of: network},
	{key: "secondary_ips.auto_assigned.per_subnet", initial: "0", values: []string{"0"}, of: network},
}

// targetGroupAttributes are AWS's, in the order of API_TargetGroupAttribute.
var targetGroupAttributes = []attribute{
	{key: "deregistration_delay.timeout_seconds", initial: "300", low: 0, high: 3600, of: both},
	{key: "stickiness.enabled", initial: "false", values: boolean, of: both},
	{key: "stickiness.type", initial: "lb_cookie", values: []string{"lb_cookie", "app_cookie"}, of: application},
	{key: "stickiness.type", initial: "source_ip", values: []string{"source_ip"}, of: network},
	{
		key: "load_balancing.cross_zone.enabled", initial: "use_load_balancer_configuration",
		values: []string{"true", "false", "use_load_balancer_configuration"}, of: both,
	},
	{key: "target_group_health.dns_failover.minimum_healthy_targets.count", initial: "1", values: []string{"1", "off"}, of: both},
	{key: "target_group_health.dns_failover.minimum_healthy_targets.percentage", initial: "off", values: []string{"off"}, of: both},
	{key: "target_group_health.unhealthy_state_routing.minimum_healthy_targets.count", initial: "1", values: []string{"1"}, of: both},
	{key: "target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage", initial: "off", values: []string{"off"}, of: both},
	{
		key: "load_balancing.algorithm.type", initial: "round_robin",
		values: []string{"round_robin", "least_outstanding_requests"}, of: application,
	},
	{key: "load_balancing.algorithm.anomaly_mitigation", initial: "off", values: []string{"off"}, of: application},
	{key: "slow_start.duration_seconds", initial: "0", low: 30, high: 900, orZero: true, of: application},
	{key: "stickiness.app_cookie.cookie_name", of: application},
	{key: "stickiness.app_cookie.duration_seconds", initial: "86400", low: 1, high: 604800, of: application},
	{key: "stickiness.lb_cookie.duration_seconds", initial: "86400", low: 1, high: 604800, of: application},
	{key: "deregistration_delay.connection_termination.enabled", initial: "false", values: boolean, of: network},
	{key: "preserve_client_ip.enabled", initial: "false", values: []string{"false"}, of: network},
	{key: "proxy_protocol_v2.enabled", initial: "false", values: boolean, of: network},
}

// listenerAttributes are those of AWS's that clients ask for: API_ListenerAttribute.
var listenerAttributes = []attribute{
	{key: "routing.http.response.server.enabled", initial: "true", values: []string{"true"}, of: application},
	{key: "tcp.idle_timeout.seconds", initial: "350", low: 60, high: 6000, of: []string{routing.TCP, routing.TCPUDP}},
}

// find returns the attribute of a kind with a key, or nil.
func find(all []attribute, kind, key string) *attribute {
	for i := range all {
		if all[i].key == key && slices.Contains(all[i].of, kind) {
			return &all[i]
		}
	}
	return nil
}

// check checks a value.
func (a *attribute) check(value string) error {
	switch {
	case len(a.values) > 0:
		if slices.Contains(a.values, value) {
			return nil
		}
		return badConfiguration("The value '%s' of attribute '%s' is not supported: it must be one of [%s]", value, a.key, strings.Join(a.values, ", "))
	case a.high > 0:
		n, err := strconv.Atoi(value)
		if err != nil || (n < a.low || n > a.high) && (n != 0 || !a.orZero) {
			return invalid("'%s' value '%s' must be between '%d-%d' inclusive", a.key, value, a.low, a.high)
		}
	case len(value) > 1024:
		return invalid("The value of attribute '%s' must have at most 1024 characters", a.key)
	}
	return nil
}

// pair is an attribute in a call.
type pair struct{ key, value string }

// setAttributes returns the attributes with those of a call.
func setAttributes(all []attribute, kind string, set map[string]string, given []pair) (map[string]string, error) {
	out := map[string]string{}
	for key, value := range set {
		out[key] = value
	}
	seen := map[string]bool{}
	for _, p := range given {
		a := find(all, kind, p.key)
		if a == nil {
			return nil, badConfiguration("Attribute key '%s' is not recognized for this resource, or not supported by Pintle", p.key)
		}
		if seen[p.key] {
			return nil, badConfiguration("Attribute key '%s' is specified more than once", p.key)
		}
		seen[p.key] = true
		if err := a.check(p.value); err != nil {
			return nil, err
		}
		out[p.key] = p.value
	}
	return out, nil
}

// listAttributes returns a kind's attributes with their values.
func listAttributes(all []attribute, kind string, set map[string]string) (out []pair) {
	for _, a := range all {
		if !slices.Contains(a.of, kind) {
			continue
		}
		value, ok := set[a.key]
		if !ok {
			value = a.initial
		}
		out = append(out, pair{a.key, value})
	}
	return out
}

// checkTags checks the tags of a call, which together with those that are there may be 50.
func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, parts), account.MaxTags)
	switch {
	case fault == nil:
		return nil
	case fault.Rule == account.TooManyTags:
		return tooManyTags()
	case fault.Rule == account.TagTwice:
		return &types.DuplicateTagKeysException{Message: account.Message("Tag key was specified more than once: %s", fault.Key)}
	case fault.Rule == account.TagReserved:
		return invalid("The tag key '%s' begins with aws:, which is reserved", fault.Key)
	}
	return invalid("The tag '%s' has a key of not 1 to %d characters, or a value of more than %d", fault.Key, account.MaxTagKey, account.MaxTagValue)
}

func tooManyTags() error {
	return &types.TooManyTagsException{Message: account.Message("The limit of %d tags has been reached", account.MaxTags)}
}

func parts(t types.Tag) (key, value *string) { return t.Key, t.Value }
