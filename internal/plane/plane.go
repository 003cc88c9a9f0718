// Package plane is one control plane: it opens the stores, builds each service, mounts each handler and runs each loop, all
// from the list in services.go. pintle serve and up, the simulation and tests run the same one. It decides nothing, and no
// service imports it.
package plane

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"
	_ "time/tzdata" // scheduled actions have time zones, even if the system has no zone data

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acm"
	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/appautoscaling/scaler"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/autoscaling/keeper"
	"github.com/pintle/pintle/internal/certificate"
	"github.com/pintle/pintle/internal/cloudformation"
	"github.com/pintle/pintle/internal/cloudformation/cloudcontrol"
	"github.com/pintle/pintle/internal/cloudformation/requests"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/cloudwatch/alarms"
	"github.com/pintle/pintle/internal/cloudwatch/metering"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/console/pages"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ec2/fleet"
	"github.com/pintle/pintle/internal/ec2/machines"
	"github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/ecr/holders"
	"github.com/pintle/pintle/internal/ecr/upstream"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/ecs/enrollment"
	"github.com/pintle/pintle/internal/ecs/nodelink"
	"github.com/pintle/pintle/internal/ecs/rollout"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/ecs/sessions"
	"github.com/pintle/pintle/internal/efs"
	"github.com/pintle/pintle/internal/elb"
	"github.com/pintle/pintle/internal/elb/balancers"
	"github.com/pintle/pintle/internal/events"
	"github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/lambda"
	"github.com/pintle/pintle/internal/lambda/environments"
	"github.com/pintle/pintle/internal/lambda/zips"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/schedules"
	"github.com/pintle/pintle/internal/secretsmanager"
	"github.com/pintle/pintle/internal/servicediscovery"
	"github.com/pintle/pintle/internal/sns"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/ssm"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/trace"
	"github.com/pintle/pintle/internal/vault"
	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/connection"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/tally"
)

// Options configure a control plane.
type Options struct {
	Version   string // what /pintle/health reports
	Region    string
	Account   string
	Data      string // the directory of all state
	Listen    string // the address to listen on; without one, only callers in the process reach the services
	Advertise string // the URL under which nodes reach it; by default where each has reached it
	// AccessKeyID and SecretAccessKey are what callers sign with. They are required unless Listen is on loopback.
	AccessKeyID     string
	SecretAccessKey string
	TLS             TLSOptions
	FileSystems     string // the directory with a directory for each file system, the same on all nodes; "" if there are none
	EnforceIAM      bool   // whether roles and users need policies also on loopback without a key, and roles of which there is only a name
	SecretsKey      []byte // encrypts the key of parameters and secrets; without one, only the file's mode protects that

	Heartbeat    time.Duration // between heartbeats to nodes; 0 means the default
	Lost         time.Duration // how long a node may be away before its tasks are given up
	Settle       time.Duration // how long a task without a health check must run to count as healthy
	Reaction     scaling.Reaction
	ScaleIn      time.Duration // how long managed scaling must need fewer instances before they go; 0 means the reaction's time
	NoGPUMetrics bool          // keeps the load of the nodes' GPUs out of CloudWatch
	MaxMetrics   int
	Prices       map[string]float64 // dollars per hour, by instance type
	WebhookTo    []netip.Prefix     // addresses of this machine and its links that web hooks may reach
	// FunctionImages are the images in which functions of runtimes run, by the runtimes' names, instead of AWS's base images.
	FunctionImages map[string]string
	// ServerlessCluster is the cluster on whose instances functions run, and Fargate's tasks of any cluster; "" is default, for functions alone.
	ServerlessCluster string
	Mirrors           map[string]string // hosts of registries that ECR stands in for, with the prefixes of their repositories
	Upstreams         []string          // hosts of registries from which ECR may take images besides those of AWS's list
	Fleet             FleetOptions
	Balancer          BalancerOptions
	Trace             trace.Options // where OpenTelemetry's spans go; nowhere without an endpoint
	ScrapeToken       string        // with which Prometheus reads /metrics where signatures are checked
	Log               *slog.Logger
	Simulated         *Simulated
	Console           string // "off", "read-only" or "on", which is also what "" means
}

// Simulated holds what a simulation replaces: its clock jumps, and nothing is durable.
type Simulated struct {
	Now      func() time.Time
	After    func(d time.Duration, do func()) (stop func() bool)
	NewID    func() string // for tasks; only called inside transactions
	Journal  store.Journal
	Observer state.Observer
}

// Plane is a control plane, wired together.
type Plane struct {
	// The services, and the loops that callers in the process step or stop themselves.
	ACM                    *acm.Service
	ECS                    *ecs.Service
	EC2                    *ec2.Service
	ECR                    *ecr.Service
	EFS                    *efs.Service
	ELB                    *elb.Service
	AutoScaling            *autoscaling.Service
	ApplicationAutoScaling *appautoscaling.Service
	CloudFormation         *cloudformation.Service
	CloudControl           *cloudcontrol.Service
	CloudMap               *servicediscovery.Service
	balancers              *balancers.Loop
	balancer               *localBalancer
	stacks                 *stacks.Loop
	requests               *requests.Loop
	CloudWatch             *cloudwatch.Service
	IAM                    *iam.Service
	Events                 *events.Service
	Lambda                 *lambda.Service
	Logs                   *logs.Service
	S3                     *s3.Service
	SNS                    *sns.Service
	SQS                    *sqs.Service
	SSM                    *ssm.Service
	Schedules              *schedules.Service
	SecretsManager         *secretsmanager.Service
	STS                    *sts.Service
	Rollout                *rollout.Loop
	Scaler                 *scaler.Loop
	Deliveries             *delivery.Loop // delivers what rows owe

	// The stores.
	State   *state.Store
	Metrics *metrics.Store
	Queues  *queues.Store
	streams *streams.Store
	objects *objects.Store
	images  *blobs.Store
	// upstream brings images of other registries into ECR's repositories.
	upstream *upstream.Cache
	// holders knows which nodes have which layers of images.
	holders *holders.Book
	// zips has the code of functions, and environments runs it.
	zips         *zips.Store
	environments *environments.Manager
	vault        *vault.Vault
	open         []io.Closer
	databases    []database // that tell what fails
	journal      store.Journal
	backingUp    atomic.Bool

	Link      *nodelink.Link
	sessions  *sessions.Sessions
	Arrivals  *alarms.Arrivals // nil if the reaction is faithful
	scheduler *scheduler.Scheduler
	keeper    *keeper.Loop
	meter     *metering.Meter
	fleet     machines.Provider // the provider of machines, or nil
	local     *fleet.Local      // the fleet, if its machines are agents on this machine
	pool      *fleet.Static     // the fleet, if it's a pool of machines

	answered tally.Tally // the requests
	workings console.Workings
	tracer   *trace.Tracer // nil if nothing is traced
	options  Options
	lock     *os.File    // on the data directory
	space    *disk.Space // nil in a simulation
	now      func() time.Time
	log      *slog.Logger
	listener *connection.Listener
	tls      *tls.Config // nil for plain HTTP
	issuer   *sts.Issuer

	authority  *certificate.Authority // nil unless the control plane makes its own certificates
	enrollment *enrollment.Office
	verifier   *sign.Verifier // nil if any credentials will do
	handler    *wire.Handler
	pages      *pages.Pages // nil if there are none
	front      http.Handler // the handler, behind guard if any credentials will do
	list       []Service
}

// Open opens the stores, binds the address and builds the services. Run serves.
func Open(ctx context.Context, o Options) (*Plane, error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	p := &Plane{options: o, log: newSparingly(o.Log), now: time.Now}
	p.balancer = newLocalBalancer(p)
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
	if p.lock, err = p.openData(); err != nil {
		return advise(err, p.options.Data)
	}
	if err := p.openFront(); err != nil {
		return advise(err, p.options.Data)
	}
	if err := errors.Join(p.openFleet(), p.openStores(ctx)); err != nil {
		return advise(err, p.options.Data)
	}
	if p.tracer, err = p.newTracer(); err != nil {
		return err
	}
	p.buildServices()
	if err := p.EC2.MakeDefaultNetwork(ctx); err != nil && !disk.IsUnwritable(err) {
		return err
	}
	if err := p.Link.Reset(ctx); err != nil && !disk.IsUnwritable(err) { // before anybody sees who was connected to the last one
		return err
	}
	p.list = p.services()
	if p.listener == nil {
		return nil
	}
	return p.mount()
}

// Endpoint is the URL under which nodes and people reach the control plane.
func (p *Plane) Endpoint() string {
	if p.options.Advertise != "" || p.listener == nil {
		return p.options.Advertise
	}
	return p.options.TLS.scheme() + "://" + reachable(p.listener.Addr().(*net.TCPAddr))
}

// endpointFor returns the URL under which other machines reach the control plane, as far as somebody who has reached it at a URL knows: that one,
// unless it leads to this machine only, or --advertise says another.
func (p *Plane) endpointFor(reached string) string {
	u, err := url.Parse(reached)
	if err != nil || u.Host == "" || isLocalHost(u.Host) || p.options.Advertise != "" {
		return p.Endpoint()
	}
	return reached
}

// reachable returns an address at which others reach a listener. One that listens on all of the machine's addresses is reached at the
// address that leads out of it, or at its first one where none does.
func reachable(a *net.TCPAddr) string {
	if !a.IP.IsUnspecified() {
		return a.String()
	}
	addresses, _ := net.InterfaceAddrs() // without them it's loopback
	ip := firstAddress(addresses)
	if c, err := net.Dial("udp", "192.0.2.1:9"); err == nil { // an address for documentation; this sends nothing
		ip = c.LocalAddr().(*net.UDPAddr).IP
		c.Close() //nolint:errcheck // nothing was sent
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(a.Port))
}

// firstAddress returns the first of a machine's addresses at which other machines may reach it, or loopback's if there is none. A network
// without a way out, such as one of GPU machines by themselves, has such addresses, too.
func firstAddress(addresses []net.Addr) net.IP {
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.IsGlobalUnicast() {
			return n.IP
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

// queueURL returns the URL of the queue with an ARN on this control plane.
func (p *Plane) queueURL(arn string) string {
	name, ours := p.account().ResourceOf("sqs", "", arn)
	if !ours {
		return p.Endpoint()
	}
	return p.Endpoint() + "/" + p.options.Account + "/" + name
}

// Run serves until ctx ends. It closes everything when it returns.
func (p *Plane) Run(ctx context.Context) error {
	web := p.webServer()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return ignoreShutdown(web.Serve(p.secured())) })
	for _, s := range p.list {
		for _, loop := range s.Loops {
			g.Go(func() error { return persevere(ctx, loop) })
		}
	}
	g.Go(func() error { return p.untilReplaced(ctx) })
	g.Go(func() error {
		<-ctx.Done()
		p.disconnect(web)
		return nil
	})
	return errors.Join(ignoreShutdown(g.Wait()), p.Close())
}

// untilReplaced waits until ctx ends, or until somebody else has written to the state.
func (p *Plane) untilReplaced(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.State.Done():
		return errors.New("another process has written to the state; see that only one uses the data directory, and restart pintle")
	}
}

// disconnect ends all connections: the nodes', then the long polls for messages, then the rest.
func (p *Plane) disconnect(web *http.Server) {
	p.sessions.Close()
	p.Link.Close()
	p.Queues.EndWaits() // otherwise long polls would be cut off
	p.balancers.EndWaits()
	p.pages.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	web.Shutdown(ctx) //nolint:errcheck // Close cuts off whoever is left
	web.Close()       //nolint:errcheck // the connections are gone either way
}

// Close closes everything that is open.
func (p *Plane) Close() (err error) {
	if p.listener != nil {
		err = ignoreShutdown(p.listener.Close())
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

// ignoreShutdown returns nil for the errors of an orderly shutdown.
func ignoreShutdown(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
