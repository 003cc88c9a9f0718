// Package plane is one control plane: it opens the stores, builds each service, mounts each handler and runs
// each loop, from the list in services.go. pintle serve and up, the simulation and tests all run this one.
// It decides nothing, and no service knows it.
package plane

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // scheduled actions have time zones, also where the system has no list of them

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/appautoscaling/scaler"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/autoscaling/keeper"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/cloudwatch/alarms"
	"github.com/pintle/pintle/internal/cloudwatch/metering"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/ec2/machines"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/ecs/nodelink"
	"github.com/pintle/pintle/internal/ecs/rollout"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/sign"
)

// Options are what a control plane can be told.
type Options struct {
	Version   string // as /pintle/health tells it
	Region    string
	Account   string
	Data      string // the directory of all state
	Listen    string // the address; with none, only callers in the process reach the services
	Advertise string // the URL under which nodes reach it; http:// and Listen where it is empty
	// AccessKeyID and SecretAccessKey are what callers sign with. Off loopback there must be one.
	AccessKeyID     string
	SecretAccessKey string

	Lost         time.Duration // how long a node may be away before its tasks are given up
	Settle       time.Duration // how long a task without a health check must run to count as healthy
	Reaction     scaling.Reaction
	ScaleIn      time.Duration // for how long managed scaling needs fewer instances before they go; 0 is the reaction's
	NoGPUMetrics bool          // whether the load of the nodes' GPUs is left out of CloudWatch
	MaxMetrics   int
	Prices       map[string]float64 // of an hour of instance types, in dollars
	Fleet        FleetOptions
	Log          *slog.Logger
	Simulated    *Simulated
}

// Simulated is what a simulation has otherwise: a clock that jumps, and nothing that lasts.
type Simulated struct {
	Now      func() time.Time
	After    func(d time.Duration, do func()) (stop func() bool)
	NewID    func() string // of tasks; called inside transactions alone
	Journal  store.Journal
	Observer state.Observer
}

// Plane is a control plane, wired together.
type Plane struct {
	// The services, and the loops that callers in the process step or stop by hand.
	ECS                    *ecs.Service
	EC2                    *ec2.Service
	AutoScaling            *autoscaling.Service
	ApplicationAutoScaling *appautoscaling.Service
	CloudWatch             *cloudwatch.Service
	Logs                   *logs.Service
	S3                     *s3.Service
	SQS                    *sqs.Service
	STS                    *sts.Service
	Rollout                *rollout.Loop
	Scaler                 *scaler.Loop
	Deliveries             *delivery.Loop // of what rows owe

	// The stores.
	State   *state.Store
	Metrics *metrics.Store
	Queues  *queues.Store
	streams *streams.Store
	objects *objects.Store
	open    []openStore // those that are open

	Link      *nodelink.Link
	Arrivals  *alarms.Arrivals // nil where the reaction is faithful
	scheduler *scheduler.Scheduler
	keeper    *keeper.Loop
	meter     *metering.Meter
	fleet     machines.Provider // where machines come from; nil where nowhere
	local     *fleet.Local      // the fleet, where it is this machine
	pool      *fleet.Static     // the fleet, where it is a pool of machines

	options  Options
	lock     *os.File // of the data directory
	now      func() time.Time
	log      *slog.Logger
	listener net.Listener
	issuer   *sts.Issuer
	verifier *sign.Verifier // nil where any credentials will do
	handler  *wire.Handler
	front    http.Handler // the handler, guarded where any credentials will do
	list     []Service
}

// Open opens the state, binds the address and builds the services; Run serves.
func Open(ctx context.Context, o Options) (*Plane, error) {
	p := &Plane{options: o, log: o.Log, now: time.Now}
	if o.Simulated != nil {
		p.now = o.Simulated.Now
	}
	if err := p.build(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Plane) build(ctx context.Context) error {
	var err error
	if p.lock, err = lockData(p.options.Data); err != nil {
		return err
	}
	if err := p.openFront(); err != nil {
		return advise(err, p.options.Data)
	}
	if err := errors.Join(p.openFleet(), p.openStores(ctx)); err != nil {
		return advise(err, p.options.Data)
	}
	p.buildServices()
	p.list = p.services()
	return p.mount()
}

// Endpoint is the URL under which nodes and people reach the control plane.
func (p *Plane) Endpoint() string {
	if p.options.Advertise != "" || p.listener == nil {
		return p.options.Advertise
	}
	return "http://" + p.listener.Addr().String()
}

// queueURL is the URL of the queue with an ARN, here.
func (p *Plane) queueURL(arn string) string {
	parts := strings.Split(arn, ":")
	return p.Endpoint() + "/" + p.options.Account + "/" + parts[len(parts)-1]
}

// Run serves until ctx ends, or a store can no longer be written. Close has nothing left to do then.
func (p *Plane) Run(ctx context.Context) error {
	if err := p.Link.Reset(ctx); err != nil {
		return err
	}
	web := &http.Server{Handler: p.front, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn)}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return orderly(web.Serve(p.listener)) })
	for _, s := range p.list {
		for _, loop := range s.Loops {
			g.Go(func() error { return loop(ctx) })
		}
	}
	for _, s := range p.open {
		g.Go(func() error { return s.untilFailure(ctx) })
	}
	g.Go(func() error {
		<-ctx.Done()
		p.dismiss(web)
		return nil
	})
	return errors.Join(orderly(g.Wait()), p.Close())
}

// dismiss has the callers leave: the nodes, those who wait for messages, and then all others.
func (p *Plane) dismiss(web *http.Server) {
	p.Link.Close()
	p.Queues.EndWaits() // else long polls would be cut off
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	web.Shutdown(ctx) //nolint:errcheck // whoever is left is cut off below
	web.Close()       //nolint:errcheck // they are gone either way
}

// Close closes what is open.
func (p *Plane) Close() (err error) {
	if p.listener != nil {
		err = orderly(p.listener.Close())
	}
	for _, s := range p.open {
		err = errors.Join(err, s.Close())
	}
	p.open = nil
	if p.lock != nil {
		err = errors.Join(err, p.lock.Close())
		p.lock = nil
	}
	return err
}

// orderly drops the errors of an orderly end.
func orderly(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
