package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a headless Chromium that looks at a control plane's console.
type browser struct {
	*Pintle
	endpoint string
	ctx      context.Context

	mu       sync.Mutex
	problems []string
}

// browse starts Chromium. Whatever it complains of, or asks somebody else for, fails the test at its end.
func browse(t *testing.T, p *Pintle) *browser {
	t.Helper()
	b := &browser{Pintle: p}
	for _, e := range p.Env() {
		if url, ok := strings.CutPrefix(e, "AWS_ENDPOINT_URL="); ok {
			b.endpoint = url
		}
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 800))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	b.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	chromedp.ListenTarget(b.ctx, b.hear)
	if err := chromedp.Run(b.ctx, network.Enable(), log.Enable(), runtime.Enable()); err != nil {
		t.Fatalf("this test needs Chromium (Debian's package chromium): %v", err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, problem := range b.problems {
			t.Error(problem)
		}
	})
	return b
}

func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "the script failed: "+e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			b.problems = append(b.problems, "the browser's console: "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.endpoint+"/console/") {
			b.problems = append(b.problems, "a request for "+e.Request.URL)
		}
	}
}

// do does something in the page.
func (b *browser) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var page string
		chromedp.Run(b.ctx, chromedp.Text("body", &page)) //nolint:errcheck // the test has failed
		b.t.Fatalf("%s: %v\n%s", what, err, page)
	}
}

// open opens a page and waits until it's live.
func (b *browser) open(path string) {
	b.t.Helper()
	b.do("open "+path, chromedp.Navigate(b.endpoint+"/console/"+path))
	b.sees(path+" is kept up to date", `document.getElementById('link').textContent === 'live'`)
}

// sees waits until an expression of JavaScript is true, and does something before each look.
func (b *browser) sees(what, expression string, before ...chromedp.Action) {
	b.t.Helper()
	defer func() {
		if b.t.Failed() {
			var page string
			chromedp.Run(b.ctx, chromedp.Text("body", &page)) //nolint:errcheck // the test has failed
			b.t.Log(page)
		}
	}()
	Eventually(b.t, what, func() bool {
		var is bool
		err := chromedp.Run(b.ctx, append(slices.Clone(before), chromedp.Evaluate(expression, &is))...) // it fails while another page is coming
		return err == nil && is
	})
}

// TestConsole: an operator sees what changes as it changes, and does what is to be done.
func TestConsole(t *testing.T) {
	t.Parallel()
	p := Up(t, "p3.16xlarge=1")
	b := browse(t, p)
	b.open("")
	b.sees("the node with its GPUs", `document.querySelectorAll('.node i.free').length === 8`)
	definition := `{"name":"main","image":"busybox","memory":64,"command":["sh","-c","while true; do echo '<b id=evil>line</b>'; sleep 0.3; done"],` +
		`"resourceRequirements":[{"type":"GPU","value":"1"}],"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"/talk",` +
		`"awslogs-create-group":"true","awslogs-stream-prefix":"s","awslogs-region":"us-east-1"}}}`
	p.AWS("ecs", "register-task-definition", "--family", "talk", "--container-definitions", "["+definition+"]")
	p.AWS("ecs", "create-service", "--service-name", "talk", "--task-definition", "talk", "--desired-count", "1", "--enable-execute-command")
	b.sees("a GPU that is held", `document.querySelectorAll('.node i.held').length === 1`)
	b.scales()
	task := b.aTask()
	axe := loadAxe(t)
	b.followsLogs(task)
	b.types(task, axe)
	b.uploads()
	b.redrives()
	b.plots()
	b.replays(p)
	p.AWS("cloudformation", "create-stack", "--stack-name", "one", "--template-body", `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}},"Outputs":{"U":{"Value":{"Ref":"Q"}}}}`)
	for _, path := range []string{
		"", "?by=owner", b.aNode(), "tasks", "tasks/default/" + task, "services", "services/default/talk", "logs", "log?group=/talk&stream=s/main/" + task,
		"scaling", "scaling/services/default/talk", "scaling/services/default/talk/replay", "money", "queues", "queues/dead", "queues/work", "buckets", "buckets/data", "stacks", "stacks/one",
	} {
		b.open(path)
		b.isAccessible(path, axe)
		b.do("a phone", chromedp.EmulateViewport(375, 667))
		b.sees("nothing beside a phone's screen: "+path, `document.documentElement.scrollWidth <= 375`)
		b.do("a desk", chromedp.EmulateViewport(1280, 800))
	}
	b.screenshot()
	Eventually(t, "pintle cost to know of the machine, which is counted every ten seconds", func() bool {
		cost, err := p.Command(bin(t, "pintle"), "cost").Output()
		return err == nil && strings.Contains(string(cost), "p3.16xlarge") && strings.Contains(string(cost), "counted since")
	})
}

// TestConsoleOnAPhone: one logs in by the keyboard, sees lists no wider than the screen, and logs out.
func TestConsoleOnAPhone(t *testing.T) {
	t.Parallel()
	b := browse(t, UpSigned(t, "p3.16xlarge=1"))
	b.do("a phone", chromedp.EmulateViewport(375, 667))
	b.do("open", chromedp.Navigate(b.endpoint+"/console/login?next=/console/tasks"), chromedp.WaitReady("form.login"))
	b.isAccessible("login", loadAxe(t))
	b.do("log in", chromedp.Focus("input[name=id]"), chromedp.SendKeys("input[name=id]", "AKID\t"), chromedp.KeyEvent("secret\r"))
	b.sees("the page that was asked for", `location.pathname === '/console/tasks'`)
	for _, path := range []string{"", "tasks", "services", "logs", "queues", "buckets", "stacks"} {
		b.open(path)
		b.sees("nothing beside the screen", `document.documentElement.scrollWidth <= 375`)
	}
	b.do("log out", chromedp.Click(`form.who button`))
	b.sees("the form to log in", `location.pathname === '/console/login'`)
}

// TestConsoleReadOnly: one looks at everything, with the keyboard alone, searches a log and saves it; no page has anything to do.
func TestConsoleReadOnly(t *testing.T) {
	t.Parallel()
	p := Up(t, "p3.16xlarge=1", "--console", "read-only")
	b := browse(t, p)
	task := p.runForExec(sleeper, "--enable-execute-command")
	p.AWS("sqs", "create-queue", "--queue-name", "work")
	p.AWS("s3", "mb", "s3://data")
	p.AWS("logs", "create-log-group", "--log-group-name", "g")
	p.AWS("logs", "create-log-stream", "--log-group-name", "g", "--log-stream-name", "s")
	p.AWS("logs", "put-log-events", "--log-group-name", "g", "--log-stream-name", "s", "--log-events",
		fmt.Sprintf(`[{"timestamp":%d,"message":"a Needle"},{"timestamp":%[1]d,"message":"hay"}]`, time.Now().UnixMilli()))
	for _, path := range []string{"", b.aNode(), "tasks", "tasks/default/" + task, "services", "queues/work", "buckets/data", "log?group=g&stream=s"} {
		b.open(path)
		b.sees("nothing to do at "+path, `document.querySelectorAll('form[method=post]').length === 0`)
	}
	b.do("search", chromedp.SendKeys("input[name=q]", "needle\r"))
	b.sees("what was searched for", `location.search.includes('q=needle') && document.getElementById('lines').textContent.includes('a Needle') &&
		!document.getElementById('lines').textContent.includes('hay')`)
	var saved string
	b.do("download", chromedp.Evaluate(`fetch([...document.links].find((a) => a.textContent === 'Download all').href)
		.then((r) => r.text().then((text) => r.headers.get('Content-Disposition') + text))`, &saved,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if !strings.HasPrefix(saved, "attachment") || !strings.Contains(saved, " a Needle\n") || !strings.Contains(saved, " hay\n") {
		t.Errorf("the download is %q", saved)
	}
	b.open("")
	b.sees("the node by the keyboard", `document.activeElement.closest('.node') !== null`, chromedp.KeyEvent("\t"))
	b.sees("its GPUs", `!document.getElementById('tip').hidden && document.getElementById('tip').textContent.includes('GPU-')`)
	b.do("enter", chromedp.KeyEvent("\r"))
	b.sees("the node's page", `location.pathname.startsWith('/console/nodes/default/')`)
}

// scales scales the service by its form.
func (b *browser) scales() {
	b.open("services/default/talk")
	b.do("scale", chromedp.Evaluate(`{
		const form = document.querySelector('form[action$="scale-service"]');
		form.parentElement.open = true;
		form.elements.count.value = 2;
		form.querySelector('button').click();
	}`, nil))
	b.sees("two running tasks", `[...document.querySelectorAll('#tasks .badge')].filter((badge) => badge.textContent === 'RUNNING').length === 2`)
}

// followsLogs sees lines come, as text.
func (b *browser) followsLogs(task string) {
	b.open("log?group=/talk&stream=s/main/" + task)
	b.sees("lines", `document.querySelectorAll('#lines > div').length > 0`)
	b.do("count the lines", chromedp.Evaluate(`window.before = document.querySelectorAll('#lines > div').length`, nil))
	b.sees("more lines", `document.querySelectorAll('#lines > div').length > window.before && !document.getElementById('evil')`)
	b.sees("more than a low window's worth of lines", `document.querySelectorAll('#lines > div').length > 25`)
	b.do("a low window", chromedp.EmulateViewport(1280, 300))
	b.open("log?group=/talk&stream=s/main/" + task)
	b.sees("the newest lines", `{
		const lines = document.getElementById('lines');
		lines.scrollHeight > lines.clientHeight + 40 && lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
	}`)
	b.do("a desk", chromedp.EmulateViewport(1280, 800))
}

func (b *browser) aTask() string {
	arn := strings.TrimSpace(b.AWS("ecs", "list-tasks", "--query", "taskArns[0]", "--output", "text"))
	return arn[strings.LastIndexByte(arn, '/')+1:]
}

func (b *browser) aNode() string {
	arn := strings.TrimSpace(b.AWS("ecs", "list-container-instances", "--query", "containerInstanceArns[0]", "--output", "text"))
	return "nodes/default/" + arn[strings.LastIndexByte(arn, '/')+1:]
}

// types types into a shell, on a phone at the end.
func (b *browser) types(task, axe string) {
	b.open("tasks/default/" + task)
	b.do("open a shell", chromedp.Evaluate(`document.querySelector('form[action$="open-shell"] button').click()`, nil))
	b.do("type", chromedp.WaitReady("#terminal"), chromedp.Focus("#terminal"), chromedp.SendKeys("#terminal", "ls /; echo $((6*7))\r"))
	b.sees("what ls prints", `document.getElementById('terminal').textContent.includes('etc') && document.getElementById('terminal').textContent.includes('42')`)
	b.sees("where the shell is", `document.title.includes('main of task `+task+`')`)
	b.isAccessible("shell", axe)
	width := `document.querySelector('#terminal > div').textContent.length`
	b.sees("a wide terminal", width+` > 120`)
	b.do("a phone", chromedp.EmulateViewport(375, 667))
	b.sees("a narrow terminal", width+` < 60 && document.documentElement.scrollWidth <= 375`)
	b.do("ask for the size", chromedp.SendKeys("#terminal", "clear; stty size\r"))
	b.sees("the size", `document.getElementById('terminal').textContent.includes(document.querySelectorAll('#terminal > div').length + ' ' + `+width+`)`)
	b.do("a desk", chromedp.EmulateViewport(1280, 800))
	b.do("leave", chromedp.SendKeys("#terminal", "exit\r"))
	b.sees("its end", `document.getElementById('ended').textContent.includes('ended')`)
}

// uploads uploads a file whose name would be a page.
func (b *browser) uploads() {
	b.AWS("s3", "mb", "s3://data")
	file := filepath.Join(b.t.TempDir(), "<b>x.txt")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.open("buckets/data")
	b.do("upload", chromedp.SetUploadFiles(`input[type=file]`, []string{file}), chromedp.Click(`main form button`))
	b.sees("the object", `document.getElementById('objects')?.textContent.includes('<b>x.txt')`)
}

// redrives sends a dead letter back.
func (b *browser) redrives() {
	b.AWS("sqs", "create-queue", "--queue-name", "dead")
	b.AWS("sqs", "create-queue", "--queue-name", "work", "--attributes",
		`{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead\",\"maxReceiveCount\":\"1\"}"}`)
	work := b.endpoint + "/000000000000/work"
	b.AWS("sqs", "send-message", "--queue-url", work, "--message-body", "x")
	for range 2 {
		b.AWS("sqs", "receive-message", "--queue-url", work, "--visibility-timeout", "0")
	}
	b.open("queues/dead")
	b.do("redrive", chromedp.Evaluate(`document.querySelector('form[action$="redrive"] button').click()`, nil))
	b.sees("the end of the redrive", `document.getElementById('moves')?.textContent.includes('COMPLETED')`)
}

// plots sees what waits in a queue as a line, and the same in a table.
func (b *browser) plots() {
	b.open("queues/work")
	b.sees("the line of messages", `document.querySelector('#over path.line')?.getTotalLength() > 0 && document.querySelectorAll('#over td').length > 10`)
}

// replays sees an hour of four tasks at their policy's target with twice that target.
func (b *browser) replays(p *Pintle) {
	target := []string{"--service-namespace", "ecs", "--scalable-dimension", "ecs:service:DesiredCount", "--resource-id", "service/default/talk"}
	p.AWS(append([]string{"application-autoscaling", "register-scalable-target", "--min-capacity", "2", "--max-capacity", "8"}, target...)...)
	p.AWS(append([]string{
		"application-autoscaling", "put-scaling-policy", "--policy-name", "load", "--policy-type", "TargetTrackingScaling", "--target-tracking-scaling-policy-configuration",
		`{"TargetValue":50,"CustomizedMetricSpecification":{"Namespace":"app","MetricName":"Load","Statistic":"Average"}}`,
	}, target...)...)
	var load, tasks []string
	for n := range 62 {
		at := time.Now().Add(-time.Duration(n) * time.Minute).UTC().Format(time.RFC3339)
		load = append(load, fmt.Sprintf(`{"MetricName":"Load","Timestamp":%q,"Value":50}`, at))
		tasks = append(tasks, fmt.Sprintf(`{"MetricName":"RunningTaskCount","Timestamp":%q,"Value":4,"Dimensions":[{"Name":"ClusterName","Value":"default"},{"Name":"ServiceName","Value":"talk"}]}`, at))
	}
	p.AWS("cloudwatch", "put-metric-data", "--namespace", "app", "--metric-data", "["+strings.Join(load, ",")+"]")
	p.AWS("cloudwatch", "put-metric-data", "--namespace", "ECS/ContainerInsights", "--metric-data", "["+strings.Join(tasks, ",")+"]")
	b.open("scaling/services/default/talk/replay?target=100")
	b.sees("two tasks instead of four", `document.querySelector('#replay figcaption').textContent.includes('as it was: 4replayed: 2')`)
}

// axePackage checks pages for what keeps people with disabilities out.
const axePackage = "axe-core@4.10.3"

func loadAxe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(installFromNPM(t, axePackage), "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// isAccessible checks the page that is open, in light colours and in dark ones.
func (b *browser) isAccessible(path, axe string) {
	b.t.Helper()
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	check := func(colours, rules string) {
		b.t.Helper()
		var violations string
		b.do("check "+path, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: colours}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}), chromedp.Evaluate(`axe.run({resultTypes: ['violations'], preload: false`+rules+`}).then(({violations, passes}) => passes.length === 0 ? 'nothing was checked' :
			violations.filter(({impact}) => impact === 'serious' || impact === 'critical')
				.map(({id, nodes}) => id + ': ' + nodes.slice(0, 3).map(({html, failureSummary}) => html + ' ' + failureSummary).join('\n')).join('\n'))`, &violations, wait))
		if violations != "" {
			b.t.Errorf("/console/%s in %s colours: %s", path, colours, violations)
		}
	}
	b.do("load axe", chromedp.Evaluate(axe, nil), chromedp.Evaluate(`document.querySelectorAll('details').forEach((closed) => { closed.open = true; })`, nil))
	check("light", "")
	check("dark", ", runOnly: ['color-contrast']")
}

// screenshot keeps a picture of the cluster outside the repository.
func (b *browser) screenshot() {
	b.open("")
	var png []byte
	b.do("screenshot", chromedp.CaptureScreenshot(&png))
	cache, err := os.UserCacheDir()
	if err == nil {
		err = os.MkdirAll(filepath.Join(cache, "pintle"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(cache, "pintle", "console.png"), png, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
