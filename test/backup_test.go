package test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// writer sends messages to a queue, one after the other, until it's stopped.
type writer struct {
	mu   sync.Mutex
	sent []string // what was acknowledged
	err  error
	stop chan struct{}
	done chan struct{}
}

func (c stores) write(t *testing.T, queue string) *writer {
	w := &writer{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for i := 0; ; i++ {
			select {
			case <-w.stop:
				return
			default:
			}
			body := fmt.Sprint("written ", i)
			_, err := c.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body})
			w.mu.Lock()
			if w.err = err; err == nil {
				w.sent = append(w.sent, body)
			}
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return w
}

func (w *writer) acknowledged() (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent), w.err
}

func (w *writer) end(t *testing.T) []string {
	t.Helper()
	close(w.stop)
	<-w.done
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.sent
}

// says is what calls answer of what nodes don't change.
func (p *Pintle) says() map[string]string {
	p.t.Helper()
	out := map[string]string{
		"describe-stacks":          p.AWS("cloudformation", "describe-stacks"),
		"describe-stack-resources": p.AWS("cloudformation", "describe-stack-resources", "--stack-name", "jobs"),
		"list-roles":               p.AWS("iam", "list-roles"),
	}
	const ecs = "AmazonEC2ContainerServiceV20141113."
	for target, body := range map[string]string{
		ecs + "DescribeServices":                    `{"services":["web"]}`,
		ecs + "DescribeTaskDefinition":              `{"taskDefinition":"web"}`,
		ecs + "ListTasks":                           `{"family":"web"}`,
		ecs + "ListTaskDefinitions":                 `{}`,
		"AmazonSQS.ListQueues":                      `{}`,
		"Logs_20140328.DescribeLogGroups":           `{}`,
		"AmazonSSM.GetParameter":                    `{"Name":"one","WithDecryption":true}`,
		"secretsmanager.ListSecretVersionIds":       `{"SecretId":"two"}`,
		"Logs_20140328.DescribeLogStreams":          `{"logGroupName":"group"}`,
		"GraniteServiceVersion20100801.ListMetrics": `{"Namespace":"Test"}`,
	} {
		out[target] = p.post(target, body)
	}
	return out
}

// post has a call succeed, and returns its answer.
func (p *Pintle) post(target, body string) string {
	p.t.Helper()
	status, answer, err := p.Post(target, body)
	if err != nil || status != http.StatusOK {
		p.t.Fatalf("%s: %d %s %v", target, status, answer, err)
	}
	return answer
}

// TestBackupAndRestore: a backup of a control plane at work, restored elsewhere, is what it was: all calls say the same, every object has its
// bytes, and the queue has what was acknowledged before the backup, and of what followed all until one moment. A damaged archive is refused.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	began := time.Now().Truncate(time.Minute)
	p := Up(t, "c5.large", "--settle", "1s")
	c := storesAt(p.Endpoint)
	want := c.fill(t, began)
	p.furnish()
	before := p.says()
	w := c.write(t, p.Endpoint+"/000000000000/queue")
	sent := func(at int) func() bool {
		return func() bool {
			n, err := w.acknowledged()
			if err != nil {
				t.Fatal(err)
			}
			return n >= at
		}
	}
	Eventually(t, "the writer writes", sent(10))
	first, _ := w.acknowledged() //nolint:errcheck // end says it
	archive := filepath.Join(t.TempDir(), "a.tar")
	p.verb(0, "backup", archive)
	last, _ := w.acknowledged() //nolint:errcheck // end says it
	Eventually(t, "the writer goes on", sent(last+1))
	all := w.end(t)
	p.Interrupt()

	refuseDamaged(t, p, archive)
	restored := filepath.Join(t.TempDir(), "new")
	if out := p.verb(0, "restore", "--data", restored, archive); !strings.Contains(out, restored+" is as it was at ") {
		t.Errorf("it says %s", out)
	}
	address := strings.TrimPrefix(p.Endpoint, "http://")
	d := &daemon{t: t, args: []string{"serve", "--listen", address, "--data", restored, "--settle", "1s"}}
	d.start()
	defer d.kill()
	Eventually(t, "the start", func() bool { return isUp(address) })
	for call, said := range p.says() {
		if said != before[call] {
			t.Errorf("%s said\n%s\nand says\n%s", call, before[call], said)
		}
	}
	got, failed := c.read(t.Context(), began)
	if len(failed) > 0 {
		t.Error(failed)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%.60s was %s and is %q", name, value, got[name])
		}
	}
	checkWritten(t, all, first, got)
}

// checkWritten: of the messages that a writer sent one after the other, the first are there, once, and none after one that isn't. At least those
// are there that were acknowledged before the backup.
func checkWritten(t *testing.T, sent []string, before int, got kept) {
	t.Helper()
	there := 0
	for there < len(sent) && got["sqs/queue/"+sent[there]] == "1" {
		there++
	}
	if there < before {
		t.Errorf("%s is missing, which is one of the %d that were acknowledged before the backup", sent[there], before)
	}
	for _, body := range sent[there:] {
		if got["sqs/queue/"+body] != "" {
			t.Errorf("%s is there, and not %s", body, sent[there])
		}
	}
}

// furnish makes a service with a running task, and a stack.
func (p *Pintle) furnish() {
	p.t.Helper()
	p.AWS("iam", "create-role", "--role-name", "reader", "--assume-role-policy-document",
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"}}`)
	p.post("AmazonSSM.PutParameter", `{"Name":"one","Value":"hidden","Type":"SecureString"}`)
	p.post("secretsmanager.CreateSecret", `{"Name":"two","SecretString":"hush","ClientRequestToken":"00000000-0000-0000-0000-000000000001"}`)
	const ecs = "AmazonEC2ContainerServiceV20141113."
	p.post(ecs+"RegisterTaskDefinition", `{"family":"web","containerDefinitions":[{"name":"main","image":"none","command":["sleep","600"],"memory":64}]}`)
	p.post(ecs+"CreateService", `{"serviceName":"web","taskDefinition":"web","desiredCount":1}`)
	template := filepath.Join(p.t.TempDir(), "jobs.yml")
	const text = "Resources: {Jobs: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 40}}, Log: {Type: AWS::Logs::LogGroup}}\n"
	if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.verb(0, "stack", "up", template)
	Eventually(p.t, "the service is steady", func() bool {
		said := p.post(ecs+"DescribeServices", `{"services":["web"]}`)
		return strings.Contains(said, `"rolloutState":"COMPLETED"`) && strings.Contains(said, "has reached a steady state")
	})
}

// verb runs a verb, which is to end with that code, and returns what it prints.
func (p *Pintle) verb(code int, args ...string) string {
	p.t.Helper()
	cmd := p.Command(bin(p.t, "pintle"), args...)
	out, _ := cmd.CombinedOutput() //nolint:errcheck // the exit code says more
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("pintle %v exits with %d: %s", args, got, out)
	}
	return string(out)
}

// refuseDamaged: of an archive that was changed or cut off nothing is restored.
func refuseDamaged(t *testing.T, p *Pintle, archive string) {
	t.Helper()
	whole, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 1
	for _, b := range [][]byte{changed, whole[:len(whole)/2]} {
		damaged, into := filepath.Join(t.TempDir(), "damaged.tar"), filepath.Join(t.TempDir(), "new")
		if err := os.WriteFile(damaged, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"--check"}, {"--data", into}} {
			if out := p.verb(1, append(append([]string{"restore"}, args...), damaged)...); !strings.Contains(out, "damaged") {
				t.Errorf("restore %v says %s", args, out)
			}
		}
		if _, err := os.Stat(filepath.Join(into, "state.db")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("something is in place: %v", err)
		}
	}
}
