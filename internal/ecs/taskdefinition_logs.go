package ecs

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// logOptions are the options of the log drivers, without those that all have. awsfirelens has any: they are the log router's. Those of awslogs
// are API_LogConfiguration's, the stream's name, and the endpoint, by which Docker's driver finds Pintle. The others' are Docker's:
// https://docs.docker.com/engine/logging/configure/
var logOptions = map[types.LogDriver]string{
	types.LogDriverAwslogs: "awslogs-create-group awslogs-datetime-format awslogs-endpoint awslogs-group awslogs-multiline-pattern " +
		"awslogs-region awslogs-stream awslogs-stream-prefix",
	types.LogDriverJsonFile: dockerOptions + "compress max-file max-size",
	types.LogDriverJournald: dockerOptions,
	types.LogDriverSyslog: dockerOptions + "syslog-address syslog-facility syslog-format syslog-tls-ca-cert syslog-tls-cert syslog-tls-key " +
		"syslog-tls-skip-verify",
	types.LogDriverGelf: dockerOptions + "gelf-address gelf-compression-level gelf-compression-type gelf-tcp-max-reconnect " +
		"gelf-tcp-reconnect-delay",
	types.LogDriverFluentd: dockerOptions + "fluentd-address fluentd-async fluentd-async-connect fluentd-async-reconnect-interval " +
		"fluentd-buffer-limit fluentd-max-retries fluentd-read-timeout fluentd-request-ack fluentd-retry-wait fluentd-sub-second-precision " +
		"fluentd-write-timeout",
	types.LogDriverSplunk: dockerOptions + "splunk-caname splunk-capath splunk-format splunk-gzip splunk-gzip-level splunk-index " +
		"splunk-index-acknowledgment splunk-insecureskipverify splunk-source splunk-sourcetype splunk-token splunk-url splunk-verify-connection",
}

const (
	dockerOptions = "env env-regex labels labels-regex tag " // of most of Docker's drivers
	anyLogOptions = "max-buffer-size mode"
)

// bufferSize is a size as Docker takes it: a number of bytes, or of a power of 1,024 bytes.
var bufferSize = regexp.MustCompile(`(?i)^\d+(\.\d+)? ?([kmgtp]i?)?b?$`)

// checkLogs checks the log configuration of what is called whose.
func checkLogs(l *types.LogConfiguration, whose string) error {
	if l == nil {
		return nil
	}
	if !slices.Contains(l.LogDriver.Values(), l.LogDriver) {
		return clientError("Invalid setting for %s. Unknown log driver %q.", whose, l.LogDriver)
	}
	if l.LogDriver == types.LogDriverAwslogs && l.Options["awslogs-group"] == "" {
		return clientError("Log driver awslogs requires options: awslogs-group. There is none for %s.", whose)
	}
	return checkLogOptions(l)
}

func checkLogOptions(l *types.LogConfiguration) error {
	allowed, ok := logOptions[l.LogDriver]
	if !ok {
		return nil
	}
	known := strings.Fields(allowed + " " + anyLogOptions)
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(l.Options)), func(o string) bool { return slices.Contains(known, o) })
	if len(unknown) > 0 {
		return clientError("Log driver %s disallows options: %s", l.LogDriver, strings.Join(unknown, ", "))
	}
	if v, ok := l.Options["awslogs-create-group"]; ok && v != "true" {
		return clientError("Log driver awslogs option 'awslogs-create-group' should only be set to 'true', else omit option.")
	}
	if v, ok := l.Options["mode"]; ok && v != "blocking" && v != "non-blocking" {
		return clientError("Log driver %s option 'mode' should be 'blocking' or 'non-blocking', not '%s'.", l.LogDriver, v)
	}
	if v, ok := l.Options["max-buffer-size"]; ok && !bufferSize.MatchString(v) {
		return clientError("Log driver %s option 'max-buffer-size' should be a size such as '4m', not '%s'.", l.LogDriver, v)
	}
	return nil
}
