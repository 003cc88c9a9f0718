package main

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // scheduled actions have time zones, also where the system has no list of them

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/appautoscaling/scaler"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/autoscaling/keeper"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/cloudwatch/alarms"
	"github.com/pintle/pintle/internal/cloudwatch/metering"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/ec2/machines"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/ecs/nodelink"
	"github.com/pintle/pintle/internal/ecs/rollout"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/ecs/waiting"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/s3/expiry"
	"github.com/pintle/pintle/internal/s3/notifications"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/sweep"
	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
)

// serverFlags are what every control plane can be told.
type serverFlags struct {
	Listen  string        `default:"127.0.0.1:4566" help:"Address to listen on. Anything but loopback needs an access key."`
	Data    string        `default:"~/.pintle" type:"path" help:"Directory for all state."`
	Region  string        `default:"us-east-1" help:"AWS region to be."`
	Account string        `default:"000000000000" help:"AWS account id to be."`
	Lost    time.Duration `default:"5m" help:"How long a node may be away before its tasks are given up."`

	Settle time.Duration `default:"40s" help:"How long a service's task must run before it counts as healthy, where it has no health check."`

	AdvertiseURL    string        `name:"advertise" help:"URL under which nodes reach this control plane; default http://LISTEN."`
	AccessKeyID     string        `env:"PINTLE_ACCESS_KEY_ID" help:"Access key that callers sign with."`
	SecretAccessKey string        `env:"PINTLE_SECRET_ACCESS_KEY" help:"Its secret. Better in the environment than on the command line."`
	GPUMetrics      bool          `name:"gpu-metrics" default:"true" negatable:"" help:"Make CloudWatch metrics of the load of the nodes' GPUs; without, as on AWS, that is left to a sidecar or a collector."`
	Reaction        string        `default:"faithful" enum:"faithful,fast" help:"How fast target tracking reacts: faithful, as AWS does (data points of a minute, three to scale out, fifteen to scale in), or fast (of ten seconds, one and six, looked at as they arrive; on queues by what comes, what waits and how long a task takes to start)."`
	ScaleIn         time.Duration `placeholder:"DURATION" help:"For how long a capacity provider with managed scaling must need fewer instances before they go; default 15m, or 1m with --reaction fast."`
	MaxMetrics      int           `default:"500000" help:"How many metrics are kept, at 700 bytes of memory each; those reported longest ago go first, but none of the last three hours."`
	Verbose         bool          `short:"v" help:"Log more."`

	fleetFlags
}

// reaction is how fast the alarms of target tracking are.
func (f serverFlags) reaction() scaling.Reaction {
	if f.Reaction == "fast" {
		return scaling.Fast
	}
	return scaling.Faithful
}

// scaleIn is for how long managed scaling needs fewer instances before it gives them up, and how long it pauses between its
// steps then: a minute on ECS.
func (f serverFlags) scaleIn() (after, pause time.Duration) {
	reaction := f.reaction()
	if reaction == scaling.Faithful {
		pause = reaction.Period
	}
	return cmp.Or(f.ScaleIn, time.Duration(reaction.In)*reaction.Period), pause
}

// server is a control plane, wired together.
type server struct {
	flags     serverFlags
	listener  net.Listener
	stores    []io.Closer // those that are open
	handler   *wire.Handler
	front     http.Handler // the handler, guarded where any credentials will do
	store     *state.Store
	logs      *streams.Store
	metrics   *metrics.Store
	queues    *queues.Store
	objects   *objects.Store
	arrivals  *alarms.Arrivals // nil where the reaction is faithful
	ecs       *ecs.Service
	services  *rollout.Loop
	scaling   *scaler.Loop
	groups    *keeper.Loop
	scheduler *scheduler.Scheduler
	meter     *metering.Meter
	sqs       *sqs.Service
	s3        *s3.Service
	link      *nodelink.Link
	fleet     machines.Provider // where machines come from; nil where nowhere
	local     *fleet.Local      // the fleet, where it is this machine
	pool      *fleet.Static     // the fleet, where it is a pool of machines
	log       *slog.Logger
}

// newServer opens the state, binds the address and wires the services; Run serves.
func newServer(ctx context.Context, f serverFlags) (*server, error) {
	level := slog.LevelWarn
	if f.Verbose {
		level = slog.LevelDebug
	}
	s := &server{flags: f, log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))}
	slog.SetDefault(s.log)
	if err := os.MkdirAll(f.Data, 0o700); err != nil {
		return nil, err
	}
	key, err := taskKey(f.Data)
	if err != nil {
		return nil, err
	}
	issuer, err := sts.NewIssuer(key, f.Account, time.Now)
	if err != nil {
		return nil, err
	}
	verifier, err := f.verifier(issuer)
	if err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", f.Listen); err != nil {
		return nil, fmt.Errorf("cannot listen: %w (is pintle running already? choose another address with --listen)", err)
	}
	s.listener = netutil.LimitListener(s.listener, maxConnections())
	if err := errors.Join(s.openFleet(), s.open(ctx)); err != nil {
		return nil, errors.Join(err, s.closeStores(), s.listener.Close())
	}
	return s, s.wire(verifier, issuer)
}

// maxConnections leaves half of the process's descriptors to its files: callers, who may be anybody, must not keep the stores from
// being written.
func maxConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 512
	}
	return int(min(files.Cur, 1<<20) / 2)
}

// verifier checks signatures wherever somebody else could call.
func (f serverFlags) verifier(issuer *sts.Issuer) (*wire.Verifier, error) {
	host, _, err := net.SplitHostPort(f.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: %w", f.Listen, err)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if f.AccessKeyID == "" || f.SecretAccessKey == "" {
		if loopback {
			return nil, nil
		}
		return nil, fmt.Errorf("%s can be reached from outside: set PINTLE_ACCESS_KEY_ID and PINTLE_SECRET_ACCESS_KEY, which callers then sign with", f.Listen)
	}
	return &wire.Verifier{Region: f.Region, Lookup: func(_ context.Context, id, token string) (wire.Credential, error) {
		if id == f.AccessKeyID {
			return wire.Credential{SecretAccessKey: f.SecretAccessKey, Arn: "arn:aws:iam::" + f.Account + ":root"}, nil
		}
		secret, arn, expires, err := issuer.Lookup(id, token)
		if err != nil {
			return wire.Credential{}, wire.ErrUnknownKey
		}
		return wire.Credential{SecretAccessKey: secret, SessionToken: token, Arn: arn, Expires: expires}, nil
	}}, nil
}

// taskKey is the key that task credentials are made with. It is made once, and lasts.
func taskKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, "task.key")
	key, err := os.ReadFile(path)
	if !errors.Is(err, os.ErrNotExist) {
		return key, err
	}
	key = make([]byte, 32)
	cryptorand.Read(key)                                  // never fails
	if err := file.Replace(path, key, true); err != nil { // a part of it would keep every later start from succeeding
		return nil, err
	}
	return key, file.SyncDir(dir)
}

// open opens the stores.
func (s *server) open(ctx context.Context) error {
	s.scheduler = scheduler.New(rand.Uint64())
	journal, err := state.OpenSQLite(ctx, s.flags.Data)
	if err != nil {
		return err
	}
	s.services = rollout.New(s.scheduler, rollout.Options{Now: time.Now, Settle: s.flags.Settle, Log: s.log})
	if s.store, err = state.Open(ctx, journal, s.scheduler, s.services); err != nil {
		return errors.Join(err, journal.Close())
	}
	s.stores = append(s.stores, s.store)
	if s.logs, err = streams.Open(filepath.Join(s.flags.Data, "logs")); err != nil {
		return err
	}
	s.stores = append(s.stores, s.logs)
	options := metrics.Options{MaxMetrics: s.flags.MaxMetrics}
	if s.flags.reaction() == scaling.Fast {
		s.arrivals = alarms.NewArrivals()
		options.Note = s.arrivals.Note
	}
	if s.metrics, err = metrics.Open(filepath.Join(s.flags.Data, "metrics"), options); err != nil {
		return err
	}
	s.stores = append(s.stores, s.metrics)
	if s.queues, err = queues.Open(filepath.Join(s.flags.Data, "queues"), queues.Options{}); err != nil {
		return err
	}
	s.stores = append(s.stores, s.queues)
	if s.objects, err = objects.Open(filepath.Join(s.flags.Data, "objects"), time.Now); err != nil {
		return err
	}
	s.stores = append(s.stores, s.objects)
	s.ecs = ecs.New(s.store, s.scheduler, ecs.Options{Region: s.flags.Region, Account: s.flags.Account, Endpoint: s.endpoint(), Now: time.Now})
	return nil
}

func (s *server) closeStores() (err error) {
	for _, store := range s.stores {
		err = errors.Join(err, store.Close())
	}
	return err
}

// endpoint is the URL under which nodes and people reach the control plane.
func (s *server) endpoint() string {
	if s.flags.AdvertiseURL != "" {
		return s.flags.AdvertiseURL
	}
	return "http://" + s.listener.Addr().String()
}

// wire puts the services behind one handler.
func (s *server) wire(v *wire.Verifier, issuer *sts.Issuer) (err error) {
	s.meter = metering.New(s.store, metering.Options{Now: time.Now, Put: s.metrics.Put, NoGPUs: !s.flags.GPUMetrics, Log: s.log})
	s.link = s.newLink(v, issuer)
	metrics := cloudwatch.New(s.metrics, s.store, cloudwatch.Options{Region: s.flags.Region, Account: s.flags.Account, Now: time.Now})
	scales := scaler.Options{Now: time.Now, ECS: s.ecs, CloudWatch: metrics, Log: s.log}
	if s.arrivals != nil {
		scales.Metrics = s.metrics
	}
	s.scaling = scaler.New(s.store, scales)
	s.sqs = sqs.New(s.queues, sqs.Options{Region: s.flags.Region, Account: s.flags.Account, Endpoint: s.endpoint(), Now: time.Now})
	scaleIn, pause := s.flags.scaleIn()
	var prices map[string]float64
	if s.flags.Prices != "" {
		if prices, err = instancetype.ReadPrices(s.flags.Prices); err != nil {
			return fmt.Errorf("--prices: %w", err)
		}
	}
	s.groups = keeper.New(s.store, keeper.Options{
		Now: time.Now, CloudWatch: metrics, Metrics: scales.Metrics, Lost: s.flags.Lost, NoFleet: s.fleet == nil, ScaleIn: scaleIn, ScaleInPause: pause, Put: s.metrics.Put, Prices: prices, Log: s.log,
		Queues: s.sqs, QueueURL: s.queueURL,
	})
	s.s3 = s3.New(s.objects, s3.Options{Region: s.flags.Region, Account: s.flags.Account, Now: time.Now, Queues: s.sqs, QueueURL: s.queueURL})
	s.handler, err = wire.New(wire.Options{Verifier: v, Log: s.log},
		wire.ECS(s.ecs),
		wire.AutoScaling(autoscaling.New(s.store, autoscaling.Options{
			Region: s.flags.Region, Account: s.flags.Account, Now: time.Now, Alarms: metrics, Queues: s.sqs, QueueURL: s.queueURL, Reaction: s.flags.reaction(),
		})),
		wire.EC2(ec2.New(s.store, ec2.Options{Region: s.flags.Region, Account: s.flags.Account, Now: time.Now, NoFleet: s.flags.Fleet == ""})),
		wire.Logs(logs.New(s.logs, logs.Options{Region: s.flags.Region, Account: s.flags.Account, Now: time.Now, Metrics: metrics})),
		wire.CloudWatch(metrics),
		wire.ApplicationAutoScaling(appautoscaling.New(s.store, appautoscaling.Options{
			Region: s.flags.Region, Account: s.flags.Account, Now: time.Now, Alarms: metrics, Services: s.ecs, Reaction: s.flags.reaction(),
		})),
		wire.SQS(s.sqs),
		wire.STS(sts.New(s.flags.Account, func(ctx context.Context) string { return call.From(ctx).Principal })),
		wire.S3(s.s3),
	)
	if err != nil {
		return err
	}
	s.handleOwn(v)
	if s.front = s.handler; v == nil {
		s.front = guard(s.handler)
	}
	return nil
}

// newLink is what nodes connect to.
func (s *server) newLink(v *wire.Verifier, issuer *sts.Issuer) *nodelink.Link {
	o := nodelink.Options{Now: time.Now, Log: s.log, Observe: s.meter.Observe, Credentials: func(taskArn, roleArn, roleType string) *acs.IAMRoleCredentials {
		c := issuer.Issue(taskArn, roleArn, roleType)
		return &acs.IAMRoleCredentials{
			CredentialsID: c.ID, AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken,
			Expiration: c.Expires.Format(time.RFC3339), RoleArn: roleArn,
		}
	}}
	if v != nil {
		o.Verify = func(ctx context.Context, method, path, rawQuery, host string, h http.Header, body []byte) error {
			_, err := v.Verify(ctx, "ecs", wire.Signed{Method: method, Path: path, RawQuery: rawQuery, Host: host, Header: h, Body: body})
			return err
		}
	}
	return nodelink.New(s.store, o)
}

// handleOwn adds what is not AWS's: the nodes' connections and Pintle's own paths.
func (s *server) handleOwn(v *wire.Verifier) {
	s.handler.Handle("/acs/", s.link)
	s.handler.Handle("/tcs/", s.link)
	s.handler.Handle("/pintle/health", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"status": "ok", "version": version}) //nolint:errcheck // the caller is gone
	}))
	s.handler.Handle("/pintle/gpus", s.gpuHandler(v))
	s.handler.Handle("/pintle/gpus/fault", s.faultHandler(v))
}

// run serves until ctx ends.
func (s *server) run(ctx context.Context) error {
	if err := s.link.Reset(ctx); err != nil {
		return err
	}
	web := &http.Server{Handler: s.front, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return ignore(web.Serve(s.listener)) })
	g.Go(func() error {
		return nodelink.GiveUp(ctx, s.store, nodelink.LostOptions{Now: time.Now, Lost: s.flags.Lost})
	})
	g.Go(func() error { return s.services.Run(ctx, s.store) })
	g.Go(func() error {
		return alarms.Run(ctx, s.store, alarms.Options{Now: time.Now, Metrics: s.metrics, Act: s.alarmActions().act, Arrivals: s.arrivals})
	})
	g.Go(func() error { return s.scaling.Run(ctx) })
	g.Go(func() error { return s.groups.Run(ctx) })
	g.Go(func() error { return waiting.Run(ctx, s.store, s.scheduler, time.Now) })
	g.Go(func() error { return s.runFleet(ctx) })
	g.Go(func() error { return s.meter.Run(ctx) })
	g.Go(func() error {
		return metering.Queues(ctx, metering.QueueOptions{Seconds: s.queues.Seconds, Put: s.metrics.Put, Log: s.log})
	})
	g.Go(func() error { return s.objects.Collect(ctx, time.Now()) })
	g.Go(func() error {
		return notifications.Run(ctx, s.objects, notifications.Options{Now: time.Now, Queues: s.sqs, QueueURL: s.queueURL, Log: s.log})
	})
	g.Go(func() error {
		return expiry.Run(call.With(ctx, call.Call{Service: "s3", Principal: call.S3}), s.s3, time.Now, s.log)
	})
	g.Go(func() error { return sweep.Run(ctx, s.store, time.Now, s.logs.Sweep) })
	g.Go(func() error {
		failed := errors.New("the state can no longer be written; restart pintle once the disk is well")
		select {
		case <-ctx.Done():
			failed = nil
		case <-s.store.Done():
		case <-s.queues.Failed():
		case <-s.metrics.Failed():
		case <-s.logs.Failed():
		}
		s.link.Close()
		s.queues.EndWaits()                                                          // else long polls would be cut off
		stopping, cancel := context.WithTimeout(context.Background(), 5*time.Second) // ctx is over
		defer cancel()
		web.Shutdown(stopping) //nolint:errcheck // whoever is left is cut off below
		web.Close()
		return failed
	})
	return errors.Join(ignore(g.Wait()), s.closeStores())
}

// queueURL is the URL of the queue with an ARN, here.
func (s *server) queueURL(arn string) string {
	parts := strings.Split(arn, ":")
	return s.endpoint() + "/" + s.flags.Account + "/" + parts[len(parts)-1]
}

// ignore drops the errors of an orderly end.
func ignore(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
