package imds

import (
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	client "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"

	"github.com/pintle/pintle/internal/acs"
)

func instance() *acs.PintleInstance {
	return &acs.PintleInstance{
		InstanceID: "i-1", ImageID: "ami-1", InstanceType: "g4dn.xlarge", Architecture: "x86_64", Account: "000000000000", Region: "us-east-1",
		Zone: "us-east-1b", PrivateIPv4: "172.31.0.4", Hostname: "ip-172-31-0-4.ec2.internal", Reservation: "r-1",
		LaunchedAt: time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC), SecurityGroups: []string{"default", "web"},
		UserData: base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\n")), HopLimit: 2,
		Profile: &acs.InstanceProfile{
			Arn: "arn:aws:iam::000000000000:instance-profile/p", ID: "AIPA1", Role: "ecsInstanceRole", UpdatedAt: time.Now(),
			Credentials: &acs.IAMRoleCredentials{
				AccessKeyID: "ASIA1", SecretAccessKey: "secret", SessionToken: "token", Expiration: time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
			},
		},
	}
}

// serve serves an instance's metadata to callers that many hops away.
func serve(t *testing.T, i *acs.PintleInstance, hops int) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		New(func() *acs.PintleInstance { return i }, slog.New(slog.DiscardHandler)).Serve(ctx, l, hops)
		close(ended)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return "http://" + l.Addr().String()
}

// ask makes a request, and returns the status and the body.
func ask(t *testing.T, method, url string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// TestSDK reads everything as programs do, with the SDK's own client of version 2.
func TestSDK(t *testing.T) {
	i := instance()
	i.TokensRequired = true
	c := client.New(client.Options{Endpoint: serve(t, i, 2)})
	ctx := t.Context()
	region, err := c.GetRegion(ctx, nil)
	if err != nil || region.Region != "us-east-1" {
		t.Errorf("region %+v, %v", region, err)
	}
	doc, err := c.GetInstanceIdentityDocument(ctx, nil)
	if err != nil || doc.InstanceID != "i-1" || doc.AvailabilityZone != "us-east-1b" || doc.PrivateIP != "172.31.0.4" ||
		!doc.PendingTime.Equal(i.LaunchedAt) || doc.AccountID != "000000000000" {
		t.Errorf("document %+v, %v", doc, err)
	}
	info, err := c.GetIAMInfo(ctx, nil)
	if err != nil || info.InstanceProfileArn != i.Profile.Arn || info.InstanceProfileID != "AIPA1" {
		t.Errorf("IAM info %+v, %v", info, err)
	}
	data, err := c.GetUserData(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(data.Content); string(b) != "#!/bin/bash\n" {
		t.Errorf("user data %q", b)
	}
	var got aws.Credentials
	if got, err = ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = c }).Retrieve(ctx); err != nil ||
		got.AccessKeyID != "ASIA1" || got.SecretAccessKey != "secret" || got.SessionToken != "token" {
		t.Errorf("credentials %+v, %v", got, err)
	}
}

func TestPaths(t *testing.T) {
	i := instance()
	i.Tags = map[string]string{"Name": "one"}
	url := serve(t, i, 2)
	for path, want := range map[string]string{
		"/":                                           "latest",
		"/latest/":                                    "dynamic/\nmeta-data/\nuser-data",
		"/latest/meta-data/instance-id":               "i-1",
		"/2021-07-15/meta-data/instance-id":           "i-1",
		"/latest/meta-data/placement/":                "availability-zone\nregion",
		"/latest/meta-data/placement/region":          "us-east-1",
		"/latest/meta-data/local-ipv4":                "172.31.0.4",
		"/latest/meta-data/hostname":                  "ip-172-31-0-4.ec2.internal",
		"/latest/meta-data/security-groups":           "default\nweb",
		"/latest/meta-data/iam/security-credentials/": "ecsInstanceRole",
		"/latest/meta-data/tags/instance/":            "Name",
		"/latest/meta-data/tags/instance/Name":        "one",
	} {
		if status, got := ask(t, "GET", url+path); status != 200 || got != want {
			t.Errorf("%s: %d %q, want %q", path, status, got, want)
		}
	}
	for _, path := range []string{"/latest/meta-data/nothing", "/latest/meta-data/iam/security-credentials/other", "/yesterday/meta-data/"} {
		if status, _ := ask(t, "GET", url+path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

func TestTokens(t *testing.T) {
	i := instance()
	url := serve(t, i, 2)
	for _, c := range []struct {
		name   string
		header []string
		want   int
	}{
		{"a token", []string{ttlHeader, "21600"}, 200},
		{"no time to live", nil, 400},
		{"too short", []string{ttlHeader, "0"}, 400},
		{"too long", []string{ttlHeader, "21601"}, 400},
		{"no number", []string{ttlHeader, "x"}, 400},
		{"through a proxy", []string{ttlHeader, "60", "X-Forwarded-For", "192.0.2.1"}, 403},
	} {
		if status, _ := ask(t, "PUT", url+"/latest/api/token", c.header...); status != c.want {
			t.Errorf("%s: %d, want %d", c.name, status, c.want)
		}
	}
	_, token := ask(t, "PUT", url+"/latest/api/token", ttlHeader, "1")
	id := url + "/latest/meta-data/instance-id"
	if status, got := ask(t, "GET", id, tokenHeader, token); status != 200 || got != "i-1" {
		t.Errorf("with a token: %d %q", status, got)
	}
	if status, _ := ask(t, "GET", id, tokenHeader, strings.ToLower(token)); status != 401 {
		t.Errorf("with a forged one: %d", status)
	}
	if status, _ := ask(t, "GET", serve(t, i, 2)+"/latest/meta-data/instance-id", tokenHeader, token); status != 401 {
		t.Errorf("with another instance's: %d", status)
	}
	time.Sleep(2100 * time.Millisecond) // the token's time is in whole seconds
	if status, _ := ask(t, "GET", id, tokenHeader, token); status != 401 {
		t.Errorf("with one that has ended: %d", status)
	}
}

func TestOptions(t *testing.T) {
	required, disabled, far := instance(), instance(), instance()
	required.TokensRequired = true
	disabled.Disabled = true
	far.HopLimit = 1
	const id = "/latest/meta-data/instance-id"
	for _, c := range []struct {
		name string
		i    *acs.PintleInstance
		want int
	}{{"tokens required", required, 401}, {"disabled", disabled, 403}, {"nothing told yet", nil, 503}, {"far away, version 1", far, 200}} {
		if status, _ := ask(t, "GET", serve(t, c.i, 2)+id); status != c.want {
			t.Errorf("%s: %d, want %d", c.name, status, c.want)
		}
	}
	if status, _ := ask(t, "PUT", serve(t, far, 1)+"/latest/api/token", ttlHeader, "60"); status != 200 {
		t.Errorf("near: %d", status)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "PUT", serve(t, far, 2)+"/latest/api/token", nil)
	r.Header.Set(ttlHeader, "60")
	if resp, err := http.DefaultClient.Do(r); err == nil {
		t.Errorf("a token goes further than it may: %s", resp.Status)
	}
	if status, _ := ask(t, "POST", serve(t, far, 1)+id); status != 405 {
		t.Errorf("POST: %d", status)
	}
}
