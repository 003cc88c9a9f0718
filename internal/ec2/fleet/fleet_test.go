package fleet

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func TestConfigure(t *testing.T) {
	for _, c := range []struct {
		name       string
		script     string
		cluster    string
		attributes map[string]string
	}{
		{"nothing", "", "default", nil},
		{"echo", "#!/bin/bash\necho ECS_CLUSTER=gpu >> /etc/ecs/ecs.config;echo ECS_BACKEND_HOST= >> /etc/ecs/ecs.config;", "gpu", nil},
		{"quotes", `echo "ECS_CLUSTER=a-b_c" >> /etc/ecs/ecs.config`, "a-b_c", nil},
		{"a quoted value", `echo ECS_CLUSTER='c' > /etc/ecs/ecs.config`, "c", nil},
		{"a here-document", "cat <<'E' >> /etc/ecs/ecs.config\nECS_CLUSTER=c\nECS_INSTANCE_ATTRIBUTES={\"rack\":\"7\"}\nE\n", "c",
			map[string]string{"rack": "7"}},
		{"the last one counts", "ECS_CLUSTER=a\nECS_CLUSTER=b\n", "b", nil},
		{"a comment", "# echo ECS_CLUSTER=no\n", "default", nil},
		{"empty", "echo ECS_CLUSTER= >> x", "default", nil},
	} {
		m := Machine{UserData: base64.StdEncoding.EncodeToString([]byte(c.script))}
		if m.Configure(func(string, string) string { return "" }); m.Cluster != c.cluster || !reflect.DeepEqual(m.Attributes, c.attributes) {
			t.Errorf("%s: %q, %v", c.name, m.Cluster, m.Attributes)
		}
	}
}

// TestConfigureBlocksIMDS: user data may keep tasks from the instance metadata service.
func TestConfigureBlocksIMDS(t *testing.T) {
	for script, want := range map[string]bool{
		"echo ECS_AWSVPC_BLOCK_IMDS=true >> /etc/ecs/ecs.config": true, "ECS_AWSVPC_BLOCK_IMDS=false": false, "": false,
	} {
		m := Machine{UserData: base64.StdEncoding.EncodeToString([]byte(script))}
		if m.Configure(func(string, string) string { return "" }); m.BlockIMDS != want {
			t.Errorf("%q: %t, want %t", script, m.BlockIMDS, want)
		}
	}
}

// TestCommand runs a program that keeps a file for each machine.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "fleet")
	script := `#!/bin/sh
cd ` + dir + ` || exit 1
id() { sed 's/.*"instanceId":"\([^"]*\)".*/\1/'; }
case $1 in
launch) id > /tmp/x.$$; touch machine-$(cat /tmp/x.$$); rm /tmp/x.$$;;
terminate) rm -f machine-$(id);;
list)
	[ -e broken ] && exit 0
	printf '{"instanceIds":['; s=
	for f in machine-*; do [ -e $f ] && printf '%s"%s"' "$s" "${f#machine-}" && s=,; done
	echo ']}';;
esac
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c, ctx := Command{program}, t.Context()
	for range 2 {
		if err := c.Launch(ctx, Machine{InstanceID: "i-1"}); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := c.List(ctx); err != nil || !slices.Equal(ids, []string{"i-1"}) {
		t.Errorf("got %v, %v", ids, err)
	}
	if err := c.Terminate(ctx, "i-1"); err != nil {
		t.Error(err)
	}
	if ids, err := c.List(ctx); err != nil || len(ids) != 0 {
		t.Errorf("got %v, %v", ids, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if ids, err := c.List(ctx); err == nil {
		t.Errorf("an empty answer passes for %v", ids)
	}
	if err := (Command{"/bin/false"}).Launch(ctx, Machine{}); err == nil || err.Error() != "/bin/false launch: exit status 1" {
		t.Errorf("got %v", err)
	}
}
