package environments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

func encode(v any) []byte {
	b, _ := json.Marshal(v) //nolint:errcheck // texts alone
	return b
}

// The tags of functions that say where their environments run.
const (
	TagCluster = "pintle:cluster" // the ECS cluster; without it, the one of Options
	TagGPU     = "pintle:gpu"     // how many GPUs each environment gets
)

// containerName is the name of the only container of an environment.
const containerName = "function"

// Variables of environments that nodes read, too.
const streamVariable = acs.FunctionStream

// startLimit is how long the calls may take that start an environment.
const startLimit = time.Minute

// as returns a context in which ECS and Logs are called as Lambda.
func (m *Manager) as(ctx context.Context, service string) context.Context {
	return call.With(ctx, call.Call{Service: service, Via: "lambda", Identity: call.Identity{Principal: m.opts.Root()}})
}

// start starts an environment's task. Its row is written first, so that a process which is killed leaves no task that nobody knows.
func (m *Manager) start(e *environment) {
	ctx, cancel := context.WithTimeout(m.work, startLimit)
	defer cancel()
	v := e.group.version
	e.cluster = cmp.Or(e.tags[TagCluster], m.opts.Cluster, "default")
	e.stream = m.opts.Now().UTC().Format("2006/01/02/") + "[" + *v.Version + "]" + strings.TrimPrefix(e.id, state.EnvironmentStarter)
	row := &state.FunctionEnvironment{ID: e.id, Cluster: e.cluster, Function: *v.FunctionName, Version: *v.Version}
	err := m.store.Update(ctx, func(tx *state.Tx) error {
		tx.FunctionEnvironments.Put(row)
		return nil
	})
	if err == nil {
		err = m.makeStream(m.as(ctx, "logs"), *v.LoggingConfig.LogGroup, e.stream)
	}
	arn := ""
	if err == nil {
		arn, err = m.runTask(m.as(ctx, "ecs"), e)
	}
	if err != nil {
		m.mu.Lock()
		m.fail(e, outcome{err: notReady("%v", err)})
		m.mu.Unlock()
		if m.work.Err() == nil { // or else the task may have been run all the same: the next process looks for it by the row
			m.forget(m.work, e.id) // ctx may have ended, and be why
		}
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.task = arn
	if e.ended {
		m.beginStop(e)
		return
	}
	m.tasks[arn] = e
	select {
	case m.news <- struct{}{}:
	default:
	}
}

func (m *Manager) makeStream(ctx context.Context, group, stream string) error {
	exists := func(err error) bool {
		refused, is := errors.AsType[smithy.APIError](err)
		return is && refused.ErrorCode() == "ResourceAlreadyExistsException"
	}
	_, err := m.opts.Logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group})
	if err != nil && !exists(err) {
		return err
	}
	_, err = m.opts.Logs.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &stream})
	if err != nil && !exists(err) {
		return err
	}
	return nil
}

// runTask runs an environment's task. Its task definition may be deregistered at any time, and is registered again then.
func (m *Manager) runTask(ctx context.Context, e *environment) (arn string, err error) {
	for range 3 {
		var definition string
		if definition, err = m.definition(ctx, e.group, e.tags); err != nil {
			return "", err
		}
		arn, err = m.runDefinition(ctx, e, definition)
		if err == nil || m.isActive(definition) {
			break
		}
	}
	return arn, err
}

func (m *Manager) runDefinition(ctx context.Context, e *environment, definition string) (arn string, err error) {
	out, err := m.opts.ECS.RunTask(ctx, &ecs.RunTaskInput{
		Cluster:        &e.cluster,
		TaskDefinition: &definition,
		StartedBy:      &e.id,
		Group:          aws.String("lambda:" + *e.group.version.FunctionName),
		Overrides: &ecstypes.TaskOverride{ContainerOverrides: []ecstypes.ContainerOverride{{
			Name:        aws.String(containerName),
			Environment: []ecstypes.KeyValuePair{{Name: aws.String(streamVariable), Value: &e.stream}},
		}}},
	})
	if err != nil {
		return "", err
	}
	if len(out.Tasks) == 0 {
		why := "no room in the cluster " + e.cluster
		for _, f := range out.Failures {
			why += ": " + aws.ToString(f.Reason)
		}
		return "", errors.New(why)
	}
	return *out.Tasks[0].TaskArn, nil
}

func (m *Manager) isActive(definition string) bool {
	td := m.store.View().TaskDefinitions.Get(definition)
	return td != nil && td.Status == ecstypes.TaskDefinitionStatusActive
}

// known is the task definition that a version of a function had last.
type known struct{ key, arn string }

// definition returns the task definition of a group, and registers it when it is first needed.
func (m *Manager) definition(ctx context.Context, g *group, tags map[string]string) (string, error) {
	m.definitions.Lock()
	defer m.definitions.Unlock()
	of := state.FunctionKey(*g.version.FunctionName, *g.version.Version)
	key := g.key + " " + tags[TagGPU]
	if k := m.known[of]; k.key == key && m.isActive(k.arn) {
		return k.arn, nil
	}
	in := m.taskDefinition(g.version, tags)
	out, err := m.opts.ECS.RegisterTaskDefinition(ctx, in)
	if err != nil {
		return "", err
	}
	arn := *out.TaskDefinition.TaskDefinitionArn
	m.known[of] = known{key, arn}
	for other := range m.store.View().TaskDefinitions.By(state.TaskDefinitionsByFamily, *in.Family) {
		if *other.TaskDefinitionArn != arn && other.Status == ecstypes.TaskDefinitionStatusActive && isOurs(other) {
			_, err = m.opts.ECS.DeregisterTaskDefinition(ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: other.TaskDefinitionArn})
		}
	}
	return arn, err
}

// Deregister makes a version's task definitions INACTIVE. Its function calls it when the version goes.
func Deregister(tx *state.Tx, v *state.FunctionVersion, at *time.Time) {
	for _, td := range slices.Collect(tx.TaskDefinitions.By(state.TaskDefinitionsByFamily, family(v))) {
		if td.Status == ecstypes.TaskDefinitionStatusActive && isOurs(td) {
			tx.Deregister(td, at)
		}
	}
}

// isOurs reports whether a task definition is Lambda's: nobody else may have such a volume.
func isOurs(td *state.TaskDefinition) bool {
	return slices.ContainsFunc(td.Volumes, func(v ecstypes.Volume) bool {
		return v.DockerVolumeConfiguration != nil && aws.ToString(v.DockerVolumeConfiguration.Driver) == acs.FunctionDriver
	})
}

// taskDefinition returns what runs a version.
func (m *Manager) taskDefinition(v *state.FunctionVersion, tags map[string]string) *ecs.RegisterTaskDefinitionInput {
	c := ecstypes.ContainerDefinition{
		Name:        aws.String(containerName),
		Image:       aws.String(m.imageOf(v)),
		Essential:   aws.Bool(true),
		Memory:      v.MemorySize,
		Cpu:         max(2, *v.MemorySize*1024/1769), // a core at 1,769 MB: "Configure Lambda function memory"
		StopTimeout: aws.Int32(2),
		Environment: m.variables(v),
		LogConfiguration: &ecstypes.LogConfiguration{LogDriver: ecstypes.LogDriverAwslogs, Options: map[string]string{
			"awslogs-group": *v.LoggingConfig.LogGroup, "awslogs-region": m.opts.Region, "awslogs-stream-prefix": "lambda",
			"awslogs-create-group": "true",
		}},
	}
	volumes := volumesOf(v, &c)
	if n := tags[TagGPU]; n != "" {
		c.ResourceRequirements = []ecstypes.ResourceRequirement{{Type: ecstypes.ResourceTypeGpu, Value: &n}}
	}
	in := &ecs.RegisterTaskDefinitionInput{
		Family:               aws.String(family(v)),
		TaskRoleArn:          v.Role,
		ContainerDefinitions: []ecstypes.ContainerDefinition{c},
		Volumes:              volumes,
	}
	if slices.Contains(v.Architectures, types.ArchitectureArm64) {
		in.RuntimePlatform = &ecstypes.RuntimePlatform{CpuArchitecture: ecstypes.CPUArchitectureArm64}
	}
	return in
}

// volumesOf returns the volumes of a version's environments, and has the container show them and run what it's to run.
func volumesOf(v *state.FunctionVersion, c *ecstypes.ContainerDefinition) (all []ecstypes.Volume) {
	show := func(name, at string, readOnly bool, options map[string]string) {
		c.MountPoints = append(c.MountPoints, ecstypes.MountPoint{SourceVolume: &name, ContainerPath: &at, ReadOnly: &readOnly})
		all = append(all, volume(name, options))
	}
	if v.PackageType == types.PackageTypeImage {
		if i := v.ImageConfigResponse; i != nil && i.ImageConfig != nil {
			c.EntryPoint, c.Command, c.WorkingDirectory = i.ImageConfig.EntryPoint, i.ImageConfig.Command, i.ImageConfig.WorkingDirectory
		}
		all = append(all, volume("code", map[string]string{acs.FunctionRuntime: acs.FunctionImage}))
	} else {
		c.Command = []string{*v.Handler}
		show("code", "/var/task", true, map[string]string{acs.FunctionRuntime: string(v.Runtime), acs.FunctionCode: v.Code.SHA256})
	}
	if len(v.Code.Layers) > 0 {
		show("layers", "/opt", true, map[string]string{acs.FunctionLayers: strings.Join(v.Code.Layers, ",")})
	}
	show("tmp", "/tmp", false, map[string]string{acs.FunctionStorage: strconv.Itoa(int(*v.EphemeralStorage.Size))})
	return all
}

func volume(name string, options map[string]string) ecstypes.Volume {
	return ecstypes.Volume{Name: &name, DockerVolumeConfiguration: &ecstypes.DockerVolumeConfiguration{
		Driver: aws.String(acs.FunctionDriver), DriverOpts: options, Scope: ecstypes.ScopeTask,
	}}
}

// family returns the family of a version's task definitions. No function's name makes it that of another one's version.
func family(v *state.FunctionVersion) string {
	if *v.Version == state.Latest {
		return "lambda-" + *v.FunctionName
	}
	return "lambda_" + *v.Version + "_" + *v.FunctionName
}

// imageOf returns a version's image: its own, or that of its runtime, which is AWS's base image unless the operator has another.
func (m *Manager) imageOf(v *state.FunctionVersion) string {
	if v.PackageType == types.PackageTypeImage {
		return v.Code.ImageToRun()
	}
	const base = "public.ecr.aws/lambda/"
	runtime := string(v.Runtime)
	if own := m.opts.Images[runtime]; own != "" {
		return own
	}
	if number, is := strings.CutPrefix(runtime, "python"); is {
		return base + "python:" + number
	}
	if number, is := strings.CutPrefix(runtime, "nodejs"); is {
		return base + "nodejs:" + strings.TrimSuffix(number, ".x")
	}
	return base + "provided:" + strings.TrimPrefix(runtime, "provided.")
}

// variables returns the environment variables of a version: its own and Lambda's.
func (m *Manager) variables(v *state.FunctionVersion) (all []ecstypes.KeyValuePair) {
	env := map[string]string{}
	if v.Environment != nil {
		maps.Copy(env, v.Environment.Variables)
	}
	maps.Copy(env, map[string]string{
		"AWS_LAMBDA_FUNCTION_NAME":        *v.FunctionName,
		"AWS_LAMBDA_FUNCTION_VERSION":     *v.Version,
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(int(*v.MemorySize)),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       *v.LoggingConfig.LogGroup,
		"AWS_REGION":                      m.opts.Region,
		"AWS_DEFAULT_REGION":              m.opts.Region,
		"TZ":                              cmp.Or(env["TZ"], ":UTC"),
	})
	if l := v.LoggingConfig; l.LogFormat == types.LogFormatJson { // the runtimes heed them
		env["AWS_LAMBDA_LOG_FORMAT"], env["AWS_LAMBDA_LOG_LEVEL"] = string(l.LogFormat), string(l.ApplicationLogLevel)
	}
	if v.PackageType != types.PackageTypeImage {
		env["AWS_EXECUTION_ENV"] = "AWS_Lambda_" + string(v.Runtime)
		env["_HANDLER"] = *v.Handler
		env["LAMBDA_TASK_ROOT"] = "/var/task"
		env["LAMBDA_RUNTIME_DIR"] = "/var/runtime"
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, ecstypes.KeyValuePair{Name: &name, Value: aws.String(env[name])})
	}
	return all
}

// beginStop has an environment's task stopped. The caller holds mu.
func (m *Manager) beginStop(e *environment) {
	if m.closed {
		return
	}
	id, cluster, task := e.id, e.cluster, e.task
	m.working.Go(func() { m.stop(m.work, id, cluster, task) })
}

// stop stops an environment's task, and forgets the environment. If it can't, the next process does.
func (m *Manager) stop(ctx context.Context, id, cluster, task string) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	_, err := m.opts.ECS.StopTask(m.as(ctx, "ecs"), &ecs.StopTaskInput{
		Cluster: &cluster, Task: &task, Reason: aws.String("The function's execution environment has ended"),
	})
	if _, refused := errors.AsType[smithy.APIError](err); err != nil && !refused {
		if errors.Is(err, context.Canceled) {
			return
		}
		m.opts.Log.Error("cannot stop a function's execution environment", "task", task, "error", err)
		return
	}
	m.forget(ctx, id)
}

// forget forgets an environment that has no task any more.
func (m *Manager) forget(ctx context.Context, id string) {
	err := m.store.Update(ctx, func(tx *state.Tx) error {
		tx.FunctionEnvironments.Delete(id)
		return nil
	})
	if err != nil && !errors.Is(err, state.ErrClosed) && !errors.Is(err, context.Canceled) {
		m.opts.Log.Error("cannot forget a function's execution environment", "environment", id, "error", err)
	}
}

// Run watches the environments' tasks until ctx ends. First it ends those that an earlier process has left: nobody knows any more what they
// are doing, and who has waited for them is gone.
func (m *Manager) Run(ctx context.Context) error {
	defer m.close()
	m.working.Go(func() { m.ship(ctx) })
	m.working.Go(func() { m.putFigures(ctx) })
	m.endLeft(ctx)
	for {
		next, v := m.look()
		if err := m.untilDue(ctx, v, next); err != nil {
			return err
		}
	}
}

// untilDue waits until there may be more to do.
func (m *Manager) untilDue(ctx context.Context, v *state.View, next time.Time) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(next.Sub(m.opts.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-watching.Done():
	case <-v.ChangedCh(watching):
	case <-m.news:
	case <-due:
	}
	return ctx.Err()
}

func (m *Manager) endLeft(ctx context.Context) {
	v := m.store.View()
	left := map[string]*state.FunctionEnvironment{}
	for e := range v.FunctionEnvironments.All() {
		left[e.ID] = e
	}
	m.mu.Lock()
	for _, g := range m.groups {
		for id := range g.all {
			delete(left, id)
		}
	}
	m.mu.Unlock()
	if len(left) == 0 {
		return
	}
	for t := range v.Tasks.All() {
		if e := left[aws.ToString(t.StartedBy)]; e != nil && *t.DesiredStatus != "STOPPED" {
			m.stop(ctx, e.ID, *t.ClusterArn, *t.TaskArn)
			delete(left, e.ID)
		}
	}
	for id := range left {
		m.forget(ctx, id)
	}
}

// look notices what has become of the environments' tasks and of their functions, and returns when to look again, and what it has seen. It reads
// the rows with mu held: older ones would lack the tasks that environments have got since.
func (m *Manager) look() (next time.Time, v *state.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v = m.store.Watch()
	for arn, e := range m.tasks {
		t := v.Tasks.Get(arn)
		switch {
		case t == nil || *t.LastStatus == "STOPPED" || *t.DesiredStatus == "STOPPED":
			m.stopped(e, t)
		case *t.LastStatus == "RUNNING" && e.ran.IsZero():
			e.ran = m.opts.Now()
			m.limitInit(e)
		}
	}
	m.giveWay(v)
	for _, g := range m.groups {
		now := v.FunctionVersions.Get(state.FunctionKey(*g.version.FunctionName, *g.version.Version))
		g.retired = now == nil || *now.RevisionId != *g.version.RevisionId
		if at := m.decide(g); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, v
}

// stopped ends an environment whose task has ended by itself. The caller holds mu.
func (m *Manager) stopped(e *environment, t *state.Task) {
	why, code := "the task is gone", ""
	if t != nil {
		why = aws.ToString(t.StoppedReason)
		for _, c := range t.Containers {
			why = cmp.Or(aws.ToString(c.Reason), why)
			if c.ExitCode != nil {
				code = "exit status " + strconv.Itoa(int(*c.ExitCode))
			}
		}
	}
	cause := ""
	if code != "" {
		cause = " with error: " + code
	}
	switch {
	case e.current != nil:
		m.finish(e, unhandled("Runtime.ExitError", "RequestId: %s Error: Runtime exited%s", e.current.RequestID, cmp.Or(cause, ": "+why)))
		m.end(e)
	case e.phase == starting && !e.ran.IsZero() || e.phase == starting && code != "":
		id := ""
		if len(e.group.waiting) > 0 {
			id = e.group.waiting[0].RequestID
		}
		m.end(e)
		m.failFirst(e.group, outcome{result: unhandled("Runtime.ExitError", "RequestId: %s Error: Runtime exited%s", id, cmp.Or(cause, ": "+why))})
	case e.phase == starting:
		m.end(e)
		m.failFirst(e.group, outcome{err: notReady("%s", why)})
	default:
		m.end(e)
	}
}

// initLimit is how long a runtime may take until it asks for work, besides the function's own time-out:
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
const initLimit = 10 * time.Second

// limitInit ends an environment that doesn't ask for work. The caller holds mu.
func (m *Manager) limitInit(e *environment) {
	if e.phase != starting {
		return
	}
	limit := initLimit + time.Duration(*e.group.version.Timeout)*time.Second
	m.limit(e, limit, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if e.phase == starting {
			m.fail(e, outcome{result: unhandled("Sandbox.Timedout", "Error: Init timed out after %.2f seconds", limit.Seconds())})
		}
	})
}
