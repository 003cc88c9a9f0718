package plane

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acm"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/appautoscaling/scaler"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/autoscaling/keeper"
	"github.com/pintle/pintle/internal/cloudformation"
	"github.com/pintle/pintle/internal/cloudformation/cloudcontrol"
	"github.com/pintle/pintle/internal/cloudformation/requests"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/cloudwatch/alarms"
	"github.com/pintle/pintle/internal/cloudwatch/metering"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/holders"
	"github.com/pintle/pintle/internal/ecr/registry"
	"github.com/pintle/pintle/internal/ecr/upstream"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/ecs/enrollment"
	"github.com/pintle/pintle/internal/ecs/nodelink"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/ecs/sessions"
	"github.com/pintle/pintle/internal/ecs/waiting"
	"github.com/pintle/pintle/internal/efs"
	"github.com/pintle/pintle/internal/elb"
	"github.com/pintle/pintle/internal/events"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/lambda"
	"github.com/pintle/pintle/internal/lambda/environments"
	"github.com/pintle/pintle/internal/lambda/pollers"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/logs/exports"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/s3/expiry"
	"github.com/pintle/pintle/internal/schedules"
	"github.com/pintle/pintle/internal/secretsmanager"
	"github.com/pintle/pintle/internal/servicediscovery"
	"github.com/pintle/pintle/internal/sns"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/ssm"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/connection"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/sign"
)

// Service is one of the services that make up a control plane: its API, if it has one, and its loops.
type Service struct {
	API   model.API
	Loops []func(context.Context) error // each runs until its context ends
}

// services lists all services. To add one, add a folder with an api.go that describes it, an entry here and one in wire's
// generator.
func (p *Plane) services() []Service {
	return []Service{
		{ecs.API(p.ECS), loops(p.runRollout, p.runWaiting, p.giveUpNodes, p.Link.Run)},
		{ec2.API(p.EC2), loops(p.runMachines)},
		{autoscaling.API(p.AutoScaling), loops(p.keeper.Run)},
		{appautoscaling.API(p.ApplicationAutoScaling), loops(p.Scaler.Run)},
		{cloudwatch.API(p.CloudWatch), loops(p.runAlarms, p.meter.Run, p.meterQueues)},
		{logs.API(p.Logs), loops(p.Logs.RunQueries, p.exportLogs)},
		{s3.API(p.S3), loops(p.collectObjects, p.outbox(p.objects).Run, p.expire)},
		{sqs.API(p.SQS), nil},
		{sns.API(p.SNS), nil},
		{events.API(p.Events), loops(p.Events.Run)},
		{schedules.API(p.Schedules), loops(p.Schedules.Run)},
		{ssm.API(p.SSM), nil},
		{secretsmanager.API(p.SecretsManager), nil},
		{ecr.API(p.ECR), loops(p.keepImages, p.upstream.Run)},
		{acm.API(p.ACM), nil},
		{efs.API(p.EFS), nil},
		{lambda.API(p.Lambda), loops(p.environments.Run, p.Lambda.RunQueue, p.Lambda.Collect, p.runPollers)},
		{elb.API(p.ELB), loops(p.balancers.Run, p.runBalancer)},
		{servicediscovery.API(p.CloudMap), nil},
		{iam.API(p.IAM), nil},
		{sts.API(p.STS), nil},
		{cloudformation.API(p.CloudFormation), loops(p.stacks.Run)},
		{cloudcontrol.API(p.CloudControl), loops(p.requests.Run)},
		{Loops: loops(p.Deliveries.Run, p.runSweep, p.watchDisk, p.tracer.Run)},
	}
}

// account returns the account that owns this control plane.
func (p *Plane) account() account.Account {
	return account.New(p.options.Account, p.options.Region, p.now)
}

func loops(l ...func(context.Context) error) []func(context.Context) error { return l }

// buildServices builds the services, and the loops that others call.
func (p *Plane) buildServices() {
	o := p.options
	owner := p.account()
	p.meter = metering.New(p.State, metering.Options{Now: p.now, Put: p.putMetrics, NoGPUs: o.NoGPUMetrics, Log: p.log})
	p.Link = p.newLink()
	p.enrollment = enrollment.New(p.State, enrollment.Options{Now: p.now, Secret: p.issuer.NodeSecret})
	p.sessions = sessions.New(p.State, sessions.Options{Nodes: p.Link, Admitted: connection.Release, Log: p.log})
	p.ECS = ecs.New(p.State, p.scheduler, ecs.Options{
		Account:   owner,
		Advertise: o.Advertise,
		Sessions:  p.sessions,
		Started:   p.started,
		Failed:    p.traceTask,
		NoGPU: func(cluster, definition string, constraints []ecstypes.PlacementConstraint) {
			p.environments.FreeGPUs(cluster, definition, constraints)
		},
		Services: p,
		Trusts:   func(role, service string) bool { return p.IAM.Trusts(role, service) },
		Tracer:   p.tracer,
		Log:      p.log,
	})
	p.EC2 = ec2.New(p.State, ec2.Options{Account: owner, NoFleet: p.fleet == nil, Parameters: parametersClient{p}})
	p.CloudWatch = cloudwatch.New(p.Metrics, p.State, cloudwatch.Options{Account: owner})
	p.SQS = sqs.New(p.Queues, sqs.Options{Account: owner, Endpoint: p.Endpoint()})
	p.SNS = sns.New(p.State, sns.Options{
		Account:   owner,
		Queues:    p.sqs(),
		Functions: functionsClient{p},
		QueueURL:  p.queueURL,
		Client:    p.hookClient(),
		Endpoint:  p.Endpoint(),
		Vault:     p.vault,
		Log:       p.log,
	})
	p.S3 = s3.New(p.objects, s3.Options{
		Account: owner, Queues: p.sqs(), Topics: p.sns(), Functions: functionsClient{p}, QueueURL: p.queueURL,
	})
	p.Logs = logs.New(p.streams, p.logsOptions())
	p.SecretsManager = secretsmanager.New(p.State, secretsmanager.Options{Account: owner, Vault: p.vault})
	p.SSM = ssm.New(p.State, ssm.Options{
		Account:  owner,
		Vault:    p.vault,
		Images:   p.ec2(),
		Secrets:  p.secretsManager(),
		Sessions: p.sessions,
	})
	p.IAM = iam.New(p.State, iam.Options{Account: owner, Vault: p.vault, Enforce: o.EnforceIAM})
	p.buildRegistry()
	p.ACM = acm.New(p.State, acm.Options{Account: owner, Vault: p.vault})
	p.EFS = efs.New(p.State, efs.Options{Account: owner, Root: o.FileSystems})
	p.ELB = elb.New(p.State, elb.Options{Account: owner, Buckets: p.s3()})
	p.CloudMap = servicediscovery.New(p.State, servicediscovery.Options{Account: owner})
	p.balancers = p.newBalancers()
	p.STS = sts.New(sts.Options{Account: owner, Issuer: p.issuer, Roles: p.IAM})
	p.buildEvents()
	p.buildFunctions()
	p.buildStacks()
	p.buildScaling()
	p.Deliveries = p.outbox(p.owed())
}

// buildEvents builds EventBridge and its Scheduler.
func (p *Plane) buildEvents() {
	sender := targets.New(targets.Options{
		Account:  p.account(),
		Services: p,
		QueueURL: p.queueURL,
		Trusts:   p.IAM.Trusts,
		Count:    p.meter.Count,
		Log:      p.log,
	})
	p.Events = events.New(p.State, events.Options{Account: p.account(), Targets: sender, Count: p.meter.Count, Log: p.log})
	p.Schedules = schedules.New(p.State, schedules.Options{Account: p.account(), Targets: sender, Chance: rand.Float64})
	if p.State != nil {
		p.State.Listeners.Describe = ecs.DescribeInstance
	}
}

// buildStacks builds CloudFormation and Cloud Control, and their loops.
func (p *Plane) buildStacks() {
	owner := p.account()
	p.stacks = stacks.New(p.State, stacks.Options{
		Account:      owner,
		Services:     p,
		Vault:        p.vault,
		Log:          p.log,
		Endpoint:     p.Endpoint(),
		RunsUserData: p.options.Fleet.Kind == "command",
	})
	opts := cloudformation.Options{Account: owner, Objects: p.s3(), Services: p}
	if p.verifier != nil || p.options.EnforceIAM {
		opts.Assume = func(role string) (call.Identity, error) {
			return p.IAM.ServiceSession(role, "cloudformation.amazonaws.com", "AWSCloudFormation")
		}
	}
	p.CloudFormation = cloudformation.New(p.State, p.stacks, opts)
	p.requests = requests.New(p.State, requests.Options{Account: owner, Services: p, Vault: p.vault, Log: p.log})
	p.CloudControl = cloudcontrol.New(p.State, p.requests, owner)
}

func (p *Plane) logsOptions() logs.Options {
	return logs.Options{
		Account:   p.account(),
		Outbox:    p.owed(),
		State:     p.State,
		Buckets:   p.s3(),
		Queues:    p.sqs(),
		QueueURL:  p.queueURL,
		Functions: functionsClient{p},
		Log:       p.log,
	}
}

// buildFunctions builds Lambda, and what runs its functions.
func (p *Plane) buildFunctions() {
	p.environments = environments.New(p.State, environments.Options{
		Account: p.account(),
		ECS:     p.ecs(),
		Logs:    p.logs(),
		Code:    func(sha string) (io.ReadCloser, error) { return p.zips.Open(sha) },
		Images:  p.options.FunctionImages,
		Cluster: p.options.ServerlessCluster,
		Suits:   scheduler.Suits,
		Measure: p.measureFunctions,
		Log:     p.log,
	})
	p.Lambda = lambda.New(p.State, lambda.Options{
		Account:  p.account(),
		Zips:     p.zips,
		Buckets:  p.s3(),
		Images:   imagesClient{p},
		Queues:   p.sqs(),
		Sources:  p.sqs(),
		Topics:   p.sns(),
		QueueURL: p.queueURL,
		Runner:   p.environments,
		Endpoint: p.Endpoint(),
		MAC:      p.issuer.FunctionCodeMAC,
		Trusts:   func(role string) bool { return p.IAM.Trusts(role, "lambda.amazonaws.com") },
		Measure:  p.meter.Measure,
		Log:      p.log,
	})
}

// CheckFunctionImages checks what Options.FunctionImages would be.
func CheckFunctionImages(images map[string]string) error {
	for runtime, image := range images {
		if !lambda.Runs(runtime) || image == "" {
			return fmt.Errorf("%q=%q: it must be a runtime that runs here, such as python3.12, nodejs22.x or provided.al2023, and an image", runtime, image)
		}
	}
	return nil
}

// measureFunctions puts values of functions' metrics, and of all functions' together.
func (p *Plane) measureFunctions(figures []environments.Figure) {
	var samples []metrics.Sample
	for _, f := range figures {
		sample := metrics.Sample{
			Metric: metrics.NewMetric("AWS/Lambda", f.Metric, metrics.Dimension{Name: "FunctionName", Value: f.Function}),
			Unit:   f.Unit, At: f.At.Unix(), Set: metrics.One(f.Value),
		}
		whole := sample
		whole.Metric = metrics.NewMetric("AWS/Lambda", f.Metric)
		if f.Function != "" {
			samples = append(samples, sample)
		}
		if f.IsOfAll() {
			samples = append(samples, whole)
		}
	}
	if err := p.putMetrics(samples); err != nil {
		p.log.Error("cannot keep functions' metrics", "error", err)
	}
}

// buildRegistry builds ECR, and what brings images of other registries into it.
func (p *Plane) buildRegistry() {
	p.ECR = ecr.New(p.State, ecr.Options{
		Account:     p.account(),
		MAC:         p.issuer.RegistryMAC,
		Blobs:       p.images,
		Endpoint:    p.Endpoint(),
		Standing:    p.standing,
		Upstreams:   p.options.Upstreams,
		Secrets:     p.secretsManager(),
		TryUpstream: func(ctx context.Context, r *state.PullThroughRule) error { return p.upstream.Try(ctx, r) },
	})
	p.holders = holders.New(p.now)
	p.upstream = upstream.New(p.ECR, p.images, p.log)
}

// buildScaling builds the scaling of services and groups.
func (p *Plane) buildScaling() {
	o := p.options
	owner := p.account()
	options := scaler.Options{Late: p.workings.Late("services"), Now: p.now, ECS: p.ecs(), CloudWatch: p.cloudwatch(), Log: p.log}
	if p.Arrivals != nil {
		options.Metrics = p.Metrics
	}
	p.Scaler = scaler.New(p.State, options)
	p.ApplicationAutoScaling = appautoscaling.New(p.State, appautoscaling.Options{
		Account:  owner,
		Alarms:   p.cloudwatch(),
		Services: p.ecs(),
		Reaction: o.Reaction,
	})
	p.AutoScaling = autoscaling.New(p.State, autoscaling.Options{
		Account:  owner,
		Alarms:   p.cloudwatch(),
		Queues:   p.sqs(),
		Topics:   p.sns(),
		QueueURL: p.queueURL,
		Reaction: o.Reaction,
	})
	after, pause := p.scaleIn()
	p.keeper = keeper.New(p.State, keeper.Options{
		Now:          p.now,
		CloudWatch:   p.cloudwatch(),
		Metrics:      options.Metrics,
		Lost:         o.Lost,
		Image:        func(id string) (string, error) { return p.EC2.ResolveImage(context.Background(), id) },
		NoFleet:      p.fleet == nil,
		ScaleIn:      after,
		ScaleInPause: pause,
		Put:          p.putMetrics,
		Late:         p.workings.Late("groups"),
		Prices:       o.Prices,
		Log:          p.log,
	})
}

// started is told of each task that has begun to run.
func (p *Plane) started(t *state.Task) {
	p.meter.Started(t)
	p.traceTask(t)
	if t.CreatedAt != nil && t.StartedAt != nil {
		p.workings.Started(t.StartedAt.Sub(*t.CreatedAt))
	}
}

// waitingChanges returns how many changes wait for the stores that make one group of them at a time.
func (p *Plane) waitingChanges() map[string]int {
	return map[string]int{"state": p.State.Waiting(), "objects": p.objects.Waiting()}
}

// queueDepths counts the messages of all queues.
func (p *Plane) queueDepths() (all []console.QueueDepth) {
	for _, q := range p.Queues.Queues() {
		if n, err := p.Queues.Counts(q.Name); err == nil { // else it was deleted meanwhile
			all = append(all, console.QueueDepth{Name: q.Name, Visible: n.Visible, NotVisible: n.InFlight, Delayed: n.Delayed})
		}
	}
	return all
}

// mount puts the services behind one handler, along with the nodes' connections and Pintle's own paths.
func (p *Plane) mount() (err error) {
	g, err := p.gate()
	if err != nil {
		return err
	}
	restricted := restrictedBy(g, apis(p.list))
	if p.handler, err = wire.New(wire.Options{Verifier: p.callersVerifier(), Admit: p.admit, Answered: p.answered.Answered, Log: p.log}, restricted...); err != nil {
		return err
	}
	p.handler.Handle("/acs/", p.Link)
	p.handler.Handle("/tcs/", p.Link)
	p.handler.Handle("/exec/", p.sessions)
	p.handler.Handle(sessions.ClientPath, p.sessions)
	p.handler.Handle(sns.Path, p.SNS)
	p.handler.Handle(stacks.HandlePath, http.HandlerFunc(p.signalHandle))
	p.handler.Handle(stacks.CustomPath, http.HandlerFunc(p.answerCustom))
	p.handler.Handle(lambda.CodePath, http.HandlerFunc(p.Lambda.ServeCode))
	p.handler.Handle(registry.Prefix, p.registry(g))
	pages := console.New(p.State, p.Link, console.Options{
		Version:     p.options.Version,
		Verifier:    p.verifier,
		Writable:    p.writable,
		Failing:     p.failing,
		Now:         p.now,
		Region:      p.options.Region,
		Serverless:  p.scheduler.Serverless,
		Endpoint:    p.endpointFor,
		ScrapeToken: p.options.ScrapeToken,
		Requests:    &p.answered,
		Workings:    &p.workings,
		Waiting:     p.waitingChanges,
		Spans:       p.tracer.Counts,
		Queues:      p.queueDepths,
		MayList:     p.mayList,
		Costs:       p.costs,
		Enrollment:  p.enrollment,
		Authority:   p.authority,
		Announce:    p.holders.Announce,
		Backup:      p.Backup,
	})
	for path, h := range pages.Handlers() {
		p.handler.Handle(path, h)
	}
	p.mountPages()
	for path, h := range p.balancers.Handlers(p.verifyBalancer) {
		p.handler.Handle(path, h)
	}
	for path, h := range p.environments.Handlers(p.verifyBalancer) {
		p.handler.Handle(path, h)
	}
	p.front = p.home(sandboxed(p.handler))
	if p.verifier == nil {
		p.front = guard(p.advertisedHost(), p.front)
	}
	return nil
}

// Call implements call.Caller: it runs an operation of any service for somebody in this process.
func (p *Plane) Call(ctx context.Context, in any) (any, error) { return p.handler.Call(ctx, in) }

// Coverage generates docs/coverage.md, which lists the implemented operations of each service. It calls none, so the services
// need no stores.
func Coverage() (string, error) {
	p := &Plane{}
	p.buildServices()
	h, err := wire.New(wire.Options{}, apis(p.services())...)
	if err != nil {
		return "", err
	}
	return h.Coverage(), nil
}

func apis(list []Service) (out []model.API) {
	for _, s := range list {
		if s.API.Name != "" {
			out = append(out, s.API)
		}
	}
	return out
}

// newLink returns the link that nodes connect to.
func (p *Plane) newLink() *nodelink.Link {
	o := nodelink.Options{
		Now:         p.now,
		Observe:     p.meter.Observe,
		Accepted:    p.traceAcceptance,
		Admitted:    connection.Release,
		Credentials: p.taskCredentials,
		Account:     p.account(),
		Mirrors:     p.options.Mirrors,
		Instance:    p.instanceCredentials,
		Heartbeat:   p.options.Heartbeat,
		Log:         p.log,
	}
	if v := p.verifier; v != nil {
		o.Verify = func(ctx context.Context, method, path, rawQuery, host string, h http.Header, body []byte) (call.Identity, error) {
			s := sign.Signed{Method: method, Path: path, RawQuery: rawQuery, Host: host, Header: h, Body: body}
			caller, err := v.Verify(ctx, "ecs", s)
			return caller.Identity, err
		}
	}
	return nodelink.New(p.State, o)
}

// taskCredentials issues a role's credentials to one task, or none if the role that the task began with has been deleted: what is left then is
// a name alone, which nothing limits.
func (p *Plane) taskCredentials(t *state.Task, roleArn, roleType string) *acs.IAMRoleCredentials {
	id := p.IAM.RoleID(roleArn)
	if began := t.RoleIDs[roleArn]; began != "" && began != id {
		return nil
	}
	c := p.issuer.Issue(*t.TaskArn, roleArn, id, roleType)
	return &acs.IAMRoleCredentials{
		CredentialsID:   c.ID,
		AccessKeyID:     c.AccessKeyID,
		SecretAccessKey: c.SecretAccessKey,
		SessionToken:    c.SessionToken,
		Expiration:      c.Expires.Format(time.RFC3339),
		RoleArn:         roleArn,
	}
}

// instanceCredentials issues the credentials of its role to an instance.
func (p *Plane) instanceCredentials(instanceID, roleArn, roleID string) *acs.IAMRoleCredentials {
	c := p.issuer.IssueInstance(instanceID, roleArn, roleID)
	return &acs.IAMRoleCredentials{
		AccessKeyID:     c.AccessKeyID,
		SecretAccessKey: c.SecretAccessKey,
		SessionToken:    c.SessionToken,
		Expiration:      c.Expires.Format(time.RFC3339),
		RoleArn:         roleArn,
	}
}

func (p *Plane) runRollout(ctx context.Context) error { return p.Rollout.Run(ctx, p.State) }

func (p *Plane) runWaiting(ctx context.Context) error {
	return waiting.Run(ctx, p.State, p.scheduler, p.now, p.workings.Late("waiting"))
}

func (p *Plane) giveUpNodes(ctx context.Context) error {
	return nodelink.GiveUp(ctx, p.State, nodelink.LostOptions{Now: p.now, Lost: p.options.Lost})
}

func (p *Plane) runAlarms(ctx context.Context) error {
	return alarms.Run(ctx, p.State, alarms.Options{
		Now:      p.now,
		Metrics:  p.Metrics,
		Region:   p.options.Region,
		Account:  p.options.Account,
		Arrivals: p.Arrivals,
		Late:     p.workings.Late("alarms"),
	})
}

func (p *Plane) meterQueues(ctx context.Context) error {
	return metering.Queues(ctx, metering.QueueOptions{Seconds: p.Queues.Seconds, Put: p.putMetrics, Log: p.log})
}

func (p *Plane) collectObjects(ctx context.Context) error { return p.objects.Collect(ctx, p.now()) }

func (p *Plane) expire(ctx context.Context) error {
	return expiry.Run(call.With(ctx, call.Call{Service: "s3", Identity: call.Identity{Principal: call.S3}}), p.S3, p.now, p.log)
}

func (p *Plane) exportLogs(ctx context.Context) error {
	ctx = call.With(ctx, call.Call{Service: "s3", Identity: call.Identity{Principal: p.account().Root()}})
	return exports.New(p.State, p.streams, exports.Options{Now: p.now, S3: p.s3()}).Run(ctx)
}

func (p *Plane) runPollers(ctx context.Context) error {
	return pollers.Run(ctx, p.State, pollers.Options{
		Queues:   p.sqs(),
		QueueURL: p.queueURL,
		Region:   p.options.Region,
		Invoke:   p.Lambda.Call,
		Log:      p.log,
	})
}

func (p *Plane) runSweep(ctx context.Context) error {
	return p.State.RunSweeper(ctx, p.now, p.streams.Sweep)
}
