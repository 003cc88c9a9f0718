package plane

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// visitor is a browser of a control plane's console.
type visitor struct {
	t       *testing.T
	plane   *Plane
	host    string // that it asks for, if it's another than the control plane's
	accepts string
	cookie  string
	set     string // the last cookie as it was set
	token   string
}

// get asks for a path and returns the answer.
func (v *visitor) get(path string) (status int, where, body string) {
	v.t.Helper()
	return v.send(http.MethodGet, path, nil)
}

// post sends a form with the session's token.
func (v *visitor) post(path string, form url.Values) (status int, where, body string) {
	v.t.Helper()
	form.Set("token", v.token)
	return v.send(http.MethodPost, path, form)
}

func (v *visitor) send(method, path string, form url.Values) (status int, where, body string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.plane.Endpoint()+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Host = v.host
	r.Header.Set("Accept-Language", "en")
	r.Header.Set("Accept", v.accepts)
	r.Header.Set("Cookie", v.cookie)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.plane.Endpoint())
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}
	if v.plane.options.TLS.Auto {
		authority, err := os.ReadFile(Authority(v.plane.options.Data))
		if err != nil || !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(authority) {
			v.t.Fatal(err)
		}
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // a test
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if set := answer.Header.Get("Set-Cookie"); set != "" {
		v.set = set
		v.cookie, _, _ = strings.Cut(set, ";")
	}
	if _, rest, ok := strings.Cut(string(b), `name="token" content="`); ok {
		v.token, _, _ = strings.Cut(rest, `"`)
	}
	return answer.StatusCode, answer.Header.Get("Location"), string(b)
}

// newUser makes a user with one inline policy and returns its access key.
func newUser(t *testing.T, p *Plane, name, statements string) (id, secret string) {
	t.Helper()
	if _, err := p.IAM.CreateUser(t.Context(), &iam.CreateUserInput{UserName: &name}); err != nil {
		t.Fatal(err)
	}
	_, err := p.IAM.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: &name, PolicyName: aws.String("p"), PolicyDocument: aws.String(
		`{"Version": "2012-10-17", "Statement": [` + statements + `]}`)})
	if err != nil {
		t.Fatal(err)
	}
	key, err := p.IAM.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &name})
	if err != nil {
		t.Fatal(err)
	}
	return *key.AccessKey.AccessKeyId, *key.AccessKey.SecretAccessKey
}

const queueARNs = "arn:aws:sqs:us-east-1:000000000000:"

// putDeadLetterQueues makes two queues, mine-work and other-work, with a queue for the dead letters of each.
func putDeadLetterQueues(t *testing.T, p *Plane) {
	t.Helper()
	for _, prefix := range []string{"mine", "other"} {
		dead, work := prefix+"-dead", prefix+"-work"
		if _, err := p.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &dead}); err != nil {
			t.Fatal(err)
		}
		_, err := p.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &work, Attributes: map[string]string{
			"RedrivePolicy": `{"deadLetterTargetArn":"` + queueARNs + dead + `","maxReceiveCount":"1"}`,
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// visit returns a visitor who has logged in.
func visit(t *testing.T, p *Plane, id, secret string) *visitor {
	t.Helper()
	v := &visitor{t: t, plane: p}
	status, where, body := v.post("/console/login", url.Values{"id": {id}, "secret": {secret}, "next": {"/console/queues"}})
	if status != http.StatusSeeOther || where != "/console/queues" {
		t.Fatalf("logging in got %d, %s: %s", status, where, body)
	}
	return v
}

// TestConsoleOfAUser: a user's policies bind what it sees and does in the console, and know from where and how it came.
func TestConsoleOfAUser(t *testing.T) {
	p := serve(t, Options{AccessKeyID: "AKID", SecretAccessKey: "secret", TLS: TLSOptions{Auto: true}})
	putDeadLetterQueues(t, p)
	policy := func(from string) string {
		return `{"Effect": "Allow", "Action": "sqs:ListQueues", "Resource": "*"},
			{"Effect": "Allow", "Action": "sqs:*", "Resource": "` + queueARNs + `mine-*",
			"Condition": {"IpAddress": {"aws:SourceIp": "` + from + `"}, "Bool": {"aws:SecureTransport": "true"}}}`
	}
	id, secret := newUser(t, p, "ann", policy("127.0.0.0/8"))
	ann := visit(t, p, id, secret)
	if !strings.HasPrefix(ann.set, "__Host-") || !strings.Contains(ann.set, "; Secure") || !strings.Contains(ann.set, "; HttpOnly") {
		t.Errorf("over TLS the cookie is %s", ann.set)
	}
	if status, _, body := ann.get("/console/queues"); status != http.StatusOK || !strings.Contains(body, "mine-dead") || strings.Contains(body, "other-dead") {
		t.Errorf("ann's queues: %d %s", status, body)
	}
	for _, path := range []string{"/console/", "/console/tasks", "/console/buckets", "/console/queues/other-dead"} {
		if status, _, body := ann.get(path); status != http.StatusForbidden || !strings.Contains(body, "user/ann is not authorized") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	redrive := func(v *visitor, name string, want int) {
		t.Helper()
		if status, _, body := v.post("/console/do/redrive", url.Values{"arn": {queueARNs + name}, "queue": {name}}); status != want {
			t.Errorf("a redrive of %s: %d, want %d: %s", name, status, want, body)
		}
	}
	redrive(ann, "mine-dead", http.StatusSeeOther)
	redrive(ann, "other-dead", http.StatusForbidden)

	id, secret = newUser(t, p, "bob", policy("10.0.0.0/8"))
	bob := visit(t, p, id, secret)
	if status, _, body := bob.get("/console/queues"); status != http.StatusOK || strings.Contains(body, "mine-dead") {
		t.Errorf("bob's queues, which he may see from elsewhere: %d %s", status, body)
	}
	redrive(bob, "mine-dead", http.StatusForbidden)
}

// TestConsoleOnLoopback: browsers see the console at loopback's names alone, as they do the APIs, and are sent there from the root, where S3's clients
// have their buckets.
func TestConsoleOnLoopback(t *testing.T) {
	p := serve(t, Options{})
	const html = "text/html,application/xhtml+xml"
	for _, c := range []struct {
		host, path, accepts string
		status              int
		where               string
	}{
		{"", "/", html, http.StatusSeeOther, "/console/"},
		{"", "/console", html, http.StatusSeeOther, "/console/"},
		{"", "/console/", html, http.StatusOK, ""},
		{"", "/console/login", html, http.StatusSeeOther, "/console/"},
		{"evil.example", "/", html, http.StatusForbidden, ""},
		{"evil.example", "/console/", html, http.StatusForbidden, ""},
		{"evil.example", "/console/assets/console.js", "*/*", http.StatusForbidden, ""},
		{"page.amazonaws.com", "/console/", html, http.StatusForbidden, ""},
		{"evil.example", "/?Action=ListQueues&Version=2012-11-05", "*/*", http.StatusForbidden, ""},
	} {
		v := &visitor{t: t, plane: p, host: c.host, accepts: c.accepts}
		if status, where, body := v.get(c.path); status != c.status || where != c.where {
			t.Errorf("%s%s: %d to %q, want %d to %q: %s", c.host, c.path, status, where, c.status, c.where, body)
		}
	}
	evil := &visitor{t: t, plane: p, host: "evil.example"}
	if status, _, body := evil.post("/console/do/stop-task", url.Values{}); status != http.StatusForbidden || !strings.Contains(body, "answers browsers only") {
		t.Errorf("an action at another host: %d %s", status, body)
	}
	putBuckets(t, s3Of(p.config("test", "test", "")))
	out, err := s3Of(p.config("test", "test", "")).ListBuckets(t.Context(), nil)
	if err != nil || len(out.Buckets) != 2 {
		t.Errorf("an SDK at the root: %v, %v", out, err)
	}
}

// TestConsoleTellsNoOthersNames: who may see one cluster alone, or nothing, isn't told what others have: not by titles, not by a task's ARN in the place
// of its id, and not on the paths of pintle gpus and pintle why.
func TestConsoleTellsNoOthersNames(t *testing.T) {
	p := serve(t, Options{AccessKeyID: "AKID", SecretAccessKey: "secret"})
	statetest.Update(t, p.State, func(tx *state.Tx) {
		tx.Clusters.Delete("arn:aws:ecs:us-east-1:000000000000:cluster/default")
	})
	for _, name := range []string{"a-secret", "mine"} {
		if _, err := p.ECS.CreateCluster(t.Context(), &awsecs.CreateClusterInput{ClusterName: &name}); err != nil {
			t.Fatal(err)
		}
		statetest.Update(t, p.State, func(tx *state.Tx) {
			instance := "arn:aws:ecs:us-east-1:000000000000:container-instance/" + name + "/1"
			tx.ContainerInstances.Put(&state.ContainerInstance{
				ContainerInstance: types.ContainerInstance{ContainerInstanceArn: &instance, Status: aws.String("ACTIVE")},
				ClusterArn:        "arn:aws:ecs:us-east-1:000000000000:cluster/" + name,
				GPUs:              []state.GPU{{ID: "GPU-of-" + name}},
			})
			tx.Tasks.Put(&state.Task{Task: types.Task{
				TaskArn:       aws.String("arn:aws:ecs:us-east-1:000000000000:task/" + name + "/0123456789abcdef0123456789abcdef"),
				ClusterArn:    aws.String("arn:aws:ecs:us-east-1:000000000000:cluster/" + name),
				LastStatus:    aws.String("PENDING"),
				DesiredStatus: aws.String("RUNNING"),
				StartedBy:     aws.String("by-" + name),
			}})
		})
	}
	const read = `"ecs:DescribeTasks", "ecs:ListTasks", "ecs:ListContainerInstances"`
	mine, mineSecret := newUser(t, p, "ann", `{"Effect": "Allow", "Action": [`+read+`], "Resource": "*",
		"Condition": {"ArnEquals": {"ecs:cluster": "arn:aws:ecs:us-east-1:000000000000:cluster/mine"}}}`)
	none, noneSecret := newUser(t, p, "bob", `{"Effect": "Allow", "Action": "sqs:ListQueues", "Resource": "*"}`)
	ann, bob := visit(t, p, mine, mineSecret), visit(t, p, none, noneSecret)
	if status, _, body := ann.get("/console/tasks/mine/0123456789abcdef0123456789abcdef"); status != http.StatusOK || !strings.Contains(body, "by-mine") {
		t.Errorf("ann's own task: %d %s", status, body)
	}
	for _, path := range []string{"/console/", "/console/tasks", "/console/services", "/console/tasks?cluster=mine",
		"/console/tasks/mine/" + url.PathEscape("arn:aws:ecs:us-east-1:000000000000:task/a-secret/0123456789abcdef0123456789abcdef")} {
		for _, v := range []*visitor{ann, bob} {
			if _, _, body := v.get(path); strings.Contains(body, "a-secret</h1>") || strings.Contains(body, "by-a-secret") || strings.Contains(body, ">a-secret") {
				t.Errorf("%s tells of another's cluster: %s", path, body)
			}
		}
	}
	if got := p.pintle(t, mine, mineSecret, "gpus", ""); !strings.Contains(got, "GPU-of-mine") || strings.Contains(got, "GPU-of-a-secret") {
		t.Errorf("ann's GPUs: %s", got)
	}
	if got := p.pintle(t, none, noneSecret, "gpus", ""); strings.Contains(got, "GPU-of") {
		t.Errorf("bob's GPUs: %s", got)
	}
	if got := p.pintle(t, mine, mineSecret, "why", `{"Cluster": "mine", "Name": "0123456789abcdef0123456789abcdef"}`); !strings.Contains(got, "PENDING") {
		t.Errorf("why ann's task waits: %s", got)
	}
	if got := p.pintle(t, mine, mineSecret, "why", `{"Cluster": "a-secret", "Name": "0123456789abcdef0123456789abcdef"}`); !strings.Contains(got, "not authorized") {
		t.Errorf("why another's task waits: %s", got)
	}
}

// pintle calls one of Pintle's own paths with a key.
func (p *Plane) pintle(t *testing.T, id, secret, name, body string) string {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, p.Endpoint()+"/pintle/"+name, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	sum := sha256.Sum256([]byte(body))
	key := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(sum[:]), "pintle", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // a test
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestObjectsArentTheConsoles: a page in a bucket has no rights of the origin that it shares with the console, also one behind a presigned URL at
// the console's own path. SDKs are told nothing of that.
func TestObjectsArentTheConsoles(t *testing.T) {
	p := serve(t, Options{AccessKeyID: "AKID", SecretAccessKey: "secret"})
	client := s3Of(p.config("AKID", "secret", ""))
	put := func(bucket, kind string) string {
		t.Helper()
		client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}) //nolint:errcheck // it's there the second time
		key := aws.String(path.Base(kind) + strconv.Itoa(len(kind)))
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: key, Body: strings.NewReader("<script>"), ContentType: &kind})
		if err != nil {
			t.Fatal(err)
		}
		url, err := s3.NewPresignClient(client).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		return url.URL
	}
	for _, c := range []struct {
		url, language, want string
	}{
		{put("data", "text/html"), "en", "sandbox allow-scripts"},
		{put("console", "text/html"), "en", "sandbox allow-scripts"},
		{put("data", "image/svg+xml"), "en", "sandbox allow-scripts"},
		{put("data", "application/pdf"), "en", ""},
		{put("data", "application/pdf,text/html"), "en", "sandbox allow-scripts"}, // the last of a list is what browsers take
		{put("data", "application/pdf; a=b, text/html"), "en", "sandbox allow-scripts"},
		{put("data", "text/html"), "", ""},
		{p.Endpoint() + "/data/html9", "en", "sandbox"}, // refused
		{p.Endpoint() + "/console/login", "en", "default-src 'none'"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.language != "" {
			r.Header.Set("Accept-Language", c.language)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close() //nolint:errcheck // a test
		got := answer.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || strings.Contains(got, "allow-same-origin") {
			t.Errorf("%s has the policy %q, want %q", c.url, got, c.want)
		}
	}
}
