package firelens

import (
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	routed := map[string]map[string]string{
		"web": {"Name": "es", "Host": "h", "include-pattern": "^a b$", "log-driver-buffer-limit": "9"},
		"job": {"exclude-pattern": "debug"},
	}
	for _, c := range []struct {
		name, kind, mode string
		memory           int64
		options          map[string]string
		want             string
	}{
		{"Fluent Bit on the bridge", "fluentbit", "bridge", 0, nil, `
[INPUT]
    Name forward
    unix_path /var/run/fluent.sock
    Mem_Buf_Limit 25MB

[INPUT]
    Name forward
    Listen 0.0.0.0
    Port 24224

[INPUT]
    Name tcp
    Tag firelens-healthcheck
    Listen 127.0.0.1
    Port 8877

[OUTPUT]
    Name null
    Match firelens-healthcheck

[FILTER]
    Name grep
    Match job-firelens*
    Exclude log debug

[FILTER]
    Name grep
    Match web-firelens*
    Regex log ^a b$

[FILTER]
    Name record_modifier
    Match *
    Record ecs_cluster c
    Record ecs_task_arn arn/t
    Record ecs_task_definition f:1
    Record ec2_instance_id i-1

[OUTPUT]
    Name es
    Match web-firelens*
    Host h
`},
		{
			"Fluent Bit with a file of its own", "fluentbit", "host", 100,
			map[string]string{"enable-ecs-log-metadata": "false", "config-file-type": "file", "config-file-value": "/extra.conf"}, `
[INPUT]
    Name forward
    unix_path /var/run/fluent.sock
    Mem_Buf_Limit 50MB

[FILTER]
    Name grep
    Match job-firelens*
    Exclude log debug

[FILTER]
    Name grep
    Match web-firelens*
    Regex log ^a b$

@INCLUDE /extra.conf
[OUTPUT]
    Name es
    Match web-firelens*
    Host h
`,
		},
	} {
		r := router(c.kind, c.mode, routed)
		r.MemoryMiB, r.Options = c.memory, c.options
		got, err := r.Config()
		if err != nil || strings.TrimSpace(got) != strings.TrimSpace(c.want) {
			t.Errorf("%s: %v\n%s", c.name, err, got)
		}
	}
}

func router(kind, mode string, routed map[string]map[string]string) *Router {
	return &Router{
		Type: kind, Mode: mode, Cluster: "c", TaskArn: "arn/t", Definition: "f:1", InstanceID: "i-1", Routed: routed,
	}
}

func TestConfigOfFluentd(t *testing.T) {
	r := router("fluentd", "awsvpc", map[string]map[string]string{
		"web": {"@type": "stdout", "tag": "x", "include-pattern": "a", "exclude-pattern": "b"},
	})
	r.Options = map[string]string{"config-file-type": "file", "config-file-value": "/extra.conf"}
	got, err := r.Config()
	const want = `<source>
    @type unix
    path /var/run/fluent.sock
</source>
<source>
    @type forward
    bind 127.0.0.1
    port 24224
</source>
<filter web-firelens**>
    @type grep
    <exclude>
        key log
        pattern b
    </exclude>
</filter>
<filter web-firelens**>
    @type grep
    <regexp>
        key log
        pattern a
    </regexp>
</filter>
<filter **>
    @type record_transformer
    <record>
        ecs_cluster c
        ecs_task_arn arn/t
        ecs_task_definition f:1
        ec2_instance_id i-1
    </record>
</filter>
@include /extra.conf
<match web-firelens**>
    @type stdout
    tag x
</match>
`
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		kind    string
		log     map[string]string
		options map[string]string
		want    string
	}{
		"another router":             {"vector", nil, nil, `type "vector"`},
		"no output's name":           {"fluentbit", map[string]string{"Host": "h"}, nil, "lack Name"},
		"the other router's":         {"fluentd", map[string]string{"Name": "es"}, nil, "lack @type"},
		"a line break":               {"fluentbit", map[string]string{"Name": "es\n[OUTPUT]"}, nil, "line break"},
		"a line break in a name":     {"fluentbit", map[string]string{"Name": "es", "a\nb": "c"}, nil, "line break"},
		"a configuration from S3":    {"fluentbit", nil, map[string]string{"config-file-type": "s3"}, "only file is"},
		"a section's end in an name": {"fluentd", map[string]string{"@type": "null", "</match>": ""}, nil, "a name that cannot be"},
	} {
		r := router(c.kind, "bridge", map[string]map[string]string{"web": c.log})
		r.Options = c.options
		if got, err := r.Config(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}
